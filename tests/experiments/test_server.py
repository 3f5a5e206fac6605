"""The benchmark of the server runs, and finds no wrong or lost answer."""

import subprocess
import sys
import tempfile

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'treepiece[serve]'")

from experiments import clients, overload, server


@pytest.mark.slow
def test_every_answer_is_checked(tiny_bundle):
    found = server.measure(str(tiny_bundle), seconds=0.2, rounds=1, connections=(1, 64))
    assert (found["wrong"], found["lost"]) == (0, 0)
    assert found["answers"] > 0
    assert {"throughput_ratio_64", "p99_over_median_64", "wrong_1", "lost_64"} <= found.keys()


def test_wrong_answers_are_found():
    seen = [clients.Seen(0, 0.1, 200, b'{"tree": "a", "milliseconds": 1}'), clients.Seen(0, 0.1, 503, b"{}")]
    assert server.count_wrong(clients.Load(seen), [{"tree": "a"}]) == 1
    assert server.count_wrong(clients.Load(seen), [{"tree": "b"}]) == 2


@pytest.mark.slow
def test_overload(tiny_bundle, monkeypatch):
    # On a machine that stands still for two seconds, good clients would be taken for slow ones. A body that drips takes
    # nearly ten, and must still be too slow.
    patient = ("--queue", "256", "--concurrency", "40", "--body-seconds", "6")
    monkeypatch.setattr(overload, "OPTIONS", patient)
    found = overload.overload(str(tiny_bundle), 1.0, server.make_texts(40))
    assert (found["overload_wrong"], found["overload_lost"]) == (0, 0)
    assert found["overload_answered_after"] == 1
    # How many were refused depends on how fast this machine is. tests/serving/test_server.py has the law.
    assert found["overload_refused_requests"] >= 0


def test_a_refusal_must_say_when_to_come_back():
    answer = overload.Answer
    kind = "application/problem+json"
    assert answer(503, kind, b"", says_when=True).is_refusal((422, 503))
    assert not answer(503, kind, b"", says_when=False).is_refusal((422, 503))
    assert answer(422, kind, b"", says_when=False).is_refusal((422, 503))
    assert not answer(503, "text/plain", b"", says_when=True).is_refusal((503,))


def test_a_server_that_does_not_say_where_it_is_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(clients, "STARTING", 0.2)
    with (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process,
        tempfile.TemporaryFile() as log,
    ):
        with pytest.raises(SystemExit, match="did not say within 0.2 seconds where it listens"):
            clients._find_port(process, log.fileno())
        process.kill()
