"""Runs in processes of their own: two that train together, and one that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch
import yaml
from tiny import SETTINGS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
LONGEST = 600
"""Seconds for what takes some ten on a machine that does nothing else."""
NEEDS_SEVERAL = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this PyTorch cannot run more than one process"
)
# By address, and over the loopback alone: the name of a machine may lead to nowhere, or take its time.
TORCHRUN = (
    *("-m", "torch.distributed.run", "--nproc-per-node", 2),
    *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"),
)
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
KILLED = """
import os, signal
from treepiece.cli.main import run
from treepiece.training import loop

def save_and_die(*arguments, n_saved=iter(range(1, 1000))):
    save(*arguments)
    if next(n_saved) == 12:
        os.kill(os.getpid(), signal.SIGKILL)

save, loop.save_checkpoint = loop.save_checkpoint, save_and_die
run()
"""
"""`treepiece`, killed in the second epoch, right after a checkpoint: however slow this machine is, not too late."""


@pytest.fixture
def recipe_file(tiny_encoder, tmp_path):
    def write(**changes):
        settings = {"encoder": str(tiny_encoder), **SETTINGS}
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump({**settings, **changes}))
        return path

    return write


def start(*command):
    paths = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **LOOPBACK, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process, code=0, max_length=LONGEST):
    try:
        out, err = process.communicate(timeout=max_length)
    except subprocess.TimeoutExpired:
        with process:  # which closes its pipes
            process.terminate()  # torchrun then ends its processes, by force if need be: killed, it would leave them
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=120)
            process.kill()
        raise
    assert process.returncode == code, err
    return out, err


def finish_two(*command, prepare=lambda name: (), code=0):
    """Run two processes to their end, again if they do not end: on a busy machine a rank was once seen never to.

    `prepare` gives the last arguments of each try.
    """
    for name, max_length in (("first", LONGEST / 2), ("again", LONGEST)):
        try:
            return name, *finish(start(*TORCHRUN, *command, *prepare(name)), code, max_length)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("two processes did not end, twice")


@NEEDS_SEVERAL
def test_two_processes_hold_the_same_weights_and_validate_every_row_once(tmp_path, recipe_file):
    def prepare(name):
        (tmp_path / name).mkdir()
        return tmp_path / name, recipe_file()

    tmp_path /= finish_two(HERE / "two_processes.py", prepare=prepare)[0]
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first["weights"] == second["weights"]
    assert first["best"] == second["best"]
    assert first["validated"] == first["held_out"]
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 150, "--output", data))
    command = ("-m", "treepiece", "train", data, "--recipe", recipe_file(checkpoint_seconds=0.0, epochs=3))
    finish(start(*command, "--output", tmp_path / "whole"))
    finish(start("-c", KILLED, *command[2:], "--output", tmp_path / "killed", "--resume"), code=-signal.SIGKILL)
    assert (tmp_path / "killed" / "run" / "last.safetensors").exists()
    _, err = finish(start(*command, "--output", tmp_path / "killed", "--resume"))
    assert "continuing after step" in err
    whole, killed = (
        safetensors.torch.load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "killed")
    )
    assert all(torch.equal(weight, killed[name]) for name, weight in whole.items())


def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 300, "--output", data))
    command = ("-m", "treepiece", "train", data, "--output", tmp_path / "model", "--recipe", recipe_file(epochs=500))
    process = start(*command)
    end = time.monotonic() + LONGEST
    while not (tmp_path / "model" / "log").exists():  # from here on it is in the loop, for 500 epochs
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "the training does not begin"
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = finish(process, code=130)
    assert "add --resume to the same command" in err
    assert (tmp_path / "model" / "run" / "last.safetensors").is_file()
    assert "Traceback" not in err


@NEEDS_SEVERAL
def test_the_command_runs_under_torchrun_and_fails_in_all_processes_at_once(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 60, "--output", data))
    command = ("-m", "treepiece", "train", data, "--recipe", recipe_file(epochs=1))
    name, *_ = finish_two(*command, prepare=lambda name: ("--output", tmp_path / name))
    assert (tmp_path / name / "manifest.json").is_file()
    *_, err = finish_two(*command, "--output", tmp_path / name, code=1)
    assert "training run already" in err
