"""A bundle answers as the model that it was made from."""

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tiny import Silent, rows_of  # noqa: E402

from treepiece.bundle import read_bundle  # noqa: E402
from treepiece.decoding.parse import Parse  # noqa: E402
from treepiece.errors import BundleError, OptionError  # noqa: E402
from treepiece.export.checking import check_parity, measure  # noqa: E402
from treepiece.export.exporting import ExportOptions, export_model  # noqa: E402
from treepiece.export.outliers import channel_maxima, tame_outliers  # noqa: E402
from treepiece.export.quantize import quantize  # noqa: E402
from treepiece.models.trained import load_model  # noqa: E402
from treepiece.runtime.graphs import Precision, as_ids, open_session  # noqa: E402
from treepiece.runtime.parser import Parser  # noqa: E402
from treepiece.training.examples import make_examples  # noqa: E402
from treepiece.trees.align import Span  # noqa: E402
from treepiece.trees.node import Node  # noqa: E402

TEXTS = [row.frame.utterance for row in rows_of(150, seed=7)]


@pytest.fixture(scope="module")
def trained(tiny_bundle):
    return load_model(tiny_bundle.parent / "model")


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, precision="float")


@pytest.mark.parametrize("beam", [1, 4])
def test_graphs_give_the_parses_of_pytorch(trained, parser, beam):
    utterances = trained.subwords.encode_batch(TEXTS)
    n_units = set()
    for utterance in utterances:
        (wanted,) = trained.model.parse([utterance], beam=beam)
        (found,) = parser.model.parse(as_ids([utterance.ids]), beam=beam)
        assert len(found) == len(wanted)
        for a, b in zip(wanted, found, strict=True):
            assert (a.skeleton, a.spans, a.unit_ids, a.passes) == (b.skeleton, b.spans, b.unit_ids, b.passes)
            assert abs(a.log_p - b.log_p) < 1e-3
            assert np.allclose(a.leaf_log_p, b.leaf_log_p, atol=1e-3)
            n_units.add(len(b.unit_ids))
    assert len(n_units) > 1, "both ways through the graphs are taken"


def test_a_batch_gives_what_each_text_gives_alone(trained, parser):
    by_length = {}
    for utterance in trained.subwords.encode_batch(TEXTS):
        by_length.setdefault(len(utterance.ids), []).append(utterance.ids)
    for rows in by_length.values():
        together = parser.model.parse(as_ids(rows))
        assert together == [parser.model.parse(as_ids([row]))[0] for row in rows]


def test_the_bundle_says_what_was_found(tiny_bundle):
    facts = json.loads((tiny_bundle / "runtime.json").read_text())
    assert facts["parity"]["float"]["same_trees"] == facts["parity"]["float"]["rows"] == 60
    assert set(facts["temperatures"]) == {"float", "int8"}
    card = (tiny_bundle / "README.md").read_text()
    assert "toy rows" in card
    assert "100.00%" in card
    assert "weights.safetensors" not in read_bundle(tiny_bundle).files


def test_graphs_that_answer_differently_are_refused(tiny_bundle, tmp_path, monkeypatch):
    model = tiny_bundle.parent / "model"
    examples, _ = make_examples(rows_of(20, seed=1), load_model(model).subwords)

    def spoil(graph):
        result = onnx.ModelProto()
        result.CopyFrom(graph)
        for tensor in result.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2:
                values = numpy_helper.to_array(tensor)
                tensor.CopyFrom(numpy_helper.from_array(values[::-1].copy(), tensor.name))
        return result

    from treepiece.export import exporting

    real = exporting.to_onnx
    monkeypatch.setattr(exporting, "to_onnx", lambda graph: spoil(real(graph)))
    with pytest.raises(BundleError, match="do not answer as PyTorch does: .* nothing was written"):
        export_model(model, tmp_path / "out", examples, Silent(), ExportOptions((Precision.FLOAT,)))
    assert not (tmp_path / "out").exists()


def parse(label, log_p):
    return Parse(Node(label), (Span(0, 1),), log_p, 1)


