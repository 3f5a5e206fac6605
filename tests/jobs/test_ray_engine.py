"""The same job on a Ray cluster. It takes half a minute, nearly all of it to start Ray."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from job_tools import Killed, die_after

from treepiece.data.toy import toy_rows
from treepiece.errors import DataError
from treepiece.jobs.job import Engine, Job
from treepiece.jobs.runner import run_job
from treepiece.runtime.parser import Parser

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (importlib.util.find_spec("ray") and importlib.util.find_spec("pyarrow")),
        reason="Ray is not installed: pip install 'treepiece[ray]'",
    ),
    pytest.mark.filterwarnings("ignore"),  # what Ray warns of is not ours to mend
]


@pytest.fixture(scope="module")
def cluster():
    import ray

    # One of its own: there may be another, of another process of the tests.
    options = {"address": "local", "include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    for tries_left in (2, 1, 0):
        try:
            ray.init(num_cpus=2, **options)
            break
        except Exception:  # Ray gives itself half a minute to start, and has no setting for more
            ray.shutdown()
            if not tries_left:
                raise
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=2)


def test_the_same_rows_as_one_process(cluster, parser, tmp_path):
    texts = [utterance for _, utterance, _ in toy_rows(60)]
    texts[17], texts[40] = " ", "word " * 100
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)) + "bad\n")
    for kind in ("jsonl", "parquet"):
        here = run_job(Job(rows, tmp_path / f"here.{kind}", part_rows=7), parser)
        there = run_job(Job(rows, tmp_path / f"there.{kind}", part_rows=7), parser, engine=Engine.RAY)
        assert here == there
        assert (there.rows, there.errors) == (61, 3)
        assert (tmp_path / f"here.{kind}").read_bytes() == (tmp_path / f"there.{kind}").read_bytes()
    assert [json.loads(line).get("id") for line in (tmp_path / "there.jsonl").read_text().splitlines()] == [
        *range(60),
        None,
    ]


def test_a_job_moves_from_one_engine_to_the_other(cluster, parser, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(30)))

    job = Job(rows, tmp_path / "out.tsv", part_rows=4)
    with pytest.raises(Killed):
        run_job(job, parser, engine=Engine.RAY, progress=die_after(12))
    assert run_job(job, parser, resume=True).rows == 30
    run_job(Job(rows, tmp_path / "whole.tsv", part_rows=4), parser)
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def test_a_failure_on_the_cluster_is_one_line(cluster, parser, tmp_path, monkeypatch):
    rows = tmp_path / "rows.txt"
    rows.write_text("hello\n")
    monkeypatch.setattr(parser, "precision", "int4")
    with pytest.raises(DataError) as caught:
        run_job(Job(rows, tmp_path / "out.tsv"), parser, engine=Engine.RAY)
    assert "the Ray job failed" in str(caught.value)
    assert "precision must be one of float, int8, got 'int4'" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_cluster_that_is_named(cluster, parser, tiny_bundle, tmp_path):
    import ray

    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{utterance}\n" for _, utterance, _ in toy_rows(20)))
    arguments = ["--model", tiny_bundle, "--input", rows, "--output", tmp_path / "there.tsv", "--engine", "ray"]
    subprocess.run(
        [sys.executable, "-m", "treepiece", "parse", *map(str, arguments)],
        env={**os.environ, "RAY_ADDRESS": ray.get_runtime_context().gcs_address},
        check=True,
        timeout=600,
    )
    run_job(Job(rows, tmp_path / "here.tsv"), parser)
    assert (tmp_path / "there.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
    assert ray.is_initialized()


def test_no_rows(parser, tmp_path):
    (tmp_path / "rows.txt").write_text("")
    assert run_job(Job(tmp_path / "rows.txt", tmp_path / "out.tsv"), parser, engine=Engine.RAY).rows == 0
