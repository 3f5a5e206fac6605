"""The kinds of models."""

from enum import StrEnum


class ModelKind(StrEnum):
    """Which of the three parsers."""

    TREEPIECE = "treepiece"
    AR = "ar"
    NAR = "nar"
