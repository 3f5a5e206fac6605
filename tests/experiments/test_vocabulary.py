"""Vocabularies by the way they are trained."""

import json

import pytest

from experiments.__main__ import main
from experiments.vocabulary import READINGS

pytestmark = pytest.mark.slow


def test_other_readings_of_the_paper(toy_topv2, capsys):
    assert main(["vocabulary", "--topv2", str(toy_topv2), "--readings", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == READINGS.keys()
    for ways in found.values():
        assert ways["K0 = 0"]["units"] <= ways["K0 = 10"]["units"]
    assert main(["vocabulary", "--topv2", str(toy_topv2), "--readings"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 2 + len(READINGS)
    assert f"| as it is | {found['as it is']['K0 = 0']['units']:,} | " in table[2]
