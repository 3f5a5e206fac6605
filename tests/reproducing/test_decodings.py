"""Which ways to search a model has, and how its ranker is switched."""

from types import SimpleNamespace

import pytest

from reproduction.decodings import DECODINGS, GREEDY, decodings_for, set_up
from treepiece.definition import Definition, ModelKind
from treepiece.errors import BundleError

PLAIN = Definition(ModelKind.TREEPIECE, (), frozenset())
RANKED = Definition(ModelKind.TREEPIECE, (), frozenset(), ranked=True)


def test_ways_to_search():
    assert [decoding.name for decoding in decodings_for(PLAIN)] == ["greedy", "beam 5"]
    assert decodings_for(RANKED) == DECODINGS
    assert decodings_for(Definition(ModelKind.AR, (), frozenset())) == (GREEDY,)


def test_the_ranker_is_switched_off_where_it_is_not_asked_for():
    model = SimpleNamespace(ranks=True)
    for decoding in DECODINGS:
        set_up(model, RANKED, decoding)
        assert model.ranks is decoding.ranks
    set_up(object(), PLAIN, GREEDY)
    with pytest.raises(BundleError, match="no switch for it"):
        set_up(object(), RANKED, GREEDY)
