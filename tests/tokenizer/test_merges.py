from brute_force import merge_by_recounting
from hypothesis import given
from hypothesis import strategies as st
from strategies import corpora

from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.merges import learn_merges
from treepiece.tokenizer.shape import build_node
from treepiece.trees.brackets import format_brackets, parse_brackets
from treepiece.trees.node import Node


def unit_texts(corpus: Corpus, n_merges: int) -> list[tuple[str, int]]:
    vocabulary = learn_merges(corpus, n_merges)
    return [
        (format_brackets(build_node(shape, corpus.labels), any_label=True), count)
        for shape, count in zip(vocabulary.shapes, vocabulary.counts, strict=True)
    ]


def test_the_worked_example_of_the_readme():
    """Counted by hand: [R [T ] ] occurs 3 + 2 times, then [[R T] D] 3 times, then [P C] and [R T] P, 2 times each."""
    corpus = Corpus.collect(
        [
            (parse_brackets("[R [T ] [D ] ]", any_label=True), 3),
            (parse_brackets("[R [T ] [P [C ] ] ]", any_label=True), 2),
        ]
    )
    assert unit_texts(corpus, 4) == [
        ("[C ]", 2),
        ("[D ]", 3),
        ("[P ]", 2),
        ("[R ]", 5),
        ("[T ]", 5),
        ("[R [T ] ]", 5),
        ("[R [T ] [D ] ]", 3),
        ("[P [C ] ]", 2),
        ("[R [T ] [P [C ] ] ]", 2),
    ]


def test_a_chain_is_joined_from_the_top():
    corpus = Corpus.collect([parse_brackets("[A [A [A [A ] ] ] ]", any_label=True)])
    # three overlapping pairs of which two can be joined; what is left is one pair of pairs
    assert unit_texts(corpus, 5) == [("[A ]", 4), ("[A [A ] ]", 3), ("[A [A [A [A ] ] ] ]", 1)]


def test_no_pair_left_stops_early():
    assert len(learn_merges(Corpus.collect([Node("A")]), 10).shapes) == 1


@given(corpora(), st.integers(0, 12))
def test_incremental_counts_equal_recounting(corpus, n_merges):
    assert learn_merges(corpus, n_merges) == merge_by_recounting(corpus, n_merges)
