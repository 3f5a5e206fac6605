"""How many threads a parser has by default, where a container gives it less than the machine has."""

import os

import pytest

from treepiece.runtime import cores


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("200001 100000\n", 3),
        ("50000 100000\n", 1),
        ("1 100000\n", 1),
        ("0 100000\n", 1),
        ("", None),
        ("100000", None),
        ("100000 0", None),
        ("-1 100000", None),
        ("some words", None),
    ],
)
def test_the_cores_of_a_limit(limit, expected):
    assert cores.cores_of(limit) == expected


def test_the_limits_of_a_group_and_those_around_it(tmp_path):
    groups, own = tmp_path / "cgroup", tmp_path / "own"
    inner = groups / "system.slice" / "treepiece.service"
    inner.mkdir(parents=True)
    assert cores.read_limits(groups, own) == []
    (groups / "cpu.max").write_text("max 100000")
    (inner / "cpu.max").write_text("100000 100000")
    (tmp_path / "cpu.max").write_text("1 1")  # outside
    assert cores.read_limits(groups, own) == ["max 100000"]
    own.write_text("0::/system.slice/treepiece.service\n")
    assert cores.read_limits(groups, own) == ["100000 100000", "max 100000"]
    own.write_text("12:cpu:/old\n0::/../elsewhere\n")
    assert "1 1" not in cores.read_limits(groups, own)


def test_no_more_than_there_are(monkeypatch):
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for limits, expected in (([], there), (["100000 100000"], 1), (["9900000 100000"], there), (["max 1"], there)):
        monkeypatch.setattr(cores, "read_limits", lambda *_, limits=limits: limits)
        assert cores.count_cores() == expected