def test_parity_forgives_ties_and_a_single_row_on_the_edge():
    pairs = [parse("IN:A", -1.0)], [parse("IN:B", -1.0)]
    assert check_parity(*pairs, Precision.FLOAT, 0.9).same_trees == 0
    with pytest.raises(BundleError, match="1 of 1 trees differ"):
        check_parity([parse("IN:A", -1.0)], [parse("IN:B", -0.9)], Precision.FLOAT, 0.9)
    with pytest.raises(BundleError, match="log-probabilities by inf"):
        check_parity([parse("IN:A", -1.0)], [parse("IN:A", float("nan"))], Precision.FLOAT, 0.9)
    same, other = parse("IN:A", -1.0), parse("IN:B", -0.9)
    assert check_parity([same] * 20, [*[same] * 19, other], Precision.FLOAT, 0.9).same_trees == 19
    for n_same, n_others in ((18, 1), (18, 2)):
        with pytest.raises(BundleError, match=f"{n_others} of {n_same + n_others} trees differ"):
            check_parity([same] * (n_same + n_others), [same] * n_same + [other] * n_others, Precision.FLOAT, 0.9)
    with pytest.raises(BundleError, match=r"in int8 give the tree of PyTorch for 0.0% of the rows only"):
        check_parity(*pairs, Precision.INT8, 0.9)


def test_there_must_be_something_to_export():
    with pytest.raises(OptionError, match="nothing to export"):
        ExportOptions(())


def test_scores_and_temperatures(tiny_bundle, trained):
    examples, _ = make_examples(rows_of(40, seed=2), trained.subwords)
    right = [
        Parse(example.frame.skeleton, example.spans, -0.1, 2, (), tuple(-0.01 for _ in example.spans))
        for example in examples
    ]
    quality = measure(examples, right)
    assert (quality.em, quality.em_s) == (1.0, 1.0)
    assert quality.temperatures.parse > 10, "always right: as confident as can be"
    assert quality.parse_error_after < quality.parse_error_before


def product(weights, transposed):
    """Return a graph that multiplies its input with a matrix and adds a bias."""
    matrix = weights.T if transposed else weights
    bias = np.arange(weights.shape[1], dtype=np.float32)
    if transposed:
        nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)]
    else:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", weights.shape[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", weights.shape[1]])],
        [numpy_helper.from_array(np.ascontiguousarray(matrix), "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def run(model, x):
    return open_session(model.SerializeToString(), 1, "test").run(None, {"x": x})[0]


@pytest.mark.parametrize("transposed", [False, True])
def test_outliers_are_tamed_without_changing_the_answer(transposed):
    random = np.random.default_rng(0)
    x = random.normal(size=(9, 16)).astype(np.float32)
    x[:, 3] *= 50
    model = product(random.normal(size=(16, 5)).astype(np.float32), transposed)
    tamed = tame_outliers(model, [{"x": x}])
    assert np.allclose(run(model, x), run(tamed, x), rtol=1e-4, atol=1e-3)
    inner = [name for node in tamed.graph.node for name in node.output if name.endswith(".tamed")]
    assert channel_maxima(tamed, inner, [{"x": x}])[inner[0]].max() < np.abs(x).max() / 5
    rough, fine = (np.abs(run(quantize(one), x) - run(model, x)).mean() for one in (model, tamed))
    assert fine < rough / 2


@pytest.mark.parametrize("transposed", [False, True])
def test_eight_bits_are_nearly_as_good(transposed):
    random = np.random.default_rng(0)
    x = random.normal(size=(9, 64)).astype(np.float32)
    model = product(random.normal(size=(64, 5)).astype(np.float32), transposed)
    smaller = quantize(model)
    assert [node.op_type for node in smaller.graph.node] == ["DynamicQuantizeMatMul"], "the bias is taken in"
    assert np.abs(run(smaller, x) - run(model, x)).max() < 0.4


def test_export_twice_gives_the_same_graphs(tiny_bundle, tmp_path):
    model = tiny_bundle.parent / "model"
    examples, _ = make_examples(rows_of(60, seed=1), load_model(model).subwords)
    options = ExportOptions(least_agreement=0.0)
    export_model(model, tmp_path, examples, Silent(), options, data="toy rows")
    assert read_bundle(tmp_path).files == read_bundle(tiny_bundle).files
    shutil.rmtree(tmp_path)
