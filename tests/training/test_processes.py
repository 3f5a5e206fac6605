"""Runs in processes of their own: two that train together, and one that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch  # noqa: E402
import yaml  # noqa: E402
from tiny import SETTINGS  # noqa: E402

HERE = Path(__file__).parent


@pytest.fixture
def recipe_file(tiny_encoder, tmp_path):
    def write(**changes):
        settings = {"encoder": str(tiny_encoder), **SETTINGS}
        path = tmp_path / "recipe.yaml"
        path.write_text(yaml.safe_dump({**settings, **changes}))
        return path

    return write


def start(*command, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process, code=0):
    out, err = process.communicate(timeout=180)
    assert process.returncode == code, err
    return out, err


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch cannot run more than one process")
def train_in_two(folder, recipe):
    """Return where two processes have left what they did. On a busy machine a rank was once seen never to end."""
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", 2, "--rdzv-backend", "c10d")
    for name in ("first", "again"):
        (folder / name).mkdir()
        process = start(
            *launcher,
            "--rdzv-endpoint",
            "127.0.0.1:0",
            HERE / "two_processes.py",
            folder / name,
            recipe,
            start_new_session=True,
        )
        try:
            finish(process)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        else:
            return folder / name
    raise AssertionError("two processes did not end, twice")


def test_two_processes_hold_the_same_weights_and_validate_every_row_once(tmp_path, recipe_file):
    tmp_path = train_in_two(tmp_path, recipe_file())
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    assert first["weights"] == second["weights"]
    assert first["best"] == second["best"]
    assert [n for n, _ in first["validation"]] == [first["held_out"]] * 2
    assert (tmp_path / "model" / "manifest.json").is_file()


def test_a_killed_run_goes_on_and_ends_with_the_same_weights(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 150, "--output", data))
    command = ("-m", "treepiece", "train", data, "--recipe", recipe_file(checkpoint_seconds=0.0, epochs=3))
    finish(start(*command, "--output", tmp_path / "whole"))
    checkpoint = tmp_path / "killed" / "run" / "last.safetensors"
    process = start(*command, "--output", tmp_path / "killed", "--resume")
    for _ in range(600):
        if checkpoint.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert checkpoint.exists()
    _, err = finish(start(*command, "--output", tmp_path / "killed", "--resume"))
    assert "going on after step" in err
    whole, killed = (
        safetensors.torch.load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "killed")
    )
    assert all(torch.equal(weight, killed[name]) for name, weight in whole.items())


def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 300, "--output", data))
    command = ("-m", "treepiece", "train", data, "--output", tmp_path / "model", "--recipe", recipe_file(epochs=500))
    process = start(*command)
    for _ in range(600):
        if (tmp_path / "model" / "log.csv").exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = finish(process, code=130)
    assert "Go on with the same command and --resume" in err
    assert (tmp_path / "model" / "run" / "last.safetensors").is_file()
    assert "Traceback" not in err


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch cannot run more than one process")
def test_the_command_runs_under_torchrun_and_fails_in_all_processes_at_once(tmp_path, recipe_file):
    data = tmp_path / "toy.tsv"
    finish(start("-m", "treepiece", "data", "toy", "--rows", 60, "--output", data))
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", 2, "--rdzv-backend", "c10d")
    command = (*launcher, "--rdzv-endpoint", "127.0.0.1:0", "-m", "treepiece", "train", data, "--recipe")
    finish(start(*command, recipe_file(epochs=1), "--output", tmp_path / "model"))
    assert (tmp_path / "model" / "manifest.json").is_file()
    _, err = finish(start(*command, recipe_file(epochs=1), "--output", tmp_path / "model"), code=1)
    assert "training run already" in err
