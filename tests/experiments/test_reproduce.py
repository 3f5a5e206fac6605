"""The reproduction at toy size: all of it, interrupted, and with what cannot be used."""

import json
import os
import shutil
import signal

import pytest

from experiments import reproduce as command
from experiments import scoring
from experiments.training import manifest_digest
from treepiece.bundle import BUNDLED, find_graphs
from treepiece.cli.console import ProgressBars

pytestmark = pytest.mark.slow

TRAINED = {"train-treepiece-0", "train-ar-0", "train-nar-0", "low-resource-treepiece-source", "low-resource-ar-source"}
SCORED = {"scores-treepiece-0", "scores-ar-0", "scores-nar-0"}
COMPARED = ("extensions-label-logits-0", "extensions-whole-units-0", "merges-0-0")
TRAINED |= {f"{name}-train" for name in COMPARED}
SCORED |= {f"{name}-scores" for name in COMPARED}
FEW = {f"low-resource-{kind}-{domain}-10-0" for kind in ("treepiece", "ar") for domain in ("reminder", "weather")}
ALL = (
    TRAINED
    | SCORED
    | FEW
    | {f"rates-{kind}" for kind in ("treepiece", "ar", "nar")}
    | {"tokenizer", "figure3", "latency", "bundled", "ablations-no-reranker", "ablations-batch-size-64"}
)


def names(work):
    return {path.stem for path in (work / "parts").iterdir()}


def test_everything_is_done_once(done, reproduce, capsys):
    assert names(done) == ALL
    before = {path: path.stat().st_mtime_ns for path in (done / "parts").iterdir()}
    assert reproduce(done) == 0
    assert f"{len(ALL)} done" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (done / "parts").iterdir()} == before


def test_only_models_that_are_needed_later_are_kept(done):
    kept = {path.name.rpartition("-")[0] for path in (done / "files").iterdir()}
    assert kept == TRAINED | SCORED


def test_a_training_selects_on_rows_of_the_train_split(done, results):
    result = results(done, "train-ar-0")
    assert result["kind"] == "ar"
    assert result["rows"] == 144
    assert result["validation"]["rows"] == 16
    assert not result["taken"]


def test_scores_are_of_the_whole_eval_split(done, results):
    result = results(done, "scores-treepiece-0")
    assert list(result["settings"]) == ["int8 greedy", "float greedy"]
    for scores in result["settings"].values():
        assert scores["rows"] == len(scores["row_outcomes"]) == 40
        assert scores["row_outcomes"].count("=") == round(40 * scores["em"])
        assert scores["in_beam"] >= scores["em"]
        assert sum(one["answers"] for one in scores["calibration"]["parses"]["bins_after"]) == 40
    assert set(result["times"]) == {"greedy"}
    assert "int8 greedy" in results(done, "scores-ar-0")["settings"]


def test_few_rows_are_scored_with_and_without_those_that_were_validated_with(done, results):
    result = results(done, "low-resource-treepiece-weather-10-0")
    assert (result["rows"], result["validation_rows"]) == (3, 2)
    assert result["scores"]["fresh"]["rows"] == result["scores"]["rows"] - 2


def test_a_variant_is_scored_without_reranking_too(done, results):
    result = results(done, "ablations-no-reranker")
    assert set(result["greedy"]) == {"em", "passes", "by_seen"}
    assert sum(one["rows"] for one in result["greedy"]["by_seen"].values()) == result["scored_rows"]


def test_the_plan_does_nothing(reproduce, tmp_path, capsys):
    assert reproduce(tmp_path / "work", "--plan", "--seeds", 2) == 0
    said = capsys.readouterr().err
    for name in ("train-nar-1", "low-resource-ar-weather-10-1", "latency"):
        assert name in said
    assert not (tmp_path / "work").exists()


def test_a_part_whose_sources_are_missing_waits(reproduce, tmp_path, capsys):
    assert reproduce(tmp_path / "work", "--only", "latency", "scores-ar") == 1
    said = capsys.readouterr().err
    assert "scores-ar-0: waits for train-ar-0: not done" in said
    assert "not done: scores-ar-0, latency" in said


def test_an_interrupted_training_goes_on(done, reproduce, results, tmp_path, capsys, monkeypatch):
    work, update = tmp_path / "work", ProgressBars.update

    def interrupted(bars, stage, done, *rest):
        update(bars, stage, done, *rest)
        if (stage, done) == ("training", 3):
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ProgressBars, "update", interrupted)
        assert reproduce(work, "--only", "train-treepiece") == 130
    assert "the same command continues" in capsys.readouterr().err
    assert not (work / "parts").exists()
    assert reproduce(work, "--only", "train-treepiece", "--plan") == 0
    assert "1 begun" in capsys.readouterr().err
    assert reproduce(work, "--only", "train-treepiece") == 0
    assert "continuing after step 3" in capsys.readouterr().err
    ours, theirs = (results(folder, "train-treepiece-0") for folder in (work, done))
    assert ours["manifest"] == theirs["manifest"]  # which has the checksum of the weights


