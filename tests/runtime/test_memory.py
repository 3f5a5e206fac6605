"""What a large request needs: memory is bounded, and runs that are cut change no answer."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import rows_of

from treepiece import Parser
from treepiece.bundle import BUNDLED, GRAPHS_FOLDER
from treepiece.runtime import onnx_scorer

TEXTS = [row.frame.utterance for row in rows_of(6, seed=5)]
MEGABYTES = 500
"""With a beam in one run it was more than a gigabyte."""


@pytest.mark.parametrize("n_rows", [0, 1, 2, 99, 200])
@pytest.mark.parametrize("length", [0, 1, 40, 500, 100_000])
def test_every_row_is_in_one_run(n_rows, length):
    parts = onnx_scorer.chunks(n_rows, length)
    assert [row for part in parts for row in range(n_rows)[part]] == list(range(n_rows))
    for part in parts:
        assert part.stop - part.start == 1 or (part.stop - part.start) * length <= onnx_scorer._MAX_STATES


@pytest.mark.parametrize("states", [1, 60])
def test_runs_that_are_cut_change_no_answer(tiny_bundle, monkeypatch, states):
    """In single precision: in int8 the rows of a run share a scale."""
    parser = Parser.load(tiny_bundle, precision="float", threads=1)
    whole = [parser(text, nbest=5) for text in TEXTS]
    monkeypatch.setattr(onnx_scorer, "_MAX_STATES", states)
    for result, before in zip([parser(text, nbest=5) for text in TEXTS], whole, strict=True):
        assert [candidate.frame for candidate in result.candidates] == [
            candidate.frame for candidate in before.candidates
        ]
        assert [candidate.confidence for candidate in result.candidates] == pytest.approx(
            [candidate.confidence for candidate in before.candidates], rel=1e-4
        )
    assert parser.batch(TEXTS, nbest=5) == [parser(text, nbest=5) for text in TEXTS]


@pytest.mark.slow
@pytest.mark.skipif(not GRAPHS_FOLDER.is_dir(), reason="this installation has no model in it")
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="this system does not tell the most memory that was used"
)
def test_memory_of_the_most_candidates_for_the_longest_text():
    # Not `getrusage`: what that calls a process's own peak begins with the memory of the one that started it.
    code = (
        "import re, sys; from pathlib import Path; from treepiece import Parser;"
        "parser = Parser.load(sys.argv[1], threads=1); parser.open(); parser('call mom', nbest=2);"
        "status = Path('/proc/self/status');"
        "peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+) kB', status.read_text())[1]) / 1024; before = peak();"
        "result = parser('word ' * 500, nbest=100); print(len(result.candidates), peak() - before)"
    )
    run = subprocess.run([sys.executable, "-c", code, BUNDLED], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    n_candidates, megabytes = run.stdout.split()
    assert (int(n_candidates), float(megabytes) < MEGABYTES) == (100, True), run.stdout
