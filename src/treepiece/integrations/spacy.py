"""The spaCy component `treepiece`, which spaCy finds by its name.

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

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from treepiece.bundle import BUNDLED
from treepiece.errors import OptionError, TextError
from treepiece.extras import install_command
from treepiece.runtime.parser import Parser
from treepiece.runtime.result import Candidate, Part, Result
from treepiece.scope import Scope
from treepiece.spelling import Correction
from treepiece.trees.frame import Frame

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.util import minibatch
except ModuleNotFoundError as error:
    package = str(error.name).partition(".")[0]
    raise ModuleNotFoundError(
        f"the spaCy component needs {package}, which is not installed: {install_command('spacy')}", name=error.name
    ) from None

NAME = "treepiece"
"""The name of the component, and the key of its result in `doc.user_data`."""


@dataclass(frozen=True)
class ComponentConfig:
    """The configuration of the component."""

    model: str = BUNDLED
    """The folder of a bundle with graphs, or `bundled`."""
    precision: str | None = None
    """`int8` or `float`; by default the fastest that the model has."""
    threads: int | None = None
    """The number of cores to use; by default, all."""
    nbest: int = 1
    """The maximum number of candidates in `doc._.parse`."""
    min_confidence: float = 0.0
    """If the confidence is lower, `doc._.frame` is None."""
    spans_key: str = NAME
    """The key of the leaves in `doc.spans`."""

    def __post_init__(self) -> None:
        if not self.spans_key:
            raise OptionError(f"spans_key must be a name of one character or more, got {self.spans_key!r}")

    def load(self) -> Parser:
        """Return the parser; raise if the model cannot be loaded, or does not support the configuration."""
        parser = Parser.load(self.model, precision=self.precision, threads=self.threads)
        parser.request(self.nbest, self.min_confidence)
        return parser


class TreepieceComponent:
    """Parses docs: sets `doc._.frame`, `doc._.parse`, `doc._.parse_error` and the spans of the leaves."""

    def __init__(self, config: ComponentConfig) -> None:
        set_extensions()
        self.config = config
        self._parser = config.load()
        self._process = os.getpid()
        self._inherited: list[Parser] = []

    @property
    def parser(self) -> Parser:
        """The parser of this process."""
        # A fork, such as those of `nlp.pipe(n_process=2)`, has a single thread, and a parser would wait for its others.
        if os.getpid() != self._process:
            self._inherited.append(self._parser)  # never freed: that would wait for its other threads as well
            self._parser = self.config.load()
            self._process = os.getpid()
        return self._parser

    def __reduce__(self) -> tuple[Callable[[ComponentConfig], "TreepieceComponent"], tuple[ComponentConfig]]:
        """Pickle only the configuration: processes that are not forked load the model."""
        return TreepieceComponent, (self.config,)

    def __call__(self, doc: Doc) -> Doc:
        """Parse a doc."""
        try:
            result = self.parser(doc.text, nbest=self.config.nbest, min_confidence=self.config.min_confidence)
        except TextError as error:
            return self._set(doc, error)
        return self._set(doc, result)

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse docs, `batch_size` at a time."""
        nbest, min_confidence = self.config.nbest, self.config.min_confidence
        for batch in minibatch(docs, batch_size):
            texts = [doc.text for doc in batch]
            results = self.parser.try_batch(texts, nbest=nbest, min_confidence=min_confidence)
            for doc, result in zip(batch, results, strict=True):
                yield self._set(doc, result)

    def _set(self, doc: Doc, result: Result | TextError) -> Doc:
        """Store a result as text: spaCy sends docs to other processes and to disk only with plain values."""
        frame = None
        if isinstance(result, TextError):
            doc.user_data[NAME] = {"error": str(result)}
        else:
            doc.user_data[NAME] = {"parse": write_result(result)}
            frame = result.frame
        doc.spans[self.config.spans_key] = [] if frame is None else leaf_spans(doc, frame)
        return doc


def leaf_spans(doc: Doc, frame: Frame) -> list[Span]:
    """Return the leaves of a frame as spans; a leaf that starts or ends inside a token gets the whole token.

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


def write_result(result: Result) -> str:
    """Return a result as JSON; unlike `Result.to_dict`, it keeps everything."""
    return json.dumps(result, default=_to_json, ensure_ascii=False)


def _to_json(value: Result | Candidate | Frame) -> dict[str, Any]:
    if isinstance(value, Frame):
        return value.to_json()
    return {one.name: getattr(value, one.name) for one in fields(value)}


def read_result(text: str) -> Result:
    """Return the result that `write_result` was given.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
    >>> result = Result("rain today", (Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1),))
    >>> read_result(write_result(result)) == result
    True
    """
    return _as_result(json.loads(text))


def _as_result(value: dict[str, Any]) -> Result:
    candidates = []
    for one in value.pop("candidates"):
        frame = Frame.from_json(one.pop("frame"))
        plain: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in one.items()}
        candidates.append(Candidate(frame, **plain))
    corrections = tuple(Correction(*one) for one in value.pop("corrections", ()))
    requests = tuple(Part(start, end, _as_result(one)) for start, end, one in value.pop("requests", ()))
    scope = value.pop("scope", None)
    return Result(
        candidates=tuple(candidates),
        corrections=corrections,
        scope=None if scope is None else Scope(*scope),
        requests=requests,
        **value,
    )


def get_parse(doc: Doc) -> Result | None:
    """Return the result; None if the doc was not parsed, or cannot be."""
    text: str | None = doc.user_data.get(NAME, {}).get("parse")
    return None if text is None else read_result(text)


def get_frame(doc: Doc) -> Frame | None:
    """Return the frame; None also if the text was not understood."""
    parse = get_parse(doc)
    return None if parse is None else parse.frame


def get_error(doc: Doc) -> str | None:
    """Return why a doc cannot be parsed; None if it can be."""
    error: str | None = doc.user_data.get(NAME, {}).get("error")
    return error


_EXTENSIONS: dict[str, Callable[[Doc], Any]] = {"frame": get_frame, "parse": get_parse, "parse_error": get_error}


def set_extensions() -> None:
    """Register `doc._.frame`, `doc._.parse` and `doc._.parse_error`; raise if another component has one of them."""
    for name, getter in _EXTENSIONS.items():
        if Doc.has_extension(name):
            found = Doc.get_extension(name)[2]
            if getattr(found, "__module__", None) != getter.__module__:
                raise OptionError(
                    f"doc._.{name} is taken by another extension, and the treepiece component needs it: rename the "
                    f"other one, or remove it with Doc.remove_extension({name!r})"
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
    """Return the component; spaCy calls this with its configuration."""
    return TreepieceComponent(ComponentConfig(model, precision, threads, nbest, min_confidence, spans_key))


Language.factory(
    NAME,
    default_config=asdict(ComponentConfig()),
    assigns=["doc._.frame", "doc._.parse", "doc._.parse_error", "doc.spans"],
    func=make_component,
)