def test_interrupted_scores_keep_what_was_scored(done, reproduce, tmp_path, monkeypatch):
    work = copy_without(done, tmp_path / "work", "scores-treepiece-0")
    score, scored = scoring.score_rows, []

    def stop_at_the_second(parser, rows, title, **options):
        scored.append(title)
        if len(scored) == 2:
            raise KeyboardInterrupt
        return score(parser, rows, title, **options)

    monkeypatch.setattr(scoring, "score_rows", stop_at_the_second)
    assert reproduce(work, "--only", "scores-treepiece") == 130
    assert reproduce(work, "--only", "scores-treepiece") == 0
    assert scored == ["int8 greedy", "float greedy", "float greedy"]


def copy_without(done, work, part):
    """Copy all but a part, and the models that only others need."""
    shutil.copytree(done, work, ignore=shutil.ignore_patterns(f"{part}*", "*-nar-*", "low-resource*", "docs"))
    return work


def test_a_taken_model_is_scored_like_one_trained_here(done, reproduce, results, tmp_path):
    (model,) = (done / "files").glob("train-treepiece-0-*/model")
    work = tmp_path / "work"
    assert reproduce(work, "--only", "train-treepiece", "scores-treepiece", "--take", f"treepiece={model}") == 0
    assert results(work, "train-treepiece-0")["taken"]
    assert results(work, "scores-treepiece-0")["manifest"] == results(done, "train-treepiece-0")["manifest"]
    assert str(model) not in (work / "parts" / "train-treepiece-0.json").read_text()
    assert not list((work / "files").glob("train-*/model"))


def test_a_model_of_another_kind_is_refused(done, reproduce, tmp_path, capsys):
    (model,) = (done / "files").glob("train-nar-0-*/model")
    assert reproduce(tmp_path / "work", "--take", f"ar={model}") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a model of the kind nar, expected ar" in said
    assert f"--take nar={model}" in said


def test_a_model_that_has_seen_all_of_train_cannot_be_calibrated(done, reproduce, tmp_path, capsys):
    (model,) = (done / "files").glob("low-resource-ar-source-*/model")
    assert reproduce(tmp_path / "work", "--only", "train-ar", "scores-ar", "--take", f"ar={model}") == 1
    assert "which rows it has not seen cannot be told" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("missing", "only"),
    [
        (["event_train.tsv", "timer_eval.tsv"], "train"),
        (["low_resource_splits/weather_valid_10spis.tsv"], "low-resource"),
    ],
)
def test_missing_domains_are_all_named(missing, only, toy_topv2, reproduce, tmp_path, capsys):
    data = shutil.copytree(toy_topv2, tmp_path / "data")
    for name in missing:
        (data / name).unlink()
    assert reproduce(tmp_path / "work", "--only", only, data=data) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{data}: {len(missing)} of " in said
    assert ", ".join(missing) in said
    assert "treepiece data topv2" in said


def test_what_was_made_from_something_else_is_out_of_date(done, reproduce, toy_topv2, tmp_path, capsys):
    data = shutil.copytree(toy_topv2, tmp_path / "data")
    with (data / "timer_train.tsv").open("a") as file:
        file.write("timer\tstop\t[IN:STOP stop ]\n")
    assert reproduce(done, "--plan", "--only", "train", "scores", "latency", data=data) == 0
    said = capsys.readouterr().err
    assert "3 out of date, 4 waiting" in said


def test_a_part_that_fails_does_not_stop_the_others(reproduce, tmp_path, capsys, monkeypatch):
    take = command.take_rows

    def fail_once(rows, n):
        monkeypatch.setattr(command, "take_rows", take)
        return take(rows[:0], n)

    monkeypatch.setattr(command, "take_rows", fail_once)
    assert reproduce(tmp_path / "work", "--only", "ablations") == 1
    said = capsys.readouterr().err
    assert "ablations-no-reranker: failed: " in said
    assert names(tmp_path / "work") == {"ablations-batch-size-64"}


def test_a_damaged_result_says_what_to_do(done, reproduce, tmp_path, capsys):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "figure3.json").write_text(json.dumps({"part": "figure3"}))
    assert reproduce(tmp_path, "--plan") == 2
    assert "delete the file" in capsys.readouterr().err


def test_exports_are_where_latency_finds_them(done):
    for kind in ("treepiece", "ar", "nar"):
        assert list((done / "files").glob(f"scores-{kind}-0-*/bundle/manifest.json"))


def test_the_bundled_model_is_scored_as_it_is(done, results):
    result = results(done, "bundled")
    assert result["manifest"] == manifest_digest(find_graphs(BUNDLED))
    assert list(result["settings"]) == ["int8 greedy", "int8 default", "int8 always"]
    assert all(scores["rows"] == 40 and scores["invalid"] == 0 for scores in result["settings"].values())
