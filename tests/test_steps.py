"""The benchmark of decoder passes, on a few frames that are counted by hand."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from treepiece import Frame, TokenizerConfig, TreePieceTokenizer

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

# Nothing is merged: a unit is a node.
TIMER = Frame.from_brackets("[IN:STOP stop ]")
SONG = Frame.from_brackets("[IN:PLAY play [SL:SONG hey jude ] ]")
NESTED = Frame.from_brackets("[IN:REMIND remind me to [SL:TODO [IN:CALL call [SL:WHO mum ] ] ] [SL:WHEN now ] ]")
UNKNOWN = Frame.from_brackets("[IN:PLAY play [SL:ALBUM low ] ]")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def steps(monkeypatch):
    """The script as a module; it finds its neighbours as it does when it is run."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module("steps")
    for name in ("steps", "corpora"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def tokenizer():
    frames = (TIMER, SONG, NESTED)
    return TreePieceTokenizer.train((frame.skeleton for frame in frames), TokenizerConfig(merges=0))


@pytest.fixture
def counts(steps, tokenizer):
    return steps.count_passes([TIMER, SONG, NESTED, UNKNOWN], tokenizer)


@pytest.fixture
def words(tmp_path):
    """A folder with a subword tokenizer that cuts at blanks, and would cut off all but three tokens."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_passes_of_each_parser(counts):
    assert [tree.passes for tree in counts] == [
        {"treepiece": 1, "ar": 2, "nar": 1},  # no leaf, so no pass for spans
        {"treepiece": 2 + 1, "ar": 6, "nar": 1},
        {"treepiece": 5 + 1, "ar": 5 + 2 * 2 + 5, "nar": 1},
        {"ar": 6, "nar": 1},
    ]
    assert [tree.n_units for tree in counts] == [1, 2, 5, None]
    assert [tree.n_tokens for tree in counts] == [2, 6, 14, 6]


def test_means(steps, counts):
    assert steps.summarize(counts) == {
        "trees": 4,
        "unencodable": 1,
        "single_unit": 1 / 4,
        "treepiece": (1 + 3 + 6) / 3,
        "ar": (2 + 6 + 14 + 6) / 4,
        "nar": 1,
    }


def test_a_tree_that_cannot_be_encoded_counts_for_the_others_only(steps, counts):
    curves = steps.group_by_length(counts)
    assert {name: [(p.tokens, p.trees, p.mean) for p in curve] for name, curve in curves.items()} == {
        "treepiece": [(2, 1, 1), (6, 1, 3), (14, 1, 6)],
        "ar": [(2, 1, 2), (6, 2, 6), (14, 1, 14)],
        "nar": [(2, 1, 1), (6, 2, 1), (14, 1, 1)],
    }


def test_percentiles_are_passes_that_trees_have(steps):
    trees = [steps.Counts(8, 1, {"treepiece": passes}) for passes in (2, 2, 2, 2, 2, 2, 2, 3, 4, 9)]
    (point,) = steps.group_by_length(trees)["treepiece"]
    assert point == steps.Point(tokens=8, trees=10, mean=3.0, p10=2, p90=4)
    assert json.loads(json.dumps(steps.to_json({"treepiece": [point]}))) == {"treepiece": [point._asdict()]}


def test_length_in_subwords(steps, tokenizer, words):
    (tree,) = steps.count_passes([NESTED], tokenizer, steps.subword_counter(str(words)))
    assert tree.n_tokens == 5 + 2 + 5  # labels, one word a leaf, brackets
    assert tree.passes["ar"] == 14


def test_subwords_that_cannot_be_read(steps, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit, match="of --subwords cannot be loaded.*or a folder with a tokenizer.json"):
        steps.subword_counter(str(tmp_path))


def test_the_figure(steps, counts, tmp_path):
    pytest.importorskip("matplotlib")
    figure = steps.new_figure()
    curves = steps.group_by_length([*counts[:2] * steps.FEWEST, counts[2]])
    steps.draw(figure, curves, data="A few trees", tokens="in subwords")
    (axes,) = figure.axes
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(2, 6)}  # only one tree has 14 tokens
    assert {text.get_text() for text in axes.texts} >= set(steps.NAMES.values())
    assert axes.get_xlabel() == "tokens of the logical form, in subwords"
    steps.save(figure, tmp_path / "figures" / "passes.png")
    assert (tmp_path / "figures" / "passes.png").read_bytes().startswith(PNG)


def test_a_figure_without_points(steps, tmp_path):
    pytest.importorskip("matplotlib")
    figure = steps.new_figure()
    steps.draw(figure, steps.group_by_length([]), data="No trees", tokens="in subwords")
    steps.save(figure, tmp_path / "empty.png")


def test_without_matplotlib_it_says_what_to_install(steps, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit, match=r"matplotlib.*pip install 'treepiece\[bench\]'"):
        steps.new_figure()


def test_without_topv2_it_says_where_to_get_it(steps, monkeypatch, tmp_path):
    monkeypatch.setenv("TREEPIECE_TOPV2", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "argv", ["steps.py"])
    with pytest.raises(SystemExit, match="treepiece data topv2"):
        steps.main()


def test_from_data_to_figure(steps, monkeypatch, capsys, tmp_path):
    """The whole command on a folder that looks like TOPv2."""
    pytest.importorskip("matplotlib")
    rows = ["music\tstop\t[IN:STOP stop ]", "music\tplay hey jude\t[IN:PLAY play [SL:SONG hey jude ] ]"]
    for split in ("train", "eval"):
        lines = ["domain\tutterance\tsemantic_parse", *rows * 10]
        (tmp_path / f"music_{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plot = tmp_path / "passes.png"
    monkeypatch.setenv("TREEPIECE_TOPV2", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["steps.py", "--json", "--plot", str(plot)])
    steps.main()
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["trees", "unencodable", "single_unit", "treepiece", "ar", "nar", "by_length"]
    assert [(point["tokens"], point["trees"]) for point in printed["by_length"]["ar"]] == [(2, 10), (6, 10)]
    assert plot.read_bytes().startswith(PNG)
