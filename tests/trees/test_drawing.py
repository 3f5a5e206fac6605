import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import trees

from treepiece.errors import OptionError
from treepiece.trees.drawing import outline, svg
from treepiece.trees.frame import Frame
from treepiece.trees.node import Node

FRAME = Frame.from_brackets("[IN:A x [SL:B [IN:C [SL:D two words ] y ] ] [SL:E ] ]")


def test_outline():
    assert outline(FRAME.tree).splitlines() == [
        "IN:A",
        "├── SL:B",
        "│   └── IN:C",
        '│       └── SL:D "two words"',
        "└── SL:E",
    ]


def test_outline_with_units_dots_the_cuts():
    assert outline(FRAME.tree, [0, 0, 1, 1, 0]).splitlines() == [
        "IN:A                          1",
        "├── SL:B                      1",
        "│   └┄┄ IN:C                  2",
        '│       └── SL:D "two words"  2',
        "└── SL:E                      1",
    ]


@given(trees(12), st.data())
def test_every_node_is_drawn_once(tree, data):
    units = data.draw(st.lists(st.integers(0, 9), min_size=tree.n_nodes, max_size=tree.n_nodes))
    plain = outline(tree, units).splitlines()
    labels = [node.label for node in tree.nodes()]
    assert [re.sub(r"[│├└─┄ ]+", "", line)[0] for line in plain] == labels
    assert [int(line.split()[-1]) - 1 for line in plain] == units
    coloured = outline(tree, units, colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines() == plain
    root = ElementTree.fromstring(svg(tree, units))
    texts = root.findall("{http://www.w3.org/2000/svg}text")
    assert [text.text for text in texts] == labels


@given(trees(12))
def test_boxes_of_one_level_do_not_overlap(tree):
    root = ElementTree.fromstring(svg(tree))
    rows = {}
    for box in root.findall("{http://www.w3.org/2000/svg}rect"):
        left = float(box.get("x"))
        rows.setdefault(box.get("y"), []).append((left, left + float(box.get("width"))))
    for boxes in rows.values():
        boxes.sort()
        assert all(a[1] <= b[0] for a, b in zip(boxes, boxes[1:], strict=False))
        assert boxes[0][0] >= 0
        assert boxes[-1][1] <= float(root.get("width"))


def test_hostile_text_stays_text():
    tree = Node("IN:<script>", ["</svg>", "\x00\x1b[31m", "\ud800", "&"])
    root = ElementTree.fromstring(svg(tree))
    assert [element.tag.rpartition("}")[2] for element in root] == ["title", "line", "rect", "text", "text"]
    assert "\x1b" not in outline(tree)
    outline(tree).encode()


@pytest.mark.parametrize("tree", [Node("A", [Node("B")] * 100_000), None], ids=["wide", "deep"])
def test_what_is_too_large_is_said_to_be_left_out(tree):
    if tree is None:
        tree = Node("A")
        for _ in range(10_000):
            tree = Node("A", [tree])
    drawing = outline(tree)
    assert len(drawing) < 1_000_000
    assert re.search(r"… [\d,]+ more", drawing)
    assert "more" in svg(tree)
    assert outline(tree, max_depth=1).startswith(f"{tree.label} … {tree.n_nodes - 1:,} more")


def test_units_for_another_tree():
    with pytest.raises(OptionError, match="there are units for 1 nodes but the tree has 2"):
        outline(Node("A", [Node("B")]), [0])


def test_a_drawing_shows_something():
    with pytest.raises(OptionError, match="max_depth must be a whole number, 1 or more"):
        outline(FRAME.tree, max_depth=0)


def test_notebooks_show_svg():
    assert FRAME._repr_svg_() == FRAME.tree._repr_svg_()
    assert FRAME._repr_svg_().startswith("<svg")
