"""The errors that treepiece raises on bad input.

Each message says where the fault is, what was found, what was expected and what to do, in one line. The command line
prints that line and exits with 2; nothing else about an error is meant for users.
"""


class TreepieceError(ValueError):
    """Any fault in what a caller handed in; the base of all errors below."""


class TreeParseError(TreepieceError):
    """Bracket text or JSON that is not a tree.

    `column` is where the fault is, counted from 1; None where the fault has no place in a text.
    """

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason if column is None else f"col {column}: {reason}")
        self.column = column


class FrameError(TreepieceError):
    """Words, skeleton and spans that do not fit together."""


class UnitError(TreepieceError):
    """Unit ids that do not make a tree, or a tree that the vocabulary cannot write."""


class UnknownLabelError(UnitError):
    """A label that the tokenizer never saw in training; `label` names it."""

    def __init__(self, label: str) -> None:
        super().__init__(f"label {label!r} is not in the vocabulary: train the tokenizer on trees that have it")
        self.label = label


class TextError(TreepieceError):
    """An utterance that an encoder cannot take, or a subword tokenizer that cannot be read."""


class OptionError(TreepieceError):
    """An option out of its range."""


class DataError(TreepieceError):
    """A data file or row that cannot be read."""


class TokenizerFileError(TreepieceError):
    """A saved tokenizer that is missing, damaged or of a newer format."""


class BundleError(TreepieceError):
    """A model folder that is missing, damaged, of a newer format or of another kind."""


class RecipeError(TreepieceError):
    """A training recipe that cannot be read or does not fit the model."""


class CheckpointError(TreepieceError):
    """A training run that cannot be saved or gone on with."""
