import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import names, top_trees

from treepiece.errors import TreeParseError
from treepiece.trees.brackets import format_brackets, parse_brackets
from treepiece.trees.node import Node


@given(top_trees)
def test_parse_undoes_format(tree):
    assert parse_brackets(format_brackets(tree)) == tree


@given(st.recursive(st.builds(Node, names), lambda inner: st.builds(Node, names, st.lists(inner, max_size=4))))
def test_parse_undoes_format_for_any_labels(tree):
    assert parse_brackets(format_brackets(tree, any_label=True), any_label=True) == tree


@given(st.text(st.sampled_from("[]INSL: ab\t_")), st.booleans())
@example("[IN:A [SL:B ] ]", False)
def test_any_text_gives_a_tree_or_the_error(text, any_label):
    try:
        tree = parse_brackets(text, any_label=any_label)
    except TreeParseError as error:
        assert error.column is not None
        assert 1 <= error.column <= len(text) + 1
    else:
        assert format_brackets(tree, any_label=any_label).split() == text.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "col 1: no tree in an empty text"),
        ("   ", "col 1: no tree in an empty text"),
        ("hello", "col 1: the word 'hello' is outside the tree, which begins with [IN: or [SL:"),
        ("]", "col 1: ']' closes nothing"),
        ("[IN:A ] ]", "col 9: ']' closes nothing"),
        ("[IN:A ] x", "col 9: the word 'x' is outside the tree"),
        ("[IN:A ] [IN:B ]", "col 9: '[IN:B' starts a second tree: expected one tree per text"),
        ("[IN:A [SL:B x ]", "col 16: the text ends but [IN:A of col 1 is still open: add ']'"),
        ("[IN:A [SL:B", "col 12: the text ends but [SL:B of col 7 is still open: add '] ]'"),
        ("[IN: ]", "col 1: '[IN:' has no name: expected something like '[IN:NAME'"),
        ("[IN:A [SL: x ] ]", "col 7: '[SL:' has no name"),
        ("[IN:A]", "col 1: the label 'IN:A]' contains a bracket: put a space before each bracket"),
        ("[IN:A [FOO:B x ] ]", "col 18: ']' closes nothing ('[FOO:B' before it was read as a word"),
        ("[IN:A [FOO:B x ] y ]", "col 18: the word 'y' is outside the tree"),
        ("[IN:A " * 9, "9 brackets are still open"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(TreeParseError) as caught:
        parse_brackets(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "tree",
    [
        Node("A"),
        Node("IN:"),
        Node("IN:A B"),
        Node("IN:A", ["]"]),
        Node("IN:A", ["[SL:B"]),
        Node("IN:A", [""]),
        Node("IN:A", ["two words"]),
    ],
)
def test_what_cannot_be_written(tree):
    with pytest.raises(TreeParseError, match="cannot be written as bracket text"):
        format_brackets(tree)


def test_brackets_in_an_utterance_are_words():
    tree = parse_brackets("[IN:A [ [x] :] ]")
    assert tree.children == ("[", "[x]", ":]")


@pytest.mark.slow
def test_deep_and_wide():
    for text in ("[IN:A " * 10_000 + "] " * 10_000, "[IN:A " + "[SL:B x ] " * 100_000 + "]"):
        assert format_brackets(parse_brackets(text)) == text.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[IN:A water [SL:B fern]]", "'fern]]' was read as a word, put a space before each ']'"),
        ("[IN:A water [B fern ] [SL:C at 6 ] ]", "'[B' before it was read as a word: labels start with IN: or SL:"),
    ],
)
def test_usual_slips_are_named(text, message):
    with pytest.raises(TreeParseError) as caught:
        parse_brackets(text)
    assert message in str(caught.value)
