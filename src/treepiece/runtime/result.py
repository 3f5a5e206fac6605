"""The result of a parse: n-best candidates with their trees, slots and confidences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from treepiece.errors import TreeParseError
from treepiece.scope import Scope
from treepiece.spelling import Correction
from treepiece.trees.brackets import format_brackets
from treepiece.trees.drawing import outline, svg
from treepiece.trees.frame import Frame, Leaf
from treepiece.trees.labels import entity_name, plain_name
from treepiece.trees.node import INTENT_PREFIX, Node, is_slot

NOT_UNDERSTOOD = "not understood"


class Slot(NamedTuple):
    """A slot that quotes the text: `text` is `result.text[start:end]`, and `intent` the intent that it belongs to."""

    label: str
    text: str
    start: int
    end: int
    intent: str
    confidence: float


@dataclass(frozen=True, repr=False)
class Candidate:
    """One parse of a text.

    `confidence` is the probability that the whole frame is right, and `leaf_confidences` the same for the span of each
    leaf. `score` is the candidate's share among the requested candidates: the scores add up to one. `units` are the
    subtrees that the parser generated, as text, and `unit_places` gives for each node of the skeleton, in pre-order,
    the unit it belongs to; a baseline has none. `passes` is the number of decoder passes.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
    >>> Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1)
    Candidate('[IN:GET_WEATHER [SL:DATE_TIME today ] ]', confidence=0.900)
    """

    frame: Frame
    confidence: float
    leaf_confidences: tuple[float, ...]
    score: float
    units: tuple[str, ...]
    unit_places: tuple[int, ...]
    passes: int

    def __repr__(self) -> str:
        return f"Candidate({self.tree or str(self.frame.tree)!r}, confidence={self.confidence:.3f})"

    @property
    def intent(self) -> str:
        """The label of the top intent."""
        return self.frame.skeleton.label

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The slots that quote the text, with their words exactly as typed."""
        return self.frame.leaves

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that quote the text, from left to right; those of nested intents too.

        >>> frame = Frame.from_brackets("[IN:REMIND remind me to [SL:TODO [IN:CALL call [SL:NAME mom ] ] ] ]")
        >>> Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1).slots
        (Slot(label='SL:NAME', text='mom', start=18, end=21, intent='IN:CALL', confidence=0.8),)
        """
        leaves = zip(self.leaves, _intents_of_leaves(self.frame.skeleton), self.leaf_confidences, strict=True)
        return tuple(
            Slot(leaf.label, leaf.text, leaf.chars.start, leaf.chars.end, intent, confidence)
            for leaf, intent, confidence in leaves
        )

    @cached_property
    def tree(self) -> str | None:
        """The frame as TOP text; None if TOP text cannot hold the user's words, such as a bracket between blanks."""
        try:
            return self.frame.to_brackets()
        except TreeParseError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as plain values, which `json.dumps` can write."""
        leaves = [slot._asdict() for slot in self.slots]
        for leaf in leaves:
            del leaf["intent"]
        return {
            "tree": self.tree,
            "skeleton": format_brackets(self.frame.skeleton),
            "confidence": self.confidence,
            "score": self.score,
            "leaves": leaves,
            "units": list(self.units),
            "unit_places": list(self.unit_places),
            "passes": self.passes,
        }

    def to_entities(self, *, lower: bool = False) -> dict[str, Any]:
        """Return the candidate as an intent and flat entities, in the form of Rasa.

        The slots that quote the text become entities; a label such as `SL:CITY/DEPARTURE#1` gives one with a role and a
        group. The `path` of an entity has the labels from the root to its slot, and `nested_intents` lists the intents
        below the top one with theirs. In a path, `[2]` marks the second of several siblings with one label. So only one
        thing is lost: where an intent without entities stands among its siblings. Names have no `IN:` and `SL:`.

        >>> frame = Frame.from_brackets("[IN:REMIND remind me to [SL:TODO [IN:CALL call [SL:NAME mom ] ] ] ]")
        >>> value = Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1).to_entities()
        >>> value["intent"], value["nested_intents"]
        ({'name': 'REMIND', 'confidence': 0.9}, [{'name': 'CALL', 'path': ['IN:REMIND', 'SL:TODO', 'IN:CALL']}])
        >>> value["entities"]  # doctest: +NORMALIZE_WHITESPACE
        [{'entity': 'NAME', 'value': 'mom', 'start': 18, 'end': 21, 'confidence': 0.8,
          'path': ['IN:REMIND', 'SL:TODO', 'IN:CALL', 'SL:NAME']}]

        Args:
            lower: Write names in lower case, as Rasa and GLiNER do. Paths keep the labels of the model.
        """
        cased = str.lower if lower else str
        paths, nested = [], []
        for node, path in _walk_paths(self.frame.skeleton):
            if not is_slot(node.label):
                nested.append({"name": cased(plain_name(node.label)), "path": path})
            elif not node.children:
                paths.append(path)
        entities = []
        for slot, path in zip(self.slots, paths, strict=True):
            name = {key: cased(part) for key, part in entity_name(slot.label)._asdict().items() if part is not None}
            chars = {"value": slot.text, "start": slot.start, "end": slot.end}
            entities.append({**name, **chars, "confidence": slot.confidence, "path": path})
        intent = {"name": cased(plain_name(self.intent)), "confidence": self.confidence}
        return {"intent": intent, "entities": entities, "nested_intents": nested[not is_slot(self.intent) :]}


def _walk_paths(skeleton: Node) -> Iterator[tuple[Node, list[str]]]:
    """Yield the nodes of a skeleton in pre-order, each with the labels from the root to it.

    >>> [path[-1] for _, path in _walk_paths(Node("IN:A", [Node("SL:B"), Node("SL:B")]))]
    ['IN:A', 'SL:B', 'SL:B[2]']
    """
    stack = [(skeleton, [skeleton.label])]
    while stack:
        node, path = stack.pop()
        yield node, path
        below = []
        seen: Counter[str] = Counter()
        for child in node.children:
            assert isinstance(child, Node)  # a skeleton has no words
            seen[child.label] += 1
            place = f"[{seen[child.label]}]" if seen[child.label] > 1 else ""
            below.append((child, [*path, child.label + place]))
        stack += reversed(below)


def _intents_of_leaves(skeleton: Node) -> list[str]:
    """Return the nearest intent above each utterance leaf, from left to right."""
    found = []
    stack = [(skeleton, skeleton.label)]
    while stack:
        node, intent = stack.pop()
        if node.label.startswith(INTENT_PREFIX):
            intent = node.label
        elif not node.children and is_slot(node.label):
            found.append(intent)
        stack.extend((child, intent) for child in reversed(node.children) if isinstance(child, Node))
    return found


class Part(NamedTuple):
    """The characters of a text from `start` up to `end`, and the result for them alone."""

    start: int
    end: int
    result: Result


@dataclass(frozen=True, repr=False)
class Result:
    """The candidates for a text, the best first, and the time of each stage in milliseconds.

    `corrections` are the words that were read as others, because the model has never seen them. Everything else quotes
    the text as it was typed. `scope` has the probabilities that the text is of a kind that the parser was trained for,
    and that it is several requests in one; they are part of all confidences. It is None if the bundle cannot tell.
    If the text is probably two requests, `requests` has the result of each.

    If the best is less confident than `min_confidence`, the text is not understood: `understood` is False, and
    `frame`, `tree` and `intent` are None. `best` and `candidates` exist in any case.

    >>> frame = Frame.from_brackets("[IN:GET_WEATHER rain [SL:DATE_TIME today ] ]")
    >>> result = Result("rain today", (Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1),))
    >>> result
    Result('rain today', tree='[IN:GET_WEATHER [SL:DATE_TIME today ] ]', confidence=0.900)
    >>> result.intent, [(slot.label, slot.text) for slot in result.slots]
    ('IN:GET_WEATHER', [('SL:DATE_TIME', 'today')])
    """

    text: str
    candidates: tuple[Candidate, ...]
    understood: bool = True
    times: Mapping[str, float] = field(default_factory=dict, compare=False)
    corrections: tuple[Correction, ...] = ()
    scope: Scope | None = None
    requests: tuple[Part, ...] = ()

    @property
    def best(self) -> Candidate:
        """The best candidate, even if it is not confident enough."""
        return self.candidates[0]

    @property
    def frame(self) -> Frame | None:
        """The meaning of the text; None if it was not understood."""
        return self.best.frame if self.understood else None

    @property
    def confidence(self) -> float:
        """The probability that the best candidate is right."""
        return self.best.confidence

    @property
    def in_scope(self) -> float | None:
        """The probability that the parser was trained for texts such as this one; None if the bundle cannot tell."""
        return None if self.scope is None else self.scope.in_scope

    @property
    def several(self) -> float | None:
        """The probability that the text is several requests in one; None if the bundle cannot tell."""
        return None if self.scope is None else self.scope.several

    @property
    def tree(self) -> str | None:
        """The frame as TOP text; None if the text was not understood, or if TOP text cannot hold its words."""
        return self.best.tree if self.understood else None

    @property
    def intent(self) -> str | None:
        """The label of the top intent, such as `IN:CREATE_ALARM`; None if the text was not understood."""
        return self.best.intent if self.understood else None

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that quote the text, from left to right; empty if the text was not understood."""
        return self.best.slots if self.understood else ()

    def with_min_confidence(self, least: float) -> Result:
        """Return the same result, understood if its confidence is at least this, and so the results of its parts."""
        parts = tuple(part._replace(result=part.result.with_min_confidence(least)) for part in self.requests)
        return replace(self, understood=self.confidence >= least, requests=parts)

    def __repr__(self) -> str:
        found = f"tree={self.tree or self.best.intent!r}" if self.understood else "understood=False"
        return f"Result({self.text!r}, {found}, confidence={self.confidence:.3f})"

    def __str__(self) -> str:
        return self.tree or self.draw()

    def draw(self, *, units: bool = False, colour: bool = False) -> str:
        """Return a drawing of the tree for a terminal, on request with the number or colour of each node's unit."""
        if not self.understood:
            return NOT_UNDERSTOOD
        places = self.best.unit_places if units or colour else ()
        return outline(self.best.frame.tree, places or None, colour=colour)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, which `json.dumps` can write."""
        best = self.best.to_dict()
        if not self.understood:
            best |= {"tree": None, "skeleton": None, "leaves": [], "units": [], "unit_places": []}
        value = {
            "text": self.text,
            "understood": self.understood,
            **best,
            "corrections": [one._asdict() for one in self.corrections],
            "in_scope": self.in_scope,
            "several": self.several,
            "requests": [{"start": start, "end": end, **one.to_dict()} for start, end, one in self.requests],
            "milliseconds": dict(self.times),
        }
        if len(self.candidates) > 1:
            value["nbest"] = [candidate.to_dict() for candidate in self.candidates]
        return value

    def to_entities(self, *, lower: bool = False) -> dict[str, Any]:
        """Return the text, its intent and its flat entities, in the form of Rasa (see `Candidate.to_entities`).

        If the text was not understood, the name of the intent is None, and there are no entities.
        """
        if not self.understood:
            intent = {"name": None, "confidence": self.confidence}
            return {"text": self.text, "intent": intent, "entities": [], "nested_intents": []}
        return {"text": self.text, **self.best.to_entities(lower=lower)}

    def _repr_svg_(self) -> str | None:
        return svg(self.best.frame.tree, self.best.unit_places or None) if self.understood else None
