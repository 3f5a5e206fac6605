"""The types of columns."""

import json

from hypothesis import given
from hypothesis import strategies as st

from treepiece.jobs.columns import ColumnType, as_text, as_type, infer_columns, join_types, type_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(JSON, JSON)
def test_types_join_like_sets(one, other):
    kinds = type_of(one), type_of(other)
    assert join_types(*kinds) == join_types(*reversed(kinds))
    assert join_types(join_types(*kinds), kinds[0]) == join_types(*kinds)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), JSON)))
def test_a_column_holds_its_values(rows):
    types = {
        ColumnType.BOOL: bool,
        ColumnType.INT: int,
        ColumnType.FLOAT: float,
        ColumnType.TEXT: str,
    }
    for name, kind in infer_columns(rows).items():
        for row in rows:
            value = as_type(row.get(name), kind)
            assert value is None or type(value) is types[kind]
            if isinstance(value, str):
                value.encode()


def test_cells():
    assert [as_text(value) for value in (None, "a", False, 1, 1.5, {"b": None})] == [
        None,
        "a",
        "false",
        "1",
        "1.5",
        json.dumps({"b": None}),
    ]
