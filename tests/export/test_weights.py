"""Weights beside the graphs: none, those of training, or the same rounded to half precision."""

import pytest
from tiny import rows_of, tiny_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

import safetensors.torch

from treepiece.bundle import WEIGHTS, read_bundle
from treepiece.data.examples import make_examples
from treepiece.decoding.types import Hypothesis
from treepiece.errors import BundleError, OptionError
from treepiece.export.exporter import ExportOptions, Weights, export_model, weight_files
from treepiece.export.parity import check_parity
from treepiece.models.trained import load_model, save_model
from treepiece.trees.align import Span
from treepiece.trees.node import Node


@pytest.fixture(scope="module")
def model(tiny_bundle):
    return tiny_bundle.parent / "model"


def export(source, output, weights, **options):
    examples, _ = make_examples(rows_of(20, seed=1), load_model(source).subwords)
    return export_model(source, output, examples, data="toy rows", options=ExportOptions((), weights, **options))


def tensors(folder):
    return safetensors.torch.load(read_bundle(folder).read(WEIGHTS))


def test_float_weights_are_those_of_training(model, tmp_path):
    exported = export(model, tmp_path, Weights.FLOAT)
    assert read_bundle(tmp_path).files[WEIGHTS] == read_bundle(model).files[WEIGHTS]
    assert exported.parities["weights-float"].agreement == 1


@pytest.mark.parametrize("kind", ["treepiece", "ar", "nar"])
def test_half_weights_are_the_nearest_that_half_precision_has(tiny_encoder, tmp_path, kind):
    save_model(tmp_path / "model", tiny_model(tiny_encoder, kind))
    export(tmp_path / "model", tmp_path / "half", Weights.HALF, least_agreement=0.0)
    exact, half = tensors(tmp_path / "model"), tensors(tmp_path / "half")
    loaded = load_model(tmp_path / "half").model.state_dict()
    assert exact.keys() == half.keys() == loaded.keys()
    for name, tensor in exact.items():
        wanted = tensor.half() if tensor.is_floating_point() else tensor
        assert torch.equal(half[name], wanted)
        assert torch.equal(loaded[name], wanted.to(loaded[name].dtype)), "and training goes on in single precision"
    sizes = [(tmp_path / folder / WEIGHTS).stat().st_size for folder in ("model", "half")]
    assert sizes[1] < 0.6 * sizes[0]


def test_rounding_twice_is_rounding_once(model, tmp_path):
    export(model, tmp_path / "one", Weights.HALF, least_agreement=0.0)
    export(tmp_path / "one", tmp_path / "two", Weights.HALF)
    assert read_bundle(tmp_path / "two").files[WEIGHTS] == read_bundle(tmp_path / "one").files[WEIGHTS]
    export(tmp_path / "two", tmp_path / "three", Weights.FLOAT)
    assert all(tensor.dtype != torch.float16 for tensor in tensors(tmp_path / "three").values()), "as it was asked for"


@pytest.mark.parametrize("number", [1e5, -1e5, float("inf"), float("nan")])
def test_what_half_precision_cannot_write_is_refused(tiny_encoder, number):
    trained = tiny_model(tiny_encoder)
    with torch.no_grad():
        trained.model.units.bias[3] = number
    message = rf"the weight units.bias has the number {abs(number):g}, half precision ends at 65,504; nothing was"
    with pytest.raises(BundleError, match=message.replace("+", r"\+")):
        weight_files(trained, Weights.HALF)
    assert weight_files(trained, Weights.NONE) == {}


def test_weights_that_answer_differently_are_refused(model, tmp_path, monkeypatch):
    from treepiece.export import exporter

    other = load_model(model)
    with torch.no_grad():
        for weight in other.model.parameters():
            weight.copy_(weight.flip(0))
    monkeypatch.setattr(exporter, "weight_files", lambda _, weights: weight_files(other, weights))
    with pytest.raises(BundleError, match="the weights in half give the tree .* nothing was .* --weights float"):
        export(model, tmp_path / "out", Weights.HALF)
    with pytest.raises(BundleError, match="the weights in float do not give the results of PyTorch"):
        export(model, tmp_path / "out", Weights.FLOAT)
    assert not (tmp_path / "out").exists()


def test_half_weights_may_differ_a_little():
    answers = [
        [Hypothesis.of_parts(Node(f"IN:{name}"), (Span(0, 1),), -1.0, (0.0,), passes=1) for name in names]
        for names in ("ABCD", "ABCX")
    ]
    assert check_parity(*answers, "weights-half", 0.75).agreement == 0.75
    with pytest.raises(BundleError, match="the weights in half .* only 75.0% of the rows"):
        check_parity(*answers, "weights-half", 0.8)


def test_there_must_be_something_to_export():
    with pytest.raises(
        OptionError, match="nothing to export: give graphs in float or int8, or --weights float or half"
    ):
        ExportOptions((), Weights.NONE)


def test_a_bundle_without_weights_says_what_to_do(tiny_bundle):
    with pytest.raises(BundleError, match="without weights.safetensors, .* export that again with --weights half"):
        load_model(tiny_bundle)
