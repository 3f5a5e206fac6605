"""A job can end at any moment: nothing is lost, nothing is there twice, and the output is the same."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from treepiece.data.toy import toy_rows
from treepiece.errors import DataError, OptionError
from treepiece.jobs import parts as parts_module
from treepiece.jobs.job import Job
from treepiece.jobs.run import Observer, run_job
from treepiece.runtime.parser import Parser


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=2)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(12)) + "\n\n")
    return path


@pytest.fixture
def begun(parser, rows, tmp_path):
    """The output of a job that was killed after two of its parts."""
    output = tmp_path / "out.jsonl"
    with pytest.raises(Killed):
        run(parser, rows, output, observer=Observer(rows=die_after(8)))
    return output


def die_after(rows):
    def observe(done, total):
        if done >= rows:
            raise Killed

    return observe


def run(parser, source, output, **options):
    given = {name: options.pop(name) for name in ("resume", "overwrite", "observer") if name in options}
    return run_job(Job(source, output, **{"part_rows": 4, **options}), parser, **given)


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
            assert (summary is None) if is_complete else (summary.rows, summary.bad) == (14, 2)
        assert output.read_bytes() == expected
        assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, rows.name]
        moment += 1
    assert moment > 30


def test_parts_that_are_done_are_not_made_again(parser, rows, tmp_path, begun):
    seen = []
    summary = run(parser, rows, begun, resume=True, observer=Observer(rows=lambda *numbers: seen.append(numbers)))
    assert seen == [(8, 14), (12, 14), (14, 14)]
    assert (summary.rows, summary.bad) == (14, 2)
    assert [example.partition(":")[0] for example in summary.examples] == ["line 13", "line 14"]
    run(parser, rows, tmp_path / "whole.jsonl")
    assert begun.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_job_that_was_begun_is_not_begun_again(parser, rows, begun):
    for overwrite in (False, True):
        with pytest.raises(DataError, match="an unfinished job is there: go on with it with --resume, or remove"):
            run(parser, rows, begun, overwrite=overwrite)
    assert not begun.exists()
    run(parser, rows, begun, resume=True)


def test_resume_without_a_job_begins_one(parser, rows, tmp_path):
    remarks = []
    run(parser, rows, tmp_path / "out.jsonl", resume=True, observer=Observer(remark=remarks.append))
    assert "there is no job to go on with: a new one begins" in remarks[0]
    assert (tmp_path / "out.jsonl").exists()


def test_another_job_is_not_gone_on_with(parser, tiny_bundle, rows, begun, tmp_path):
    with pytest.raises(OptionError, match="nbest was 1, now it is 2; min confidence was 0.0, now it is 0.5"):
        run(parser, rows, begun, resume=True, nbest=2, min_confidence=0.5)
    other = "float" if parser.precision == "int8" else "int8"
    with pytest.raises(OptionError, match=f"precision was {parser.precision}, now it is {other}"):
        run(Parser.load(tiny_bundle, precision=other), rows, begun, resume=True)
    shutil.copytree(tiny_bundle, tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    with pytest.raises(OptionError, match="the model has changed"):
        run(Parser.load(tmp_path / "model"), rows, begun, resume=True)
    before = rows.read_text()
    rows.write_text(before.replace("a", "b", 1))
    with pytest.raises(OptionError, match="is of another job: the input has changed: give what it began with"):
        run(parser, rows, begun, resume=True)
    rows.write_text(before)  # the time of the last change is another: that does not count
    assert run(parser, rows, begun, resume=True).rows == 14


def test_an_old_output_stays_until_the_new_one_is_there(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    with pytest.raises(Killed):
        run(parser, rows, output, overwrite=True, observer=Observer(rows=die_after(8)))
    assert output.read_text() == "old"
    with pytest.raises(DataError, match="exists already"):
        run(parser, rows, output, resume=True)
    run(parser, rows, output, resume=True, overwrite=True)
    assert len(output.read_text().splitlines()) == 14


def test_an_output_that_appears_meanwhile_is_not_replaced(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"
    with pytest.raises(DataError, match="exists already"):
        run(parser, rows, output, observer=Observer(rows=lambda done, total: output.write_text("mine")))
    assert output.read_text() == "mine"
    output.unlink()
    assert run(parser, rows, output, resume=True).rows == 14


def test_a_folder_of_someone_else_is_left_alone(parser, rows, tmp_path):
    folder = tmp_path / "out.jsonl.parts"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    for resume in (False, True):
        with pytest.raises(DataError, match="has other files in it, and no plan.json"):
            run(parser, rows, tmp_path / "out.jsonl", resume=resume)
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_damaged_plan(parser, rows, begun):
    (folder_of(begun) / "plan.json").write_text("{")
    with pytest.raises(DataError, match="plan.json: damaged: remove the folder to begin again"):
        run(parser, rows, begun, resume=True)


def test_two_processes_do_not_work_on_one_output(parser, rows, tmp_path):
    output = tmp_path / "out.jsonl"

    def try_too(done, total):
        with pytest.raises(DataError, match="another process is at work on it"):
            run(parser, rows, output, resume=True)

    run(parser, rows, output, observer=Observer(rows=try_too))
    assert len(output.read_text().splitlines()) == 14


def test_a_full_disk_costs_nothing(parser, rows, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    write, left = parts_module.replace_files, iter(range(3))

    def fill(folder, files):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, files)

    monkeypatch.setattr(parts_module, "replace_files", fill)
    with pytest.raises(DataError) as caught:
        run(parser, rows, output)
    assert "No space left on device; the rows that are done are kept: make room, then go on with --resume" in str(
        caught.value
    )
    monkeypatch.undo()
    seen = []
    run(parser, rows, output, resume=True, observer=Observer(rows=lambda *numbers: seen.append(numbers)))
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
