import math
from dataclasses import replace

import pytest
from hypothesis import given
from strategies import corpora, tokenizer_configs, train_tokenizer, trees

from treepiece import TokenizerConfig, TreePieceTokenizer
from treepiece.errors import OptionError, UnitError
from treepiece.tokenizer.learning import Expansion
from treepiece.tokenizer.merges import learn_merges
from treepiece.tokenizer.shape import build_node
from treepiece.tokenizer.vocabulary import format_unit


@given(corpora(), tokenizer_configs())
def test_the_merges_are_those_of_vocabulary_generation(corpus, config):
    pairs = list(zip(corpus.trees, corpus.counts, strict=True))
    base = learn_merges(corpus, config.merges)
    units = [str(format_unit(build_node(shape, corpus.labels))) for shape in base.shapes]
    expected = list(zip(units, base.counts, strict=True))[base.n_labels :]
    tokenizer = TreePieceTokenizer.train(pairs, config)
    assert [tuple(merge) for merge in tokenizer.merges] == expected
    assert tokenizer.report.n_merges == len(expected)


@given(corpora(), tokenizer_configs())
def test_the_order_of_the_corpus_does_not_matter_to_hard_em(corpus, config):
    config = TokenizerConfig(config.merges, min_count=config.min_count)
    pairs = list(zip(corpus.trees, corpus.counts, strict=True))
    assert TreePieceTokenizer.train(pairs, config).units == TreePieceTokenizer.train(pairs[::-1], config).units


@given(corpora(), tokenizer_configs(), trees(9))
def test_the_papers_expansion_encodes_or_says_that_it_cannot(corpus, config, tree):
    config = TokenizerConfig(config.merges, config.em, 3, expansion=Expansion.PAPER, samples=config.samples)
    tokenizer = train_tokenizer(corpus, config)
    try:
        assert tokenizer.decode(tokenizer.encode(tree)) == tree
    except UnitError as error:
        assert "default expansion" in str(error)
        assert tokenizer.encode(tree, missing_ok=True) is None
    for known in corpus.trees:
        assert tokenizer.decode(tokenizer.encode(known)) == known


@given(corpora(), tokenizer_configs())
def test_units_of_the_whole_expansion_keep_all_children_or_none(corpus, config):
    units = train_tokenizer(corpus, replace(config, expansion=Expansion.WHOLE)).units
    for unit in units:
        assert len(unit.placeholders) in (0, len(unit.tree.children))
    assert {str(unit) for unit in units} <= {
        str(unit) for unit in train_tokenizer(corpus, replace(config, expansion=Expansion.DEFAULT)).units
    }


@given(corpora())
def test_without_samples_the_papers_expansion_encodes_what_it_saw(corpus):
    tokenizer = train_tokenizer(corpus, TokenizerConfig(5, expansion=Expansion.PAPER, samples=0))
    for known in corpus.trees:
        assert tokenizer.decode(tokenizer.encode(known)) == known


@pytest.mark.parametrize(
    "bad",
    [
        {"merges": -1},
        {"merges": 1.5},
        {"em": "best"},
        {"em_iterations": 0},
        {"em_epsilon": math.nan},
        {"expansion": "none"},
        {"samples": -1},
        {"theta": math.inf},
        {"theta": -0.1},
        {"min_count": 0},
        {"seed": -1},
    ],
)
def test_bad_options_name_the_option_and_the_value(bad):
    name, value = next(iter(bad.items()))
    with pytest.raises(OptionError, match=name.removeprefix("em_")) as caught:
        TokenizerConfig(**bad)
    assert repr(value) in str(caught.value)
