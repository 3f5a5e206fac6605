"""A job can end at any moment: nothing is lost, nothing is there twice, and the output is the same."""

import errno
import os
import shutil
from pathlib import Path

import pytest
from job_tools import Killed, Watch, die_after, run

from treepiece.data.toy import toy_rows
from treepiece.errors import DataError, OptionError
from treepiece.jobs import part_files
from treepiece.runtime.parser import Parser


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=2)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(12)) + "\n\n")
    return path


@pytest.fixture
def started(parser, rows, tmp_path):
    """The output of a job that was killed after two of its parts."""
    output = tmp_path / "out.jsonl"
    with pytest.raises(Killed):
        run(parser, rows, output, progress=die_after(8))
    return output


def folder_of(output):
    return output.with_name(f"{output.name}.parts")


def die_at(monkeypatch, moment):
    """Raise at the moment when so many changes to the file system have been made; return how many there were."""
    made = []

    def dying(change):
        def do(*args, **kwargs):
            if len(made) == moment:
                raise Killed
            made.append(change.__name__)
            return change(*args, **kwargs)

        return do

    monkeypatch.setattr(os, "replace", dying(os.replace))
    monkeypatch.setattr(os, "fsync", dying(os.fsync))
    monkeypatch.setattr(Path, "mkdir", dying(Path.mkdir))
    unlink, rmdir = Path.unlink, Path.rmdir
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: dying(unlink)(path, missing_ok=missing_ok))
    monkeypatch.setattr(Path, "rmdir", dying(rmdir))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "tsv"])
def test_every_moment(parser, rows, tmp_path, kind, monkeypatch):
    output = tmp_path / f"out.{kind}"
    run(parser, rows, output)
    expected = output.read_bytes()
    moment = 0
    while True:
        output.unlink(missing_ok=True)
        shutil.rmtree(folder_of(output), ignore_errors=True)
        with monkeypatch.context() as patch:
            made = die_at(patch, moment)
            try:
                run(parser, rows, output)
            except Killed:
                pass
            else:
                break
            assert len(made) == moment
        is_complete = output.exists()
        assert not is_complete or output.read_bytes() == expected
        if is_complete and not folder_of(output).exists():
            break  # all that was left to do was to go
        if is_complete and not any(folder_of(output).iterdir()):
            with pytest.raises(DataError, match="exists already"):  # there is nothing left to tell whose it is
                run(parser, rows, output, resume=True)
        else:
            summary = run(parser, rows, output, resume=True)
            assert (summary is None) if is_complete else (summary.rows, summary.errors) == (14, 2)
        assert output.read_bytes() == expected
        assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, rows.name]
        moment += 1
    assert moment > 30


def test_parts_that_are_done_are_not_made_again(parser, rows, tmp_path, started):
    seen = []
    summary = run(parser, rows, started, resume=True, progress=Watch(rows=lambda *numbers: seen.append(numbers)))
    assert seen == [(8, 14), (12, 14), (14, 14)]
    assert (summary.rows, summary.errors) == (14, 2)
    assert [example.partition(":")[0] for example in summary.examples] == ["line 13", "line 14"]
    run(parser, rows, tmp_path / "whole.jsonl")
    assert started.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_an_unfinished_job_is_not_started_again(parser, rows, started):
    for overwrite in (False, True):
        with pytest.raises(DataError, match="an unfinished job is there: continue it with --resume, or remove"):
            run(parser, rows, started, overwrite=overwrite)
    assert not started.exists()
    run(parser, rows, started, resume=True)


def test_resume_without_a_job_starts_one(parser, rows, tmp_path):
    messages = []
    run(parser, rows, tmp_path / "out.jsonl", resume=True, progress=Watch(message=messages.append))
    assert "there is no job to resume: starting a new one" in messages[0]
    assert (tmp_path / "out.jsonl").exists()


def test_another_job_is_not_resumed(parser, tiny_bundle, rows, started, tmp_path):
    with pytest.raises(OptionError, match="nbest was 1, now it is 2; min confidence was 0.0, now it is 0.5"):
        run(parser, rows, started, resume=True, nbest=2, min_confidence=0.5)
    other = "float" if parser.precision == "int8" else "int8"
    with pytest.raises(OptionError, match=f"precision was {parser.precision}, now it is {other}"):
        run(Parser.load(tiny_bundle, precision=other), rows, started, resume=True)
    shutil.copytree(tiny_bundle, tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    with pytest.raises(OptionError, match="the model has changed"):
        run(Parser.load(tmp_path / "model"), rows, started, resume=True)
    before = rows.read_text()
    rows.write_text(before.replace("a", "b", 1))
    with pytest.raises(OptionError, match="belongs to another job: the input has changed: use the original options"):
        run(parser, rows, started, resume=True)
    rows.write_text(before)  # the time of the last change is another: that does not count
    assert run(parser, rows, started, resume=True).rows == 14


def test_an_old_output_stays_until_the_new_one_is_there(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    with pytest.raises(Killed):
        run(parser, rows, output, overwrite=True, progress=die_after(8))
    assert output.read_text() == "old"
    with pytest.raises(DataError, match="exists already"):
        run(parser, rows, output, resume=True)
    run(parser, rows, output, resume=True, overwrite=True)
    assert len(output.read_text().splitlines()) == 14


def test_an_output_that_appears_meanwhile_is_not_replaced(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    with pytest.raises(DataError, match="exists already"):
        run(parser, rows, output, progress=Watch(rows=lambda done, total: output.write_text("mine")))
    assert output.read_text() == "mine"
    output.unlink()
    assert run(parser, rows, output, resume=True).rows == 14


def test_a_folder_of_someone_else_is_left_alone(parser, rows, tmp_path):
    folder = tmp_path / "out.jsonl.parts"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    for resume in (False, True):
        with pytest.raises(DataError, match="holds other files and no plan.json"):
            run(parser, rows, tmp_path / "out.jsonl", resume=resume)
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_damaged_plan(parser, rows, started):
    (folder_of(started) / "plan.json").write_text("{")
    with pytest.raises(DataError, match="plan.json: damaged: remove the folder to start over"):
        run(parser, rows, started, resume=True)


def test_two_processes_do_not_work_on_one_output(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"

    def try_too(done, total):
        with pytest.raises(DataError, match="another process is working on it"):
            run(parser, rows, output, resume=True)

    run(parser, rows, output, progress=Watch(rows=try_too))
    assert len(output.read_text().splitlines()) == 14


def test_a_full_disk_costs_nothing(parser, rows, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    write, left = part_files.replace_files, iter(range(3))

    def fill(folder, files):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, files)

    monkeypatch.setattr(part_files, "replace_files", fill)
    with pytest.raises(DataError) as caught:
        run(parser, rows, output)
    assert "No space left on device; finished rows are kept: free some space, then continue with --resume" in str(
        caught.value
    )
    monkeypatch.undo()
    seen = []
    run(parser, rows, output, resume=True, progress=Watch(rows=lambda *numbers: seen.append(numbers)))
    assert seen[0] == (8, 14)
    assert len(output.read_text().splitlines()) == 14


@pytest.mark.skipif(
    not os.path.isdir("/sys") or os.name != "posix", reason="there is no folder that nobody can write to"
)
def test_a_folder_that_cannot_be_written(parser, rows):
    with pytest.raises(DataError, match=r"^/sys/out.jsonl: cannot be written: "):
        run(parser, rows, Path("/sys/out.jsonl"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="to the administrator every folder is writable")
def test_a_read_only_folder(parser, rows, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(DataError, match="cannot be written: Permission denied"):
        run(parser, rows, tmp_path / "closed" / "out.jsonl")
