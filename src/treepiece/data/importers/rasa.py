"""Rasa: NLU training data in YAML, versions 2.0 to 3.1.

The examples of an intent are lines that begin with `- `, or a list of objects with `text`. Entities are annotated in
the text: `[oslo](city)` or `[oslo]{"entity": "city", "role": "departure"}`. The file is read item by item, so memory
grows with the largest intent, not with the file. Synonyms, lookup tables and regular expressions are counted and left
out, and so are the `value` of an entity and the other sections of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from treepiece.data.importers.naming import LabelNames, attempt
from treepiece.data.rows import BadRow, ReadReport, Row
from treepiece.errors import DataError
from treepiece.extras import needs_extra
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame
from treepiece.trees.labels import EntityName
from treepiece.trees.node import Node

if TYPE_CHECKING:
    import yaml

_OTHER_ITEMS = {"synonym": "synonyms", "regex": "regular expressions", "lookup": "lookup tables"}
_NAME_KEYS = ("entity", "role", "group")

Entity = tuple[Span, EntityName]


def read_rasa(file: BinaryIO, name: str, report: ReadReport, names: LabelNames) -> Iterator[Row]:
    """Yield the rows of a file; what is left out is counted in `report.left_out`."""
    with needs_extra("data import", "train"):
        import yaml

    try:
        for item in _nlu_items(yaml.SafeLoader(file), name, report):
            yield from _read_item(item, name, report, names)
    except yaml.reader.ReaderError as error:
        if error.encoding == "unicode":
            reason = f"YAML does not allow the character {chr(error.character)!r}: write it as an escape, or remove it"
        else:
            reason = f"byte {error.position + 1} is not UTF-8: save the file as UTF-8"
        raise DataError(f"{name}: {reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise DataError(f"{name}{line}: not YAML: {error.problem or error.context}") from None
    except RecursionError:
        raise DataError(f"{name}: not training data of Rasa: its lists and objects are nested too deep") from None


def _nlu_items(loader: yaml.SafeLoader, name: str, report: ReadReport) -> Iterator[yaml.Node]:
    """Yield the items of the `nlu` lists of a file, each read when it is asked for."""
    import yaml

    _next(loader)
    while not loader.check_event(yaml.StreamEndEvent):
        _next(loader)
        if not loader.check_event(yaml.MappingStartEvent):
            raise DataError(f"{name}: not training data of Rasa: expected `nlu:` and a list of intents below it")
        _next(loader)
        while not loader.check_event(yaml.MappingEndEvent):
            key = loader.compose_node(None, 0)
            if not (isinstance(key, yaml.ScalarNode) and key.value == "nlu"):
                _skip(loader)
                if getattr(key, "value", None) != "version":
                    report.left_out["sections other than nlu"] += 1
            elif loader.check_event(yaml.SequenceStartEvent):
                _next(loader)
                while not loader.check_event(yaml.SequenceEndEvent):
                    item = loader.compose_node(None, 0)
                    assert item is not None  # the list has not ended
                    yield item
                _next(loader)
            else:
                line = key.start_mark.line + 1
                raise DataError(
                    f"{name}, line {line}: expected a list of intents below `nlu:`: begin each with `- intent:`"
                )
        _next(loader)
        _next(loader)


def _next(loader: yaml.SafeLoader) -> yaml.Event:
    event: yaml.Event = loader.get_event()  # type: ignore[no-untyped-call]
    return event


def _skip(loader: yaml.SafeLoader) -> None:
    """Read a value without keeping it."""
    import yaml

    depth = 0
    while True:
        event = _next(loader)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if not depth:
            return


def _read_item(item: yaml.Node, name: str, report: ReadReport, names: LabelNames) -> Iterator[Row]:
    line = item.start_mark.line + 1
    values = _mapping(item)
    other = next((what for key, what in _OTHER_ITEMS.items() if key in values), None)
    if other:
        report.left_out[other] += 1
        return
    intent, examples = values.get("intent"), values.get("examples")
    if not isinstance(getattr(intent, "value", None), str) or examples is None:
        found = ", ".join(values) or "no keys"
        report.refuse(BadRow(name, line, f"expected an item with `intent` and `examples`, found {found}"))
        return
    assert intent is not None
    for place, text in _examples(examples, name, report):
        make = partial(example_row, text, str(intent.value), names, report, place)
        yield from attempt(make, name, place, report)


def _mapping(node: yaml.Node) -> Mapping[str, yaml.Node]:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _examples(node: yaml.Node, name: str, report: ReadReport) -> Iterator[tuple[int, str]]:
    """Yield each example with the number of its line."""
    import yaml

    line = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            text = _mapping(item).get("text", item)
            place = text.start_mark.line + 1
            if isinstance(text, yaml.ScalarNode):
                yield place, text.value.strip().removeprefix("- ")
            else:
                report.refuse(BadRow(name, place, "expected an example with `text`"))
    elif isinstance(node, yaml.ScalarNode):
        is_block = node.style == "|"
        for place, text in enumerate(node.value.split("\n"), start=line + 1):
            if text.strip().startswith("-"):
                yield place if is_block else line, text.strip()[1:].strip()
            elif text.strip():
                hint = "" if is_block else ", after `examples: |`"
                reason = f"expected an example, which begins with `- `{hint}, found {text.strip()!r:.60}"
                report.refuse(BadRow(name, place if is_block else line, reason))
    else:
        report.refuse(BadRow(name, line, "expected `examples: |` and a line for each example, which begins with `- `"))


def example_row(text: str, intent: str, names: LabelNames, report: ReadReport, line: int = 0) -> Row:
    """Return the row of an annotated example.

    >>> row = example_row("fly to [oslo](city)", "book_flight", LabelNames(), ReadReport())
    >>> row.frame.utterance, row.frame.to_brackets()
    ('fly to oslo', '[IN:BOOK_FLIGHT [SL:CITY oslo ] ]')
    """
    utterance, entities, n_values = read_annotations(text)
    if not utterance.strip():
        raise DataError("found an example without words: remove it")
    skeleton = Node(names.intent(intent), [Node(names.slot(name)) for _, name in entities])
    frame = Frame.from_chars(utterance, skeleton, [span for span, _ in entities])
    if n_values:
        report.left_out["values of entities"] += n_values
    return Row(skeleton, frame, line=line)


def read_annotations(text: str) -> tuple[str, list[Entity], int]:
    """Return the text alone, the characters and the name of each entity, and how many have a value of their own.

    >>> read_annotations('from [oslo]{"entity": "city", "role": "departure"}')
    ('from oslo', [(Span(start=5, end=9), EntityName(entity='city', role='departure', group=None))], 0)
    """
    plain, entities, n_values = "", [], 0
    place = 0
    while place < len(text):
        if text[place] == "]":
            raise DataError(f"col {place + 1}: ']' closes no '[': an annotation is [text](entity)")
        if text[place] != "[":
            plain += text[place]
            place += 1
            continue
        end = text.find("]", place)
        inner = text[place + 1 : end]
        if end < 0 or "[" in inner:
            raise DataError(f"col {place + 1}: '[' has no ']' before the next '[' or the end: expected [text](entity)")
        if not inner.strip():
            raise DataError(f"col {place + 1}: an entity without text: remove it")
        name, value, after = _read_name(text, end + 1)
        n_values += value is not None and value != inner
        entities.append((Span(len(plain), len(plain) + len(inner)), name))
        plain += inner
        place = after
    return plain, entities, n_values


def _read_name(text: str, place: int) -> tuple[EntityName, str | None, int]:
    """Return the entity that is named at `place`, its value if it has one, and the end of its name."""
    opening = text[place : place + 1]
    if opening == "(":
        end = text.find(")", place)
        if end < 0:
            raise DataError(f"col {place + 1}: '(' has no ')': expected [text](entity)")
        entity, has_value, value = text[place + 1 : end].partition(":")
        return EntityName(entity), value if has_value else None, end + 1
    if opening == "{":
        try:
            found, end = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"col {place + 1}: not JSON: {error!s:.80}") from None
        return _named(found, place), found.get("value"), end
    if opening == "[":
        raise DataError(f"col {place + 1}: several entities on one text: a frame cannot express this, keep one")
    raise DataError(f'col {place}: no entity after \']\': expected [text](entity) or [text]{{"entity": "name"}}')


def _named(value: Mapping[str, Any], place: int) -> EntityName:
    for key in value:
        if key not in (*_NAME_KEYS, "value"):
            raise DataError(f"col {place + 1}: the key {key!r} is not known: expected entity, role, group and value")
    names = [value.get(key) for key in _NAME_KEYS]
    if not isinstance(names[0], str) or not all(isinstance(name, str | None) for name in names[1:]):
        raise DataError(f"col {place + 1}: expected texts as entity, role and group, found {value!r:.60}")
    return EntityName(names[0], *names[1:])
