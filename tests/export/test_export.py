"""A bundle answers as the model that it was made from."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import onnx
from onnx import TensorProto, helper, numpy_helper
from tiny import rows_of

from treepiece.bundle import read_bundle
from treepiece.data.examples import make_examples
from treepiece.decoding.types import Hypothesis, Temperatures
from treepiece.errors import BundleError, OptionError
from treepiece.export import exporter
from treepiece.export.exporter import ExportOptions, export_model, model_graphs
from treepiece.export.parity import check_parity, measure
from treepiece.export.quantization import (
    channel_maxima,
    quantize,
    smooth_activations,
)
from treepiece.models.trained import load_model
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import Precision, as_ids, graph_file, ort
from treepiece.trees.align import Span
from treepiece.trees.node import Node

TEXTS = [row.frame.utterance for row in rows_of(80, seed=7)]


@pytest.fixture(scope="module")
def trained(tiny_bundle):
    return load_model(tiny_bundle.parent / "model")


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, precision="float")


@pytest.mark.slow
@pytest.mark.parametrize("nbest", [1, 4])
def test_graphs_give_the_parses_of_pytorch(trained, parser, nbest):
    utterances = trained.subwords.encode_batch(TEXTS)
    n_units = set()
    for utterance in utterances:
        (wanted,) = trained.model.parse([utterance], nbest=nbest)
        (found,) = parser.model.parse(as_ids([utterance.ids]), nbest=nbest)
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
    metadata = json.loads((tiny_bundle / "runtime.json").read_text())
    assert metadata["parity"]["float"]["same_trees"] == metadata["parity"]["float"]["rows"] == 60
    assert set(metadata["quality"]) == {"float", "int8"}
    card = (tiny_bundle / "README.md").read_text()
    assert "toy rows" in card
    assert "100.00%" in card
    assert "weights.safetensors" not in read_bundle(tiny_bundle).files


@pytest.mark.slow
def test_graphs_that_answer_differently_are_refused(tiny_bundle, tmp_path, monkeypatch):
    model = tiny_bundle.parent / "model"
    trained = load_model(model)
    examples, _ = make_examples(rows_of(20, seed=1), trained.subwords)
    names = iter(model_graphs(trained))

    def spoiled(_graph):
        """Return the graph as it was exported before, with the rows of its matrices in the opposite order."""
        result = onnx.load(tiny_bundle / graph_file(Precision.FLOAT, next(names)))
        for tensor in result.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2:
                values = numpy_helper.to_array(tensor)
                tensor.CopyFrom(numpy_helper.from_array(values[::-1].copy(), tensor.name))
        return result

    monkeypatch.setattr(exporter, "to_onnx", spoiled)
    with pytest.raises(BundleError, match="do not give the results of PyTorch: .* nothing was written"):
        export_model(model, tmp_path / "out", examples, options=ExportOptions((Precision.FLOAT,)))
    assert not (tmp_path / "out").exists()


def parse(label, log_p):
    return Hypothesis.of_parts(Node(label), (Span(0, 1),), log_p, (0.0,), passes=1)


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
    with pytest.raises(BundleError, match=r"in int8 give the tree of PyTorch for only 0.0% of the rows"):
        check_parity(*pairs, Precision.INT8, 0.9)


def test_there_must_be_something_to_export():
    with pytest.raises(OptionError, match="nothing to export"):
        ExportOptions(())


def test_scores(trained):
    examples, _ = make_examples(rows_of(40, seed=2), trained.subwords)
    right = [
        Hypothesis.of_parts(example.frame.skeleton, example.spans, -0.1, (-0.01,) * len(example.spans), passes=2)
        for example in examples
    ]
    quality = measure(examples, right, Temperatures())
    assert (quality.em, quality.em_s) == (1.0, 1.0)
    calibrated = measure(examples, right, Temperatures(100, 100))
    assert calibrated.parse_error < quality.parse_error, "always right: as confident as can be"
    assert calibrated.leaf_error < quality.leaf_error


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
    return ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("transposed", [False, True])
def test_smoothing_does_not_change_the_answer(transposed):
    random = np.random.default_rng(0)
    x = random.normal(size=(9, 16)).astype(np.float32)
    x[:, 3] *= 50
    model = product(random.normal(size=(16, 5)).astype(np.float32), transposed)
    smoothed = smooth_activations(model, [{"x": x}])
    assert np.allclose(run(model, x), run(smoothed, x), rtol=1e-4, atol=1e-3)
    inner = [name for node in smoothed.graph.node for name in node.output if name.endswith(".smoothed")]
    assert channel_maxima(smoothed, inner, [{"x": x}])[inner[0]].max() < np.abs(x).max() / 5
    rough, fine = (np.abs(run(quantize(one), x) - run(model, x)).mean() for one in (model, smoothed))
    assert fine < rough / 2


@pytest.mark.parametrize("transposed", [False, True])
def test_eight_bits_are_nearly_as_good(transposed):
    random = np.random.default_rng(0)
    x = random.normal(size=(9, 64)).astype(np.float32)
    model = product(random.normal(size=(64, 5)).astype(np.float32), transposed)
    smaller = quantize(model)
    assert [node.op_type for node in smaller.graph.node] == ["DynamicQuantizeMatMul"], "the bias is taken in"
    assert np.abs(run(smaller, x) - run(model, x)).max() < 0.4


@pytest.mark.slow
def test_the_graphs_do_not_depend_on_the_rows_that_score_them(tiny_bundle, tmp_path):
    """Exported twice, on any number of threads, they are the same to the byte; nothing is fitted to `examples`."""
    model = tiny_bundle.parent / "model"
    examples, _ = make_examples(rows_of(20, seed=9), load_model(model).subwords)
    n_threads = torch.get_num_threads()
    torch.set_num_threads(3 - min(2, n_threads))
    try:
        export_model(model, tmp_path, examples, data="other rows", options=ExportOptions(least_agreement=0.0))
    finally:
        torch.set_num_threads(n_threads)
    files, before = (read_bundle(folder).files for folder in (tmp_path, tiny_bundle))
    assert {name for name in files if files[name] != before[name]} == {"README.md", "runtime.json"}
    assert files.keys() == before.keys()
