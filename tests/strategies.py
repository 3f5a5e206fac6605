"""Random trees for property tests."""

from hypothesis import strategies as st

from treepiece.tokenizer.corpus import Corpus
from treepiece.trees.node import Node

LABELS = "ABC"


def trees(max_nodes: int = 7, labels: str = LABELS) -> st.SearchStrategy[Node]:
    """Skeletons of up to `max_nodes` nodes: node number i hangs below one of the nodes before it."""

    @st.composite
    def build(draw: st.DrawFn) -> Node:
        n_nodes = draw(st.integers(1, max_nodes))
        names = [draw(st.sampled_from(labels)) for _ in range(n_nodes)]
        parents = [draw(st.integers(0, place - 1)) if place else -1 for place in range(n_nodes)]
        children: list[list[Node]] = [[] for _ in range(n_nodes)]
        for place in reversed(range(n_nodes)):
            node = Node(names[place], reversed(children[place]))
            if place == 0:
                return node
            children[parents[place]].append(node)
        raise AssertionError("the root comes last")

    return build()


def corpora(max_trees: int = 5, max_nodes: int = 7) -> st.SearchStrategy[Corpus]:
    counted = st.tuples(trees(max_nodes), st.integers(1, 4))
    return st.lists(counted, min_size=1, max_size=max_trees).map(Corpus.collect)
