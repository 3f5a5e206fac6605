"""The page with the results, from what is there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install '.[bench]'")

from experiments.__main__ import main
from experiments.parts import Record, Store, digest
from experiments.report import PAGE, read_results, write_report, write_results
from experiments.report.quality import compare_rows, headline
from experiments.report.results import Results

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIGHT = """
import sys
from experiments.__main__ import main
code = main(sys.argv[1:])
print(code, *({"torch", "onnxruntime", "lightning"} & {name.partition(".")[0] for name in sys.modules}))
"""
TITLES = (
    "Table 1",
    "The bundled model",
    "Row by row",
    "Ways to search",
    "Latency",
    "8 bits",
    "Confidence",
    "Figure 3",
    "Tokenizer",
    "A few rows of a new domain",
    "What helps",
    "How this was made",
)


def page(folder):
    return (folder / PAGE).read_text(encoding="utf-8")


def test_no_text_of_a_row_is_published():
    assert '"utterance"' not in (DOCS / "results.json").read_text(encoding="utf-8")


def test_no_utterance_of_topv2_is_published(topv2):
    from experiments.topv2 import rows_of_split, texts_of

    strings = set()
    values = [json.loads((DOCS / "results.json").read_bytes())]
    while values:
        value = values.pop()
        if isinstance(value, str):
            strings.add(value)
        elif isinstance(value, dict | list):
            values += value if isinstance(value, list) else [*value, *value.values()]
    assert not strings & {text for text in texts_of(rows_of_split(topv2, "eval")) if " " in text}


def test_the_page_in_the_documentation_is_that_of_the_published_results(tmp_path):
    """In a process of its own, because it must not load PyTorch."""
    command = [sys.executable, "-c", LIGHT, "report", "--docs", str(tmp_path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["0"]
    text = page(tmp_path)
    assert text == page(DOCS)
    for title in TITLES:
        assert re.search(rf"^## {title}", text, re.MULTILINE), title
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    for figure in re.findall(r"\]\((figures/[\w-]+\.png)\)", text):
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


def test_the_test_split_is_beside_the_paper():
    text = page(DOCS)
    assert re.search(r"^\| \*\*test\*\* \| 38,785 \| \*\*86.18\*\* \| \*\*88.45\*\* \|$", text, re.MULTILINE)
    assert "| test, the paper (RoBERTa-base) |  | 86.78 | 89.14 |" in text
    assert "The eval split is our development set" in " ".join(text.split())


def test_published_results_belong_together():
    records = read_results(DOCS / "results.json")
    assert Results(records).outdated() == []
    for name, record in records.items():
        assert record.part == name
        assert set(record.needs) <= set(records)
        assert re.fullmatch("[0-9a-f]{7,}", record.commit)
        assert name in record.command or "removed" in name or name == "bundled-test"


@pytest.mark.slow
def test_a_whole_page(done):
    text = page(done / "docs")
    assert "Not run yet" not in text
    for title in TITLES:
        assert re.search(rf"^## {title}", text, re.MULTILINE), title
    assert "TreePiece (seed 0) against AR (seed 0)" in text
    assert "| batch size 64 |" in text
    assert "| ONNX Runtime, int8 | NAR |  | 1.00 (2.00) | 1.50 | 1.00 (2.00) | 1.50 |" in text
    assert "| full TreePiece parse / encoder | at most 1.2 | 1.25 (1.25) |  |  |" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120
    assert set(read_results(done / "results.json")) == set(Store(done).records())


@pytest.mark.slow
def test_no_place_on_a_disk_is_named(done):
    text = page(done / "docs")
    assert str(done.parents[1]) not in text  # the recipes of tests name a folder as their encoder
    assert "Encoder: `encoder" in text


def test_an_empty_page_says_so(tmp_path):
    assert main(["report", "--results", str(tmp_path / "none.json"), "--docs", str(tmp_path)]) == 0
    text = " ".join(page(tmp_path).split())
    assert "Not run yet: Table 1, the bundled model, extensions, the number of merges, learning rates, scores, " in text
    assert re.findall(r"## ([\w ]+)", text) == ["How this was made "]


def test_a_page_from_some_results(tmp_path):
    records = read_results(DOCS / "results.json")
    kept = ("scores-treepiece-0", "low-resource-ar-weather-10-0", "figure3")
    write_results(tmp_path / "some.json", {name: records[name] for name in kept})
    text = page(write_report(tmp_path / "some.json", tmp_path).parent)
    assert re.search(r"^\| EM, % \| 86.78 \| [\d.]+ \| 86.99 \| none \|", text, re.MULTILINE)
    assert re.search(r"^\| weather \| 10 \| 86 \|", text, re.MULTILINE)
    assert not re.search(r"^\| reminder \| 10", text, re.MULTILINE)
    assert "## Latency" not in text


def record(name, result, needs=None):
    return Record(name, "made up", "0000000", {}, 1.0, {}, needs or {}, result)


def results_of(*records):
    return Results({one.part: one for one in records})


def test_several_seeds_give_a_mean_and_a_range():
    records = []
    for seed, em in enumerate((0.8, 0.85)):
        scores = {"em": em, "em_s": em, "passes": 2.0, "invalid": 0}
        metadata = {"recipe": {"encoder": "minilm", "epochs": 3, "batch_size": 128}, "validation": {"epoch": 3}}
        records.append(record(f"scores-treepiece-{seed}", {**metadata, "settings": {"int8 greedy": scores}}))
    text = headline(results_of(*records))
    assert "| EM, % | 86.78 | 82.50 (80.00 to 85.00) |" in text
    assert "| models (seeds) | 3 | 2 | 3 | 0 | 3 | 0 |" in text


def test_epochs_of_earlier_runs_count():
    before = [{"recipe": {"epochs": 4}, "validation": {"epoch": 2}}]
    metadata = {"recipe": {"epochs": 3, "batch_size": 64}, "validation": {"epoch": 3, "rows": 9}, "before": before}
    text = headline(results_of(record("scores-ar-0", {**metadata, "settings": {}})))
    assert "| epochs | up to 100 | none | up to 100 | 5 | up to 100 | none |" in text
    assert "AR, seed 0: epoch 3 of 3, after 2 of another run, in batches of 64" in " ".join(text.split())


def test_new_results_replace_those_that_were_published(tmp_path):
    file, store = tmp_path / "results.json", Store(tmp_path / "work")
    model = {
        "seed": 0,
        "taken": False,
        "rows": 9,
        "recipe": {"epochs": 1},
        "validation": {"epoch": 1, "em": 0.5, "rows": 3},
    }
    write_results(file, {f"train-{kind}-0": record(f"train-{kind}-0", {**model, "rows": 7}) for kind in ("ar", "nar")})
    store.write(record("train-ar-0", model))
    write_report(file, tmp_path, store)
    assert {name: one.result["rows"] for name, one in read_results(file).items()} == {"train-ar-0": 9, "train-nar-0": 7}


def test_results_that_do_not_belong_together_are_named(tmp_path):
    train, needs = record("train-ar-0", {"manifest": "new"}), {"train-ar-0": "the checksum of an older one"}
    assert results_of(train, record("scores-ar-0", {}, needs)).outdated() == ["scores-ar-0"]
    needs["train-ar-0"] = digest(train.result)
    assert results_of(train, record("scores-ar-0", {}, needs)).outdated() == []


def test_rows_that_one_parser_could_not_read_are_not_compared():
    test = compare_rows("==.s-=", "=...=-")
    assert (test.only_first, test.only_second) == (1, 0)
    assert test.difference == pytest.approx(1 / 4)
