"""Parses as calls of tools: the intents of a model as functions in JSON Schema, in the form of OpenAI and LangChain.

Each intent that can be at the top of a tree is a function, and its slots are the parameters. Any slot can occur more
than once, and any can be missing, so that every parameter is an array and none is required. An item is the text of a
slot or, for a slot that holds an intent, a call of that intent.

>>> from treepiece.definition import DecoderConfig
>>> from treepiece.trees.frame import Frame
>>> from treepiece.trees.node import Node
>>> tools = ToolSet(Definition.of_trees(ModelKind.AR, [Node("IN:WAKE", [Node("SL:TIME")])], decoder=DecoderConfig()))
>>> tools.schemas[0]["function"]["parameters"]["properties"]
{'TIME': {'type': 'array', 'items': {'type': 'string'}}}
>>> frame = Frame.from_brackets("[IN:WAKE wake me [SL:TIME at 8 ] ]")
>>> tools.call(Candidate(frame, 0.9, (0.8,), 1.0, (), (), 1))
{'name': 'WAKE', 'arguments': {'TIME': ['at 8']}}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treepiece.bundle import find_graphs, read_bundle
from treepiece.definition import Definition, ModelKind, load_definition
from treepiece.errors import OptionError
from treepiece.runtime.result import Candidate, Result
from treepiece.trees.frame import walk_leaves
from treepiece.trees.labels import plain_name
from treepiece.trees.node import Kind, is_slot

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser

_LONGEST_NAME = 64

Schema = dict[str, Any]


class ToolSet:
    """The intents of a model as tools of an agent that calls functions.

    The call of a parse is valid for the schema of its function. Names are labels without `IN:` and `SL:`; characters
    that function names cannot have become `_`, and a number keeps names apart that would be equal.

    Args:
        model: A parser, or the definition of a model.
    """

    def __init__(self, model: Definition | Parser) -> None:
        definition = model if isinstance(model, Definition) else model.definition
        self._below = _labels_below(definition)
        self.names: Mapping[str, str] = tool_names(definition.labels)

    @classmethod
    def load(cls, model: str | Path) -> ToolSet:
        """Return the tools of the model in a folder, or of `"bundled"`, without loading the model itself."""
        return cls(load_definition(read_bundle(find_graphs(model), check=False)))

    @cached_property
    def schemas(self) -> list[Schema]:
        """The functions, as values that `json.dumps` can write and that agents take as tools.

        Their descriptions are the names in words; those of your own may replace them.
        """
        return [{"type": "function", "function": self._function(label)} for label in self._below[None]]

    def call(self, result: Result | Candidate) -> dict[str, Any] | None:
        """Return the call of the best parse, with `name` and `arguments`; None if the text was not understood.

        Raises:
            OptionError: The parse is one of another model.
        """
        if isinstance(result, Result):
            if not result.understood:
                return None
            result = result.best
        texts = iter(leaf.text for leaf in result.leaves)
        # Of each open node: its label, the arguments from its slots, and the calls of its intents if it is a slot.
        path: list[tuple[str, dict[str, Any], list[Any]]] = [("", {}, [])]
        for kind, label, is_leaf in walk_leaves(result.frame.skeleton):
            if kind is Kind.OPEN:
                path.append((label, {}, []))
                continue
            _, arguments, calls = path.pop()
            if is_leaf:
                items: list[Any] = [next(texts)]
            elif is_slot(label):
                items = calls + [arguments] * bool(arguments)
            else:
                items = [{"name": self._name(label), "arguments": arguments}]
            parent, outer, siblings = path[-1]
            if is_slot(parent) and not is_slot(label):
                siblings += items
            else:
                outer.setdefault(self._name(label), []).extend(items)
        root = result.frame.skeleton.label
        ((name, items),) = path[0][1].items()
        return {"name": name, "arguments": {name: items}} if is_slot(root) else items[0]

    def _name(self, label: str) -> str:
        if label not in self.names:
            raise OptionError(
                f"the model of these tools has no label {label!r}: make them from the parser whose parse it is"
            )
        return self.names[label]

    def _function(self, label: str) -> Schema:
        parameters = self._arguments([label] if is_slot(label) else self._below[label])
        parts = {self.names[part]: self._part(part) for part in self._parts_below(label)}
        description = plain_name(label).replace("_", " ").lower()
        return {
            "name": self.names[label],
            "description": description,
            "parameters": {**parameters, "$defs": parts} if parts else parameters,
        }

    def _arguments(self, labels: Iterable[str]) -> Schema:
        """Return the schema of an object with an array for each label."""
        items = {self.names[label]: {"type": "array", "items": self._item(label)} for label in labels}
        return {"type": "object", "properties": items, "additionalProperties": False}

    def _item(self, label: str) -> Schema:
        return {"$ref": f"#/$defs/{self.names[label]}"} if self._is_part(label) else {"type": "string"}

    def _is_part(self, label: str) -> bool:
        return not is_slot(label) or bool(self._below[label])

    def _part(self, label: str) -> Schema:
        """Return the schema of a nested intent, or of a slot that can hold nodes."""
        below = self._below[label]
        if is_slot(label):
            calls = [self._item(child) for child in below if not is_slot(child)]
            slots = [child for child in below if is_slot(child)]
            return {"anyOf": [{"type": "string"}, *calls, *([self._arguments(slots)] if slots else [])]}
        properties = {"name": {"const": self.names[label]}, "arguments": self._arguments(below)}
        return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}

    def _parts_below(self, label: str) -> list[str]:
        """Return the labels whose schemas a function refers to, in alphabetical order."""
        found: set[str] = set()
        todo = [label] if is_slot(label) else list(self._below[label])
        while todo:
            one = todo.pop()
            if one not in found and self._is_part(one):
                found.add(one)
                todo += self._below[one]
        return sorted(found)


def _labels_below(definition: Definition) -> dict[str | None, list[str]]:
    """Return the labels that can be below each label, and at the root below None."""
    below: dict[str | None, list[str]] = {None: [], **{label: [] for label in definition.labels}}
    if definition.kind is ModelKind.NAR:  # it does not keep to the pairs of training: intents hold slots, slots intents
        intents = [label for label in definition.labels if not is_slot(label)]
        slots = [label for label in definition.labels if is_slot(label)]
        return {None: intents, **dict.fromkeys(intents, slots), **dict.fromkeys(slots, intents)}
    for parent, child in sorted(definition.pairs, key=lambda pair: pair[1]):
        below[parent].append(child)
    return below


def tool_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a name for each label that functions and parameters can have: letters, digits, `_` and `-`, at most 64.

    >>> tool_names(["IN:CALL", "SL:CITY/FROM", "SL:CITY_FROM"])
    {'IN:CALL': 'CALL', 'SL:CITY/FROM': 'CITY_FROM', 'SL:CITY_FROM': 'CITY_FROM_2'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in sorted(labels):
        plain = re.sub(r"[^a-zA-Z0-9_-]", "_", plain_name(label))[:_LONGEST_NAME]
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain[: _LONGEST_NAME - len(str(number)) - 1]}_{number}"
        taken.add(name)
        names[label] = name
    return names
