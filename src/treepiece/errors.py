"""The errors that treepiece raises on bad input.

Each message is one line that says where the error is, what was found, what was expected and what to do. The command
line prints that line and exits with status 2.
"""


class TreepieceError(ValueError):
    """Bad input of any kind; the base class of all errors below."""


class TreeParseError(TreepieceError):
    """Bracket text or JSON that is not a tree.

    `column` is the position of the error in the text, counted from 1; None if there is no text.
    """

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason if column is None else f"col {column}: {reason}")
        self.column = column


class FrameError(TreepieceError):
    """Words, skeleton and spans that do not fit together."""


class UnitError(TreepieceError):
    """Unit ids that do not form a tree, or a tree that the vocabulary cannot encode."""


class UnknownLabelError(UnitError):
    """A label that did not occur in the training data of the tokenizer."""

    def __init__(self, label: str) -> None:
        super().__init__(f"label {label!r} is not in the vocabulary: train the tokenizer on trees that contain it")
        self.label = label


class TextError(TreepieceError):
    """An utterance that is too long for the encoder, or a subword tokenizer that cannot be loaded."""


class OptionError(TreepieceError):
    """An option with an invalid value."""


class DataError(TreepieceError):
    """A data file or row that cannot be read."""


class TokenizerFileError(TreepieceError):
    """A saved tokenizer that is missing, damaged or of a newer format."""


class BundleError(TreepieceError):
    """A model folder that is missing, damaged, of a newer format or of another kind."""


class RecipeError(TreepieceError):
    """A training recipe that cannot be read or does not fit the model."""


class CheckpointError(TreepieceError):
    """A training run that cannot be saved or resumed."""
