"""What goes in and what comes out, as the OpenAPI description shows it.

Requests are checked with the library's own checks, so that a wrong value is named in the same words here and there.
Answers are not checked on their way out: they are what `Result.to_json` makes, and tests hold them against this.
"""

from __future__ import annotations

from typing import Annotated, SupportsIndex

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from treepiece.errors import OptionError
from treepiece.options import fraction, whole_number
from treepiece.runtime.parser import MOST_READINGS
from treepiece.serving.settings import Settings

_KINDS = {bool: "true or false", type(None): "null", list: "a list", dict: "an object", str: "a text"}
_SHOWN = 40


class _Kind:
    """Stands in an error message for a value that is too large, or nested too deeply, to be quoted."""

    def __init__(self, value: object) -> None:
        self._name = _KINDS.get(type(value), "a number")

    def __repr__(self) -> str:
        return self._name


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{name} must be a text, got {_Kind(value)!r}")
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise OptionError(f"texts must be a list of texts, got {_Kind(value)!r}")
    return [_text(f"text {number}", text) for number, text in enumerate(value)]


def _nbest(value: object) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else _quotable(value)  # JSON has one kind
    return whole_number("nbest", number, 1, MOST_READINGS)


def _quotable(value: object) -> SupportsIndex:
    """Return a value as the library may quote it; which type it has is for the library to check."""
    is_long = isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _SHOWN)
    return _Kind(value) if is_long else value  # type: ignore[return-value]


def _min_confidence(value: object) -> float:
    return fraction("min_confidence", _quotable(value))  # type: ignore[arg-type]


_Nbest = WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_READINGS})
_MinConfidence = WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
_Texts = WithJsonSchema({"type": "array", "items": {"type": "string"}})


class ParseRequest(BaseModel):
    """One text, or several, and what is asked of the answers."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "examples": [{"text": "remind me to water the plants tonight", "nbest": 3}],
        },
    )

    text: Annotated[
        str, PlainValidator(lambda value: _text("text", value)), WithJsonSchema({"type": "string", "minLength": 1})
    ] = Field(default="", description="A text.")
    texts: Annotated[list[str], PlainValidator(_texts), _Texts] = Field(default=[], description="Several texts.")
    nbest: Annotated[int, PlainValidator(_nbest), _Nbest] = Field(default=1, description="So many readings of a text.")
    min_confidence: Annotated[float, PlainValidator(_min_confidence), _MinConfidence] = Field(
        default=0.0, description="Where the best reading has less, the text is not understood."
    )

    @model_validator(mode="after")
    def _check_one(self) -> ParseRequest:
        given = self.model_fields_set & {"text", "texts"}
        if len(given) != 1:
            found = "both" if given else "neither"
            raise OptionError(f"give one text as 'text', or a list of them as 'texts', got {found}")
        return self


class TokenizeRequest(BaseModel):
    """A tree to cut into units."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tree": "[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]"}]},
    )

    tree: Annotated[
        str, PlainValidator(lambda value: _text("tree", value)), WithJsonSchema({"type": "string", "minLength": 1})
    ] = Field(description="TOP text, with or without words.")


def request_schema(model: type[BaseModel], settings: Settings) -> dict[str, object]:
    """Return the JSON Schema of a request, with the limits that are in force."""
    schema = model.model_json_schema()
    for name, field in schema["properties"].items():
        if name in ("text", "tree"):
            field["maxLength"] = settings.most_characters
            field.pop("default", None)
        elif name == "texts":
            field["maxItems"] = settings.most_texts
            field["items"]["maxLength"] = settings.most_characters
            field.pop("default", None)
    return schema


class LeafAnswer(BaseModel):
    """A slot that quotes the text: the characters from `start` up to `end`."""

    label: str
    text: str
    start: int
    end: int
    confidence: float


class Reading(BaseModel):
    """One reading of a text."""

    tree: str | None = Field(description="TOP text; null if that cannot hold the words, or nothing was understood.")
    skeleton: str | None = Field(description="The tree without words.")
    confidence: float = Field(description="How probable it is that the whole reading is right.")
    score: float = Field(description="Its share among the readings that were asked for.")
    leaves: list[LeafAnswer]
    units: list[str] = Field(description="The subtrees that the parser wrote, in order.")
    unit_places: list[int] = Field(description="For each node of the skeleton, in pre-order, which unit it is from.")
    passes: int = Field(description="How often a decoder ran.")


class ParseAnswer(Reading):
    """What a text means: the best reading, and with `nbest` all of them."""

    text: str
    understood: bool
    milliseconds: dict[str, float] = Field(description="How long each stage took.")
    nbest: list[Reading] | None = Field(default=None, description="All readings, if more than one was asked for.")


class UnreadableText(BaseModel):
    """A text of several that cannot be read."""

    text: str
    error: str


class ParseAnswers(BaseModel):
    """What each of several texts means, in their order."""

    results: list[ParseAnswer | UnreadableText]


class UnitAnswer(BaseModel):
    """A unit of a tree; `_` is a placeholder."""

    id: int
    text: str
    probability: float


class TokenizeAnswer(BaseModel):
    """The units of a tree."""

    skeleton: str
    units: list[UnitAnswer]
    unit_places: list[int] = Field(description="For each node of the skeleton, in pre-order, which unit it is from.")


class ModelAnswer(BaseModel):
    """The model, and what the server takes."""

    name: str
    kind: str = Field(description="treepiece, ar or nar.")
    version: str = Field(description="A fingerprint of bundle and precision: equal versions give equal answers.")
    format: int = Field(description="The version of the bundle's format.")
    treepiece: str = Field(description="The version of the library.")
    precision: str
    threads: int
    data: str = Field(description="What the scores were measured on.")
    scores: dict[str, float] = Field(description="Exact match (em), without words (em_s), and calibration errors.")
    labels: list[str]
    units: int | None = Field(description="How many units there are; null for a baseline.")
    limits: dict[str, float]


class Health(BaseModel):
    """A word on the server."""

    status: str


class ProblemAnswer(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
