"""The benchmark of the server runs, and finds no wrong or lost answer."""

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """The script as a module; it finds its neighbours as it does when it is run."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("server")
    for name in ("server", "clients", "overload", "machine"):
        sys.modules.pop(name, None)


def test_every_answer_is_checked(benchmark, tiny_bundle):
    found = benchmark.measure(str(tiny_bundle), seconds=0.2, rounds=1, connections=(1, 64))
    assert (found["wrong"], found["lost"]) == (0, 0)
    assert found["answers"] > 0
    assert {"throughput_ratio_64", "p99_over_median_64", "wrong_1", "lost_64"} <= found.keys()


def test_wrong_answers_are_found(benchmark):
    clients = sys.modules["clients"]
    seen = [clients.Seen(0, 0.1, 200, b'{"tree": "a", "milliseconds": 1}'), clients.Seen(0, 0.1, 503, b"{}")]
    assert benchmark.count_wrong(clients.Load(seen), [{"tree": "a"}]) == 1
    assert benchmark.count_wrong(clients.Load(seen), [{"tree": "b"}]) == 2


def test_overload(benchmark, tiny_bundle, monkeypatch):
    # On a machine that stands still for two seconds, good clients would be taken for slow ones. A head that drips takes
    # nearly ten, and must still be too slow.
    patient = ("--queue", "256", "--connections", "150", "--body-seconds", "6", "--head-seconds", "6")
    monkeypatch.setattr(sys.modules["overload"], "OPTIONS", patient)
    found = benchmark.overload(str(tiny_bundle), 1.0, benchmark.make_texts(40))
    assert (found["overload_wrong"], found["overload_lost"]) == (0, 0)
    assert found["overload_answered_after"] == 1
    assert found["overload_refused_connections"] > 0


def test_a_refusal_must_say_when_to_come_back(benchmark):
    answer = sys.modules["overload"].Answer
    kind = "application/problem+json"
    assert answer(503, kind, b"", says_when=True).is_refusal((422, 503))
    assert not answer(503, kind, b"", says_when=False).is_refusal((422, 503))
    assert answer(422, kind, b"", says_when=False).is_refusal((422, 503))
    assert not answer(503, "text/plain", b"", says_when=True).is_refusal((503,))


def test_a_server_that_does_not_say_where_it_is_is_not_waited_for(benchmark, monkeypatch):
    clients = sys.modules["clients"]
    monkeypatch.setattr(clients, "STARTING", 0.2)
    with (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process,
        tempfile.TemporaryFile() as log,
    ):
        with pytest.raises(SystemExit, match="did not say within 0.2 seconds where it listens"):
            clients._find_port(process, log.fileno())
        process.kill()
