import pytest
from hypothesis import given
from strategies import corpora, tokenizer_configs, train_tokenizer


@given(corpora(), tokenizer_configs())
def test_ids_and_units_are_one_to_one(corpus, config):
    tokenizer = train_tokenizer(corpus, config)
    for unit_id, unit in enumerate(tokenizer.units):
        assert unit.id == unit_id
        assert tokenizer.units.find(unit.tree) == tokenizer.units.find(str(unit)) == unit_id
        assert len(unit.placeholders) == str(unit).split().count("_") == tokenizer.units.n_placeholders[unit_id]
    assert [unit.log_p for unit in tokenizer.units] == sorted((u.log_p for u in tokenizer.units), reverse=True)
    assert sum(unit.probability for unit in tokenizer.units) == pytest.approx(1.0)


def test_slices_of_units(tokenizer):
    assert [unit.id for unit in tokenizer.units[1:3]] == [1, 2]
    assert tokenizer.units[-1].id == len(tokenizer.units) - 1
