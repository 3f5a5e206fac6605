"""Random trees, frames and tokenizers for property tests."""

from hypothesis import strategies as st

from treepiece.evaluation.outcomes import Outcome
from treepiece.tokenizer.corpus import Corpus
from treepiece.tokenizer.em import EmMethod
from treepiece.tokenizer.learning import Expansion, TokenizerConfig
from treepiece.tokenizer.tokenizer import TreePieceTokenizer
from treepiece.trees.align import Span
from treepiece.trees.frame import Frame, leaf_labels
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


def tokenizer_configs() -> st.SearchStrategy[TokenizerConfig]:
    return st.builds(
        TokenizerConfig,
        merges=st.integers(0, 8),
        em=st.sampled_from(EmMethod),
        em_iterations=st.just(3),
        expansion=st.sampled_from([Expansion.DEFAULT, Expansion.WHOLE]),
        min_count=st.integers(1, 3),
        samples=st.integers(1, 3),
    )


def train_tokenizer(corpus: Corpus, config: TokenizerConfig) -> TreePieceTokenizer:
    """Train on a corpus and on each label alone, so that all labels are known."""
    pairs = zip(corpus.trees, corpus.counts, strict=True)
    return TreePieceTokenizer.train([*pairs, *map(Node, LABELS)], config)


top_words = st.text(st.characters(exclude_characters=" \t\r\n"), min_size=1).filter(
    lambda word: word != "]" and not word.startswith(("[IN:", "[SL:"))
)
names = st.text(st.characters(exclude_characters=" \t\r\n[]"), min_size=1, max_size=5)
top_labels = st.builds("{}{}".format, st.sampled_from(["IN:", "SL:"]), names)
top_trees = st.recursive(
    st.builds(Node, top_labels, st.lists(top_words, max_size=3)),
    lambda inner: st.builds(Node, top_labels, st.lists(st.one_of(top_words, inner), max_size=4)),
    max_leaves=12,
)

slots = st.sampled_from(["SL:A", "SL:B"])
intents = st.sampled_from(["IN:A", "IN:B"])
skeletons = st.recursive(
    st.builds(Node, intents),
    lambda inner: st.builds(Node, intents, st.lists(st.builds(Node, slots, st.lists(inner, max_size=2)), max_size=3)),
    max_leaves=4,
)
# Some of these words cannot be expressed in bracket text.
utterances = st.lists(st.sampled_from(["x", "y", "]", "[IN:A", "a b", "\ud800"]), max_size=5)


@st.composite
def frames(draw, words):
    skeleton = draw(skeletons)
    n_leaves = len(leaf_labels(skeleton))
    places = sorted(draw(st.lists(st.integers(0, len(words)), min_size=2 * n_leaves, max_size=2 * n_leaves)))
    spans = tuple(Span(*places[leaf : leaf + 2]) for leaf in range(0, 2 * n_leaves, 2))
    return Frame(tuple(words), skeleton, spans, " ".join(words))


@st.composite
def outcomes(draw):
    words = draw(utterances)
    gold = draw(frames(words))
    predicted = draw(st.one_of(st.just(gold), frames(words)))
    domain = draw(st.sampled_from(["alarm", "music", None]))
    return Outcome(gold, predicted, domain, draw(st.integers(1, 9)), draw(st.integers(1, 99)))


def outcome_of(gold, predicted, domain="alarm", passes=1, line=0):
    return Outcome(Frame.from_brackets(gold), Frame.from_brackets(predicted), domain, passes, line)
