"""Which ways to search a model has, and how its ranker is switched."""

from types import SimpleNamespace

import pytest

from reproduction.decodings import DECODINGS, GREEDY, decodings_for, set_up
from treepiece.definition import Definition, ModelKind
from treepiece.errors import BundleError

PLAIN = Definition(ModelKind.TREEPIECE, (), frozenset())
RANKED = Definition(ModelKind.TREEPIECE, (), frozenset(), ranked=True)
JUDGED = Definition(ModelKind.TREEPIECE, (), frozenset(), judged=True)
BOTH = Definition(ModelKind.TREEPIECE, (), frozenset(), ranked=True, judged=True)


def test_ways_to_search():
    plain, ranked, judged = (
        ["greedy", "beam 5"],
        ["ranked in doubt", "beam 5, ranked"],
        ["judged in doubt", "beam 5, judged"],
    )
    for definition, names in ((PLAIN, plain), (RANKED, plain + ranked), (JUDGED, plain + judged)):
        assert {decoding.name for decoding in decodings_for(definition)} == set(names)
    assert decodings_for(BOTH) == DECODINGS
    assert decodings_for(Definition(ModelKind.AR, (), frozenset())) == (GREEDY,)


def test_ranker_and_judge_are_switched_off_where_they_are_not_asked_for():
    model = SimpleNamespace(ranks=True, judges=True)
    for decoding in DECODINGS:
        set_up(model, BOTH, decoding)
        assert (model.ranks, model.judges) == (decoding.ranks, decoding.judges)
    alone = SimpleNamespace(judges=True)
    set_up(alone, JUDGED, GREEDY)
    assert alone == SimpleNamespace(judges=False)
    set_up(object(), PLAIN, GREEDY)
    with pytest.raises(BundleError, match="no switch for it"):
        set_up(object(), RANKED, GREEDY)
