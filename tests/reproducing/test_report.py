"""The page with the results, from what is there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.__main__ import main
from reproduction.report.accuracy import compare_rows
from reproduction.report.headline import headline
from reproduction.report.page import keep
from reproduction.report.results import Results
from reproduction.store import Record, Store

ROOT = Path(__file__).parents[2]
LIGHT = """
import sys
from reproduction.__main__ import main
code = main(sys.argv[1:])
print(code, *({"torch", "onnxruntime", "lightning"} & {name.partition(".")[0] for name in sys.modules}))
"""


def page(folder):
    return (folder / "results.md").read_text(encoding="utf-8")


def test_no_text_of_a_row_is_published():
    for file in (ROOT / "docs" / "results" / "parts").iterdir():
        assert '"utterance"' not in file.read_text(encoding="utf-8"), file.name


def test_a_whole_page(done):
    text = page(done / "docs")
    assert "not run yet" not in text.lower().replace(
        "pytorch, ms |  | not run yet |  | not run yet |  | not run yet", ""
    )
    assert "86.78" in text
    for title in (
        "Table 1",
        "The model inside",
        "Row by row",
        "Ways to search",
        "Latency",
        "8 bits",
        "Confidence",
        "Figure 3",
        "Tokenizer",
        "new domain",
    ):
        assert re.search(rf"^## .*{title}", text, re.MULTILINE), title
    assert "TreePiece (seed 0) against AR (seed 0)" in text
    assert "| batch 64 |" in text
    assert "| ONNX Runtime, int8 | NAR |  | 1.00 (2.00) | 1.50 | 1.00 (2.00) | 1.50 |" in text
    assert "| full TreePiece parse / encoder | at most 1.2 | 1.25 (1.25) |  |  |" in text
    for figure in re.findall(r"\]\((figures/[\w-]+\.png)\)", text):
        assert (done / "docs" / figure).read_bytes().startswith(b"\x89PNG")
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


def test_no_place_on_a_disk_is_named(done):
    text = page(done / "docs")
    assert str(done.parents[1]) not in text  # the recipes of tests name a folder as their encoder
    assert "Encoder: `encoder" in text


def test_an_empty_page_says_so(tmp_path):
    assert main(["--work", str(tmp_path / "none"), "--docs", str(tmp_path), "--only", "report"]) == 0
    text = page(tmp_path)
    assert text.count("Not run yet: `python -m reproduction --only") == 12
    assert "| EM, % | 86.78 | not run yet | 86.99 | not run yet | 86.22 | not run yet |" in text


def test_the_page_in_the_documentation_is_that_of_the_results_beside_it(tmp_path):
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "results")
    assert main(["--work", str(tmp_path / "none"), "--docs", str(tmp_path), "--only", "report"]) == 0
    assert page(tmp_path) == page(ROOT / "docs")


def test_a_page_from_some_results(done, tmp_path):
    """In a process of its own, because it must not load PyTorch."""
    kept = ("scores-treepiece-0", "low-resource-ar-weather-10", "figure3")
    (tmp_path / "parts").mkdir()
    for name in kept:
        shutil.copy(done / "parts" / f"{name}.json", tmp_path / "parts")
    command = [sys.executable, "-c", LIGHT, "--work", tmp_path, "--docs", tmp_path / "docs", "--only", "report"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["0"]
    text = page(tmp_path / "docs")
    assert re.search(r"^\| EM, % \| 86.78 \| [\d.]+ \| 86.99 \| not run yet \|", text, re.MULTILINE)
    assert "Latency: not run yet" in text
    assert "Not run yet: `python -m reproduction --only ablations report`." in text
    assert re.search(r"^\| weather \| 10 \| 3 \|", text, re.MULTILINE)
    assert not re.search(r"^\| reminder \| 10", text, re.MULTILINE)


def test_several_seeds_give_a_mean_and_a_range(tmp_path):
    store = Store(tmp_path)
    for seed, em in enumerate((0.8, 0.85)):
        scores = {"em": em, "em_s": em, "passes": 2.0, "invalid": 0}
        facts = {"recipe": {"encoder": "minilm", "epochs": 3, "batch": 128}, "validation": {"epoch": 3, "rows": 9}}
        write(store, f"scores-treepiece-{seed}", {**facts, "settings": {"int8 greedy": scores}})
    text = headline(Results(store))
    assert "| EM, % | 86.78 | 82.50 (80.00 to 85.00) |" in text
    assert "| models (seeds) | 3 | 2 | 3 | 0 | 3 | 0 |" in text


def test_epochs_of_earlier_runs_count(tmp_path):
    store = Store(tmp_path)
    before = [{"recipe": {"epochs": 4}, "validation": {"epoch": 2}}]
    facts = {"recipe": {"epochs": 3, "batch": 64}, "validation": {"epoch": 3, "rows": 9}, "before": before}
    write(store, "scores-ar-0", {**facts, "settings": {}})
    text = headline(Results(store))
    assert "| epochs | up to 100 | not run yet | up to 100 | 5 | up to 100 | not run yet |" in text
    assert "AR, seed 0: epoch 3 of 3, after 2 of another run, in batches of 64" in " ".join(text.split())


def test_a_page_keeps_what_it_was_written_from(tmp_path):
    docs, first, second = tmp_path / "docs", Store(tmp_path / "first"), Store(tmp_path / "second")
    write(first, "train-ar-0", {"manifest": "old"})
    write(first, "train-nar-0", {"manifest": "old"})
    write(second, "train-ar-0", {"manifest": "new"})
    for store in (first, second):
        keep(Results(store, Store(docs)), Store(docs))
    found = Results(Store(docs))
    assert {name: record.result["manifest"] for name, record in found.records.items()} == {
        "train-ar-0": "new",
        "train-nar-0": "old",
    }


def test_results_that_do_not_belong_together_are_named(tmp_path):
    store = Store(tmp_path)
    write(store, "train-ar-0", {"manifest": "new"})
    write(store, "scores-ar-0", {}, needs={"train-ar-0": "the checksum of an older one"})
    assert Results(store).outdated() == ["scores-ar-0"]


def write(store, name, result, needs=None):
    store.write(Record(name, "made up", {}, needs or {}, {"cpu": "made up"}, 1.0, result))


def test_rows_that_one_parser_could_not_read_are_not_compared():
    test = compare_rows("==.s-=", "=...=-")
    assert (test.only_first, test.only_second) == (1, 0)
    assert test.difference == pytest.approx(1 / 4)
