"""Jobs in processes of their own, which signals and limits of the system end."""

import json
import signal
import subprocess
import sys
from functools import partial

import pytest

from treepiece.data.toy import toy_rows


def command(bundle, *arguments):
    return [sys.executable, "-m", "treepiece", "parse", "--model", str(bundle), "--threads", "1", *map(str, arguments)]


def signalled(bundle, number, n_parts, *arguments):
    """Return a command that gets a signal when so many parts are there: however slow this machine is, not too late."""
    code = (
        "import os; from treepiece.cli.main import run; from treepiece.jobs.part_files import PartFiles\n"
        "def write(parts, part):\n"
        "    whole(parts, part)\n"
        f"    if len(list(parts.folder.glob('0*.json'))) == {n_parts}: os.kill(os.getpid(), {int(number)})\n"
        "whole, PartFiles.write = PartFiles.write, write\n"
        "run()"
    )
    program, _, _, *rest = command(bundle, *arguments)
    return [program, "-c", code, *rest]


@pytest.mark.slow
def test_kill_9(tiny_bundle, tmp_path):
    rows = tmp_path / "rows.jsonl"
    texts = [utterance for _, utterance, _ in toy_rows(3000)]
    rows.write_text("".join(json.dumps({"utterance": text, "id": n}) + "\n" for n, text in enumerate(texts)))
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    folder = tmp_path / "out.jsonl.parts"
    subprocess.run(command(tiny_bundle, "--input", rows, "--output", whole), check=True, timeout=600)
    given = ("--input", rows, "--output", output)
    for n_parts in (1, 3):
        dying = signalled(tiny_bundle, signal.SIGKILL, n_parts, *given, "--resume")
        killed = subprocess.run(dying, stderr=subprocess.DEVNULL, timeout=600, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not output.exists()
        assert len(list(folder.glob("0*.json"))) == n_parts
    arguments = command(tiny_bundle, *given)
    refused = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert refused.returncode == 2
    assert "an unfinished job is there" in refused.stderr
    subprocess.run([*arguments, "--resume"], check=True, timeout=600)
    assert output.read_bytes() == whole.read_bytes()
    assert [json.loads(line)["id"] for line in output.read_text().splitlines()] == list(range(3000))
    assert not folder.exists()


@pytest.mark.slow
def test_a_limit_on_files_is_one_line(tiny_bundle, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(200)))
    resource = pytest.importorskip("resource", reason="there are no limits on files here")
    arguments = command(tiny_bundle, "--input", tmp_path / "rows.txt", "--output", tmp_path / "out.jsonl")
    result = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)),
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {tmp_path / 'out.jsonl'}: cannot be written: File too large; finished rows")
    subprocess.run([*arguments, "--resume"], check=True, timeout=300)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 200


@pytest.mark.slow
def test_ctrl_c(tiny_bundle, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(5000)))
    given = ("--input", tmp_path / "rows.txt", "--output", tmp_path / "out.jsonl")
    arguments = signalled(tiny_bundle, signal.SIGINT, 1, *given)
    # In a job that runs in the background of a shell the signal is ignored, and so it would be in what it starts.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.run(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=listen, timeout=300, check=False)
    assert process.returncode == 130
    assert process.stderr.startswith("stopped; finished rows are kept. Run the same command with --resume to continue")
    assert "Traceback" not in process.stderr
