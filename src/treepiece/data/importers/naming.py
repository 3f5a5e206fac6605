"""What importers share: labels that stay apart, and the rows that cannot be converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treepiece.data.rows import BadRow, ReadReport, Row
from treepiece.errors import DataError, TreepieceError
from treepiece.trees.labels import EntityName, intent_label, slot_label


class LabelClashError(DataError):
    """Two names of the source that become one label: its rows would mix, so it ends the import."""


class LabelNames:
    """The labels of an import, each with the name that it stands for.

    >>> names = LabelNames()
    >>> names.intent("book_flight"), names.slot(EntityName("To"))
    ('IN:BOOK_FLIGHT', 'SL:TO')
    >>> names.slot(EntityName("to"))
    Traceback (most recent call last):
    treepiece.data.importers.naming.LabelClashError: the entity 'To' and the entity 'to' both become SL:TO: rename one
    """

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._sources: dict[str, str] = {}

    def intent(self, name: str) -> str:
        """Return the label of an intent; raise if it is that of another intent."""
        return self._labels.get(f"the intent {name!r}") or self._add(f"the intent {name!r}", intent_label(name))

    def slot(self, name: EntityName) -> str:
        """Return the label of an entity; raise if it is that of another entity."""
        source = f"the entity {name.entity!r}"
        source += "" if name.role is None else f" with the role {name.role!r}"
        source += "" if name.group is None else f" in the group {name.group!r}"
        return self._labels.get(source) or self._add(source, slot_label(name))

    def _add(self, source: str, label: str) -> str:
        other = self._sources.setdefault(label, source)
        if other != source:
            raise LabelClashError(f"{other} and {source} both become {label}: rename one")
        self._labels[source] = label
        return label


def attempt(make: Callable[[], Row], name: str, line: int, report: ReadReport) -> Iterator[Row]:
    """Yield the row that `make` returns; if it cannot be converted, count it in `report` and yield nothing."""
    try:
        row = make()
    except LabelClashError as error:
        raise LabelClashError(f"{name}, line {line}: {error}") from None
    except TreepieceError as error:
        report.refuse(BadRow(name, line, str(error)))
    else:
        yield row
