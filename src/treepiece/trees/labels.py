"""Labels from the names of other formats, and back: prefixes, upper case, and the roles and groups of entities."""

from __future__ import annotations

import re
from typing import NamedTuple

from treepiece.errors import DataError
from treepiece.trees.node import INTENT_PREFIX, SLOT_PREFIX, TOP_PREFIXES

ROLE_MARK = "/"
GROUP_MARK = "#"

_UNWRITABLE = re.compile(r"[\s\[\]]")
_UNWRITABLE_OR_MARK = re.compile(rf"[\s\[\]{ROLE_MARK}{GROUP_MARK}]")


class EntityName(NamedTuple):
    """An entity type, and which of several entities of this type is meant: its role, and its group."""

    entity: str
    role: str | None = None
    group: str | None = None


def intent_label(name: str) -> str:
    """Return the label of an intent: in upper case, with `_` for whitespace and brackets.

    >>> intent_label("book flight"), intent_label("faq/ask_name"), intent_label("IN:CREATE_ALARM")
    ('IN:BOOK_FLIGHT', 'IN:FAQ/ASK_NAME', 'IN:CREATE_ALARM')
    """
    return INTENT_PREFIX + _written(name.strip().removeprefix(INTENT_PREFIX), _UNWRITABLE, "an intent")


def slot_label(name: EntityName) -> str:
    """Return the label of an entity: its name, `/` and its role, `#` and its group.

    >>> slot_label(EntityName("city")), slot_label(EntityName("city", role="departure", group="1"))
    ('SL:CITY', 'SL:CITY/DEPARTURE#1')
    """
    entity, role, group = name
    label = SLOT_PREFIX + _written(entity.strip().removeprefix(SLOT_PREFIX), _UNWRITABLE_OR_MARK, "an entity")
    if role is not None:
        label += ROLE_MARK + _written(role.strip(), _UNWRITABLE_OR_MARK, "a role")
    if group is not None:
        label += GROUP_MARK + _written(group.strip(), _UNWRITABLE_OR_MARK, "a group")
    return label


def _written(name: str, unwritable: re.Pattern[str], what: str) -> str:
    if not name:
        raise DataError(f"{what} has no name")
    return unwritable.sub("_", name.upper())


def plain_name(label: str) -> str:
    """Return a label without its prefix.

    >>> plain_name("IN:CREATE_ALARM"), plain_name("NP")
    ('CREATE_ALARM', 'NP')
    """
    return label[len(INTENT_PREFIX) :] if label.startswith(TOP_PREFIXES) else label


def entity_name(label: str) -> EntityName:
    """Return the entity of a slot label, with its role and group if the label has them.

    >>> entity_name("SL:CITY/DEPARTURE#1")
    EntityName(entity='CITY', role='DEPARTURE', group='1')
    """
    name, has_group, group = plain_name(label).partition(GROUP_MARK)
    entity, has_role, role = name.partition(ROLE_MARK)
    return EntityName(entity, role if has_role else None, group if has_group else None)
