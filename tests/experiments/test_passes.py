"""The benchmark of decoder passes, on a few frames that are counted by hand."""

import json
import sys

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from experiments import passes, plotting
from experiments.__main__ import main
from treepiece import Frame, TokenizerConfig, TreePieceTokenizer
from treepiece.errors import OptionError

# Nothing is merged: a unit is a node.
TIMER = Frame.from_brackets("[IN:STOP stop ]")
SONG = Frame.from_brackets("[IN:PLAY play [SL:SONG hey jude ] ]")
NESTED = Frame.from_brackets("[IN:REMIND remind me to [SL:TODO [IN:CALL call [SL:WHO mum ] ] ] [SL:WHEN now ] ]")
UNKNOWN = Frame.from_brackets("[IN:PLAY play [SL:ALBUM low ] ]")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def tokenizer():
    frames = (TIMER, SONG, NESTED)
    return TreePieceTokenizer.train((frame.skeleton for frame in frames), TokenizerConfig(merges=0))


@pytest.fixture
def counts(tokenizer):
    return passes.count_passes([TIMER, SONG, NESTED, UNKNOWN], tokenizer)


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


def test_means(counts):
    assert passes.summarise_passes(counts) == {
        "trees": 4,
        "unencodable": 1,
        "single_unit": 1 / 4,
        "treepiece": (1 + 3 + 6) / 3,
        "ar": (2 + 6 + 14 + 6) / 4,
        "nar": 1,
    }


def test_a_tree_that_cannot_be_encoded_counts_for_the_others_only(counts):
    curves = passes.group_by_length(counts)
    assert {name: [(p.tokens, p.trees, p.mean) for p in curve] for name, curve in curves.items()} == {
        "treepiece": [(2, 1, 1), (6, 1, 3), (14, 1, 6)],
        "ar": [(2, 1, 2), (6, 2, 6), (14, 1, 14)],
        "nar": [(2, 1, 1), (6, 2, 1), (14, 1, 1)],
    }


def test_percentiles_are_passes_that_trees_have():
    trees = [passes.Counts(8, 1, {"treepiece": n}) for n in (2, 2, 2, 2, 2, 2, 2, 3, 4, 9)]
    (point,) = passes.group_by_length(trees)["treepiece"]
    assert point == passes.Point(tokens=8, trees=10, mean=3.0, p10=2, p90=4)
    assert json.loads(json.dumps(passes.curves_to_json({"treepiece": [point]}))) == {"treepiece": [point._asdict()]}


def test_length_in_subwords(tokenizer, words):
    (tree,) = passes.count_passes([NESTED], tokenizer, passes.subword_counter(str(words)))
    assert tree.n_tokens == 5 + 2 + 5  # labels, one word a leaf, brackets
    assert tree.passes["ar"] == 14


def test_subwords_that_cannot_be_read(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OptionError, match="of --subwords cannot be loaded.*or a folder with a tokenizer.json"):
        passes.subword_counter(str(tmp_path))


def test_the_figure(counts, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    figures, save = [], plotting.save
    monkeypatch.setattr(plotting, "save", lambda figure, path: (figures.append(figure), save(figure, path)))
    curves = passes.curves_to_json(passes.group_by_length([*counts[:2] * plotting.FEWEST, counts[2]]))
    path = tmp_path / "figures" / "passes.png"
    plotting.draw_passes(curves, path, data="A few trees", tokens="in subwords")
    (axes,) = figures[0].axes
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(2, 6)}  # only one tree has 14 tokens
    wanted = {"TreePiece", "autoregressive", "non-autoregressive"}
    assert {text.get_text() for text in axes.texts} >= wanted
    assert axes.get_xlabel() == "tokens of the logical form, in subwords"
    assert path.read_bytes().startswith(PNG)


def test_a_figure_without_points(tmp_path):
    pytest.importorskip("matplotlib")
    curves = passes.curves_to_json(passes.group_by_length([]))
    plotting.draw_passes(curves, tmp_path / "empty.png", data="No trees", tokens="in subwords")


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(OptionError, match=r"matplotlib.*pip install '\.\[bench\]'"):
        plotting.new_figure(1, 1)


def test_without_topv2_it_says_where_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TREEPIECE_TOPV2", str(tmp_path / "nowhere"))
    assert main(["passes"]) == 2
    assert "treepiece data topv2" in capsys.readouterr().err


def test_from_data_to_figure(monkeypatch, capsys, tmp_path):
    """The whole command on a folder that looks like TOPv2."""
    pytest.importorskip("matplotlib")
    rows = ["music\tstop\t[IN:STOP stop ]", "music\tplay hey jude\t[IN:PLAY play [SL:SONG hey jude ] ]"]
    for split in ("train", "eval"):
        lines = ["domain\tutterance\tsemantic_parse", *rows * 10]
        (tmp_path / f"music_{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plot = tmp_path / "passes.png"
    monkeypatch.setenv("TREEPIECE_TOPV2", str(tmp_path))
    assert main(["passes", "--json", "--plot", str(plot)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["trees", "unencodable", "single_unit", "treepiece", "ar", "nar", "by_length"]
    assert [(point["tokens"], point["trees"]) for point in printed["by_length"]["ar"]] == [(2, 10), (6, 10)]
    assert plot.read_bytes().startswith(PNG)
