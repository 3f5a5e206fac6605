"""Requests and responses as pydantic models, for validation and for the OpenAPI description.

Requests go through the library's own checks, so that the messages are the same in Python and over HTTP. Responses are
not validated on their way out: they are the output of `Result.to_dict`, and tests compare them with these models.
"""

from __future__ import annotations

from typing import Annotated, SupportsIndex

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from treepiece.checks import fraction, whole_number
from treepiece.errors import OptionError
from treepiece.runtime.parser import MAX_NBEST
from treepiece.serving.settings import Settings

_KINDS = {bool: "true or false", type(None): "null", list: "a list", dict: "an object", str: "a text"}
_SHOWN = 40


class _Kind:
    """Replaces a value in an error message that is too large, or nested too deeply, to quote."""

    def __init__(self, value: object) -> None:
        self._name = _KINDS.get(type(value), "a number")

    def __repr__(self) -> str:
        return self._name


def _check_text(name: str | None, value: object) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{name} must be a text, got {_Kind(value)!r}")
    return value


def _text(value: object, info: ValidationInfo) -> str:
    return _check_text(info.field_name, value)


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise OptionError(f"texts must be a list of texts, got {_Kind(value)!r}")
    return [_check_text(f"text {number}", text) for number, text in enumerate(value)]


def _nbest(value: object) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else _quotable(value)  # JSON has one kind
    return whole_number("nbest", number, 1, MAX_NBEST)


def _quotable(value: object) -> SupportsIndex:
    """Return a value that the library may quote; the library checks its type."""
    is_long = isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _SHOWN)
    return _Kind(value) if is_long else value  # type: ignore[return-value]


def _min_confidence(value: object) -> float:
    return fraction("min_confidence", _quotable(value))  # type: ignore[arg-type]


_Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
_Texts = Annotated[list[str], PlainValidator(_texts), WithJsonSchema({"type": "array", "items": {"type": "string"}})]
_Nbest = Annotated[int, PlainValidator(_nbest), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_NBEST})]
_MinConfidence = Annotated[
    float, PlainValidator(_min_confidence), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]


class ParseBody(BaseModel):
    """One text or several, and options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
            "examples": [{"text": "remind me to water the plants tonight", "nbest": 3}],
        },
    )

    text: _Text = Field(default="", description="A text.")
    texts: _Texts = Field(default=[], description="Several texts.")
    nbest: _Nbest = Field(default=1, description="The number of candidates to return per text.")
    min_confidence: _MinConfidence = Field(
        default=0.0, description="A text whose best candidate has less confidence counts as not understood."
    )

    @model_validator(mode="after")
    def _check_one(self) -> ParseBody:
        given = self.model_fields_set & {"text", "texts"}
        if len(given) != 1:
            found = "both" if given else "neither"
            raise OptionError(f"give one text as 'text', or a list of them as 'texts', got {found}")
        return self


class TokenizeBody(BaseModel):
    """A tree to cut into units."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"tree": "[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]"}]},
    )

    tree: _Text = Field(description="TOP text, with or without words.")


def request_schema(model: type[BaseModel], settings: Settings) -> dict[str, object]:
    """Return the description of a request body, with the limits of the server."""
    schema = model.model_json_schema()
    for name, field in schema["properties"].items():
        if name == "texts":
            field["maxItems"] = settings.max_texts
            field["items"]["maxLength"] = settings.max_characters
        elif name in ("text", "tree"):
            field["maxLength"] = settings.max_characters
        else:
            continue
        field.pop("default", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


class LeafAnswer(BaseModel):
    """A slot that quotes the text: the characters from `start` up to `end`."""

    label: str
    text: str
    start: int
    end: int
    confidence: float


class CorrectionAnswer(BaseModel):
    """A word that was read as another: the characters from `start` up to `end`."""

    start: int
    end: int
    text: str
    read: str


class CandidateAnswer(BaseModel):
    """One parse of a text."""

    tree: str | None = Field(description="TOP text; null if not understood, or if TOP text cannot hold the words.")
    skeleton: str | None = Field(description="The tree without words.")
    confidence: float = Field(description="The probability that the whole tree is right, calibrated.")
    score: float = Field(description="The share of this candidate among the requested candidates.")
    leaves: list[LeafAnswer]
    units: list[str] = Field(description="The subtrees that the parser generated, in order.")
    unit_places: list[int] = Field(description="For each node of the skeleton, in pre-order, the index of its unit.")
    passes: int = Field(description="The number of decoder passes.")


class ParseAnswer(CandidateAnswer):
    """The parse of a text: the best candidate, and with `nbest` all of them."""

    text: str
    understood: bool
    corrections: list[CorrectionAnswer] = Field(description="Words that the model has never seen, and what was read.")
    in_scope: float | None = Field(
        description="The probability that the model was trained for such texts; null if it cannot tell."
    )
    several: float | None = Field(
        description="The probability that the text is several requests in one; null if the model cannot tell."
    )
    requests: list[PartAnswer] = Field(description="The parses of two parts, if the text is probably two requests.")
    milliseconds: dict[str, float] = Field(description="The time of each stage.")
    nbest: list[CandidateAnswer] | None = Field(default=None, description="All candidates, if there are several.")


class PartAnswer(ParseAnswer):
    """The parse of a part of a text: the characters from `start` up to `end`, where the offsets of its leaves begin."""

    start: int
    end: int


class UnreadableText(BaseModel):
    """An error for one of several texts."""

    text: str
    error: str


class ParseAnswers(BaseModel):
    """The parses of several texts, in their order."""

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
    unit_places: list[int] = Field(description="For each node of the skeleton, in pre-order, the index of its unit.")


class ModelAnswer(BaseModel):
    """The model, and the limits of the server."""

    name: str
    kind: str = Field(description="treepiece, ar or nar.")
    version: str = Field(description="A fingerprint of bundle and precision: equal versions give equal answers.")
    format: int = Field(description="The version of the bundle's format.")
    treepiece: str = Field(description="The version of the library.")
    precision: str
    threads: int
    data: str = Field(description="The data of the scores.")
    scores: dict[str, float] = Field(description="Exact match (em), without words (em_s), and calibration errors.")
    spelling: bool = Field(description="Whether spelling is corrected.")
    labels: list[str]
    units: int | None = Field(description="The number of units; null for a baseline.")
    limits: dict[str, float]


class Health(BaseModel):
    """The state of the server."""

    status: str


class ProblemAnswer(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
