"""The spaCy component, which spaCy finds by its name.

>>> import spacy
>>> nlp = spacy.blank("en")
>>> component = nlp.add_pipe("treepiece")
>>> doc = nlp("will it rain in oslo on sunday")
>>> doc._.frame.skeleton
Node('[IN:GET_WEATHER [SL:WEATHER_ATTRIBUTE ] [SL:LOCATION ] [SL:DATE_TIME ] ]')
>>> [(span.label_, span.text) for span in doc.spans["treepiece"]]
[('SL:WEATHER_ATTRIBUTE', 'rain'), ('SL:LOCATION', 'oslo'), ('SL:DATE_TIME', 'on sunday')]
"""

# Not `from __future__ import annotations`: spaCy checks the configuration against the annotations of `make_component`,
# and needs them as types.

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.util import minibatch
except ModuleNotFoundError as error:
    package = str(error.name).partition(".")[0]
    raise ModuleNotFoundError(
        f"the spaCy component needs {package}, which is not installed: pip install 'treepiece[spacy]'", name=error.name
    ) from None

from treepiece.errors import OptionError, TextError
from treepiece.integrations.storage import read_result, write_result
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Result
from treepiece.shipped import BUNDLED
from treepiece.trees.frame import Frame

NAME = "treepiece"
"""What the component is called, and where it keeps its answer in `doc.user_data`."""


@dataclass(frozen=True)
class Options:
    """The configuration of the component."""

    model: str = BUNDLED
    """The folder of a bundle with graphs, or `bundled`."""
    precision: str | None = None
    """`int8` or `float`; by default the fastest that the model has."""
    threads: int | None = None
    """How many cores; by default, all."""
    nbest: int = 1
    """How many readings `doc._.parse` has."""
    min_confidence: float = 0.0
    """A frame that is less probable than this to be right is None."""
    spans_key: str = NAME
    """Where in `doc.spans` the leaves are."""

    def __post_init__(self) -> None:
        if not self.spans_key:
            raise OptionError(f"spans_key must be a name of one character or more, got {self.spans_key!r}")

    def load(self) -> Parser:
        """Return the parser; raise if there is none such, or if it cannot do what is asked of it."""
        parser = Parser.load(self.model, precision=self.precision, threads=self.threads)
        parser.asked(self.nbest, self.min_confidence)
        return parser


class TreepieceComponent:
    """Parses docs: sets `doc._.frame`, `doc._.parse`, `doc._.parse_error` and the spans of the leaves."""

    def __init__(self, options: Options) -> None:
        set_extensions()
        self.options = options
        self._parser = options.load()
        self._process = os.getpid()
        self._inherited: list[Parser] = []

    @property
    def parser(self) -> Parser:
        """The parser of this process."""
        # A fork, such as those of `nlp.pipe(n_process=2)`, has no threads but one, and a parser waits for its others.
        if os.getpid() != self._process:
            self._inherited.append(self._parser)  # never freed: to end it means to wait for its other threads as well
            self._parser = self.options.load()
            self._process = os.getpid()
        return self._parser

    def __reduce__(self) -> tuple[Callable[[Options], "TreepieceComponent"], tuple[Options]]:
        """Pickle as options: where processes are not forked, each loads the model anew."""
        return TreepieceComponent, (self.options,)

    def __call__(self, doc: Doc) -> Doc:
        """Parse a doc."""
        try:
            answer = self.parser(doc.text, nbest=self.options.nbest, min_confidence=self.options.min_confidence)
        except TextError as error:
            return self._set(doc, error)
        return self._set(doc, answer)

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse docs, `batch_size` at a time."""
        nbest, min_confidence = self.options.nbest, self.options.min_confidence
        for batch in minibatch(docs, batch_size):
            texts = [doc.text for doc in batch]
            answers = self.parser.try_batch(texts, nbest=nbest, min_confidence=min_confidence)
            for doc, answer in zip(batch, answers, strict=True):
                yield self._set(doc, answer)

    def _set(self, doc: Doc, answer: Result | TextError) -> Doc:
        """Store an answer as text: a doc goes from process to process, and to disk, with plain values only."""
        frame = None
        if isinstance(answer, TextError):
            doc.user_data[NAME] = {"error": str(answer)}
        else:
            doc.user_data[NAME] = {"parse": write_result(answer)}
            frame = answer.frame
        doc.spans[self.options.spans_key] = [] if frame is None else leaf_spans(doc, frame)
        return doc


def leaf_spans(doc: Doc, frame: Frame) -> list[Span]:
    """Return the leaves of a frame as spans of whole tokens: one that begins or ends inside a token gets all of it.

    >>> import spacy
    >>> doc = spacy.blank("en")("wake me 5am/6am")
    >>> frame = Frame.from_brackets("[IN:CREATE_ALARM wake me [SL:DATE_TIME 5am ] / 6am ]", doc.text)
    >>> frame.leaves[0].text, leaf_spans(doc, frame)
    ('5am', [5am/6am])
    """
    return [
        doc.char_span(leaf.chars.start, leaf.chars.end, label=leaf.label, alignment_mode="expand")
        for leaf in frame.leaves
        if leaf.text
    ]


def get_parse(doc: Doc) -> Result | None:
    """Return the whole answer; None if the doc was not parsed, or cannot be."""
    text: str | None = doc.user_data.get(NAME, {}).get("parse")
    return None if text is None else read_result(text)


def get_frame(doc: Doc) -> Frame | None:
    """Return what a doc means; None also if it was not understood."""
    parse = get_parse(doc)
    return None if parse is None else parse.frame


def get_error(doc: Doc) -> str | None:
    """Return why a doc cannot be parsed; None if it can."""
    error: str | None = doc.user_data.get(NAME, {}).get("error")
    return error


_EXTENSIONS: dict[str, Callable[[Doc], Any]] = {"frame": get_frame, "parse": get_parse, "parse_error": get_error}


def set_extensions() -> None:
    """Make `doc._.frame`, `doc._.parse` and `doc._.parse_error` known; raise if one is somebody else's already."""
    for name, getter in _EXTENSIONS.items():
        if Doc.has_extension(name):
            found = Doc.get_extension(name)[2]
            if getattr(found, "__module__", None) != getter.__module__:
                raise OptionError(
                    f"doc._.{name} is taken by another extension: the spaCy component of treepiece sets it too; "
                    f"give the other one another name, or take it away with Doc.remove_extension({name!r})"
                )
        Doc.set_extension(name, getter=getter, force=True)


def make_component(
    nlp: Language,
    name: str,
    model: str,
    precision: str | None,
    threads: int | None,
    nbest: int,
    min_confidence: float,
    spans_key: str,
) -> TreepieceComponent:
    """Return the component; spaCy calls this with the configuration."""
    return TreepieceComponent(Options(model, precision, threads, nbest, min_confidence, spans_key))


Language.factory(
    NAME,
    default_config=asdict(Options()),
    assigns=["doc._.frame", "doc._.parse", "doc._.parse_error", "doc.spans"],
    func=make_component,
)
