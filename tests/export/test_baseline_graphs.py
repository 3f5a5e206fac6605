"""The graphs of the baselines answer as PyTorch does."""

import json
from collections import defaultdict

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from tiny import export_tiny, once, rows_of, tiny_model

from treepiece.decoding.linearization import TokenState
from treepiece.decoding.search import log_softmax
from treepiece.errors import OptionError
from treepiece.evaluation.outcomes import is_valid_frame
from treepiece.models.baselines import CachedScore
from treepiece.models.encoder import encode_utterances
from treepiece.models.trained import load_model
from treepiece.runtime import onnx_scorer
from treepiece.runtime.parser import Parser
from treepiece.runtime.sessions import ENCODE, STEP, as_ids

KINDS = ["ar", "nar"]
TEXTS = [row.frame.utterance for row in rows_of(60, seed=7)]

pytestmark = pytest.mark.slow  # it exports two models


@torch.no_grad()
def soften(trained):
    """Return the model with smaller weights: with two layers of large ones, single precision is off by 0.01."""
    model = trained.model
    for weight in model.encoder.parameters():
        weight.div_(3)
    for weight in model.decoder.parameters():
        weight.div_(1.5)
    if trained.definition.kind == "nar":  # a random predictor says the same of all: let it see how they differ
        first = encode_utterances(model.encoder, trained.subwords.encode_batch(TEXTS)).states[:, 0]
        model.length.weight.mul_(60)
        model.length.bias.copy_(-model.length.weight @ first.mean(0))
    return trained


@pytest.fixture(scope="session")
def bundles(tmp_path_factory, tiny_encoder):
    def make(kind):
        return lambda folder: export_tiny(folder, soften(tiny_model(tiny_encoder, kind)))

    return {kind: once(f"tiny_{kind}", tmp_path_factory, make(kind)) for kind in KINDS}


@pytest.fixture(scope="session")
def trained(bundles):
    return {kind: load_model(bundle.parent / "model") for kind, bundle in bundles.items()}


@pytest.fixture(scope="session")
def parsers(bundles):
    return {kind: Parser.load(bundle, precision="float", threads=1) for kind, bundle in bundles.items()}


@pytest.fixture(scope="session")
def utterances(trained):
    return trained["ar"].subwords.encode_batch(TEXTS)


def assert_same(wanted, found):
    assert [(a.skeleton, a.spans, a.passes) for a in found] == [(b.skeleton, b.spans, b.passes) for b in wanted]
    assert [a.log_p for a in found] == pytest.approx([b.log_p for b in wanted], abs=1e-4)


@pytest.mark.parametrize(("kind", "beam"), [("ar", 1), ("ar", 3), ("nar", 1)])
def test_graphs_give_the_parses_of_pytorch(trained, parsers, utterances, kind, beam):
    found = [parsers[kind].model.parse(as_ids([utterance.ids]), nbest=beam)[0] for utterance in utterances]
    for wanted, few in zip(trained[kind].model.parse(utterances, nbest=beam), found, strict=True):
        assert_same(wanted, few)
    assert len({len(utterance.ids) for utterance in utterances}) > 8
    assert len({parse.skeleton for few in found for parse in few}) > 20
    assert any(span.start < span.end for few in found for parse in few for span in parse.spans)
    assert max(map(len, found)) == beam


@pytest.mark.parametrize(("kind", "beam"), [("ar", 1), ("ar", 3), ("nar", 1)])
def test_a_batch_gives_what_each_utterance_gives_alone(parsers, utterances, kind, beam):
    model = parsers[kind].model
    by_length = defaultdict(list)
    for utterance in utterances:
        by_length[len(utterance.ids)].append(utterance.ids)
    n_tokens = []
    for rows in by_length.values():
        together = model.parse(as_ids(rows), nbest=beam)
        for row, few in zip(rows, together, strict=True):
            (alone,) = model.parse(as_ids([row]), nbest=beam)
            assert_same(alone, few)
            for a, b in zip(alone, few, strict=True):
                assert a.leaf_log_p == pytest.approx(b.leaf_log_p, abs=1e-4)
        n_tokens.append({2 * few[0].skeleton.n_nodes for few in together})
    assert max(map(len, n_tokens)) > 1, "short frames share a run with long ones"


@pytest.mark.parametrize("states", [1, 40])
def test_a_beam_that_is_cut_into_runs_gives_the_same(parsers, utterances, monkeypatch, states):
    rows = [as_ids([utterance.ids]) for utterance in utterances[:20]]
    whole = [parsers["ar"].model.parse(row, nbest=6)[0] for row in rows]
    monkeypatch.setattr(onnx_scorer, "_MAX_STATES", states)
    for row, wanted in zip(rows, whole, strict=True):
        assert_same(wanted, parsers["ar"].model.parse(row, nbest=6)[0])


def token_log_p(model, utterance, tokens):
    """Return the log-probability of each token of the autoregressive model, as PyTorch has it."""
    score = CachedScore(model.decoder, encode_utterances(model.encoder, [utterance]))
    state, values = TokenState(len(utterance.offsets)), []
    for token in tokens:
        allowed = model.grammar.allowed(state)[np.newaxis]
        log_p = log_softmax(score([(0, state)])[:, : allowed.shape[1]], allowed)
        values.append(float(log_p[0, token]))
        state = model.grammar.extend(state, token, values[-1])
    return values


def parallel_log_p(model, utterance, tokens):
    """Return the same for the non-autoregressive model: every token by itself."""
    log_p = model.decode(torch.tensor([len(tokens)]), encode_utterances(model.encoder, [utterance])).log_softmax(2)
    return log_p[0, range(len(tokens)), tokens].tolist()


@pytest.mark.parametrize(("kind", "define", "beam"), [("ar", token_log_p, 3), ("nar", parallel_log_p, 1)])
@torch.no_grad()
def test_a_leaf_has_the_probability_of_its_two_pointers(trained, parsers, utterances, kind, define, beam):
    model, vocabulary = trained[kind].model, trained[kind].definition.token_vocabulary()
    n_finite = 0
    for utterance in utterances[:40]:
        for parse in parsers[kind].model.parse(as_ids([utterance.ids]), nbest=beam)[0]:
            assert len(parse.span_log_p) == len(parse.leaf_log_p) == len(parse.spans)
            assert all(log_p <= 0 for log_p in (*parse.span_log_p, *parse.leaf_log_p))
            assert parse.log_p <= sum(parse.span_log_p) + 1e-9  # the other tokens have a probability too
            if not np.isfinite(parse.log_p):
                continue
            n_finite += 1
            tokens = vocabulary.write(parse.skeleton, parse.spans)
            values = define(model, utterance, tokens)
            pointers = iter(value for value, token in zip(values, tokens, strict=True) if token > vocabulary.close)
            wanted = [next(pointers) + next(pointers) if span.start < span.end else 0.0 for span in parse.spans]
            assert parse.span_log_p == pytest.approx(wanted, abs=1e-4)
    assert n_finite > 20


def test_each_token_is_one_run(parsers, utterances, monkeypatch):
    model = parsers["ar"].model
    names = []

    class Noting(dict):
        def __getitem__(self, name):
            names.append(name)
            return graphs[name]

    graphs = model.graphs
    monkeypatch.setattr(model, "graphs", Noting())
    for utterance in utterances[:10]:
        names.clear()
        ((parse,),) = model.parse(as_ids([utterance.ids]))
        assert names == [ENCODE, *[STEP] * (parse.passes - 1)]  # the first is scored as the utterance is read


def test_the_length_can_be_forced(parsers, utterances):
    model = parsers["nar"].model
    for utterance in utterances[:10]:
        for length in (2, 4, 10):
            lengths = np.zeros(32, bool)
            lengths[length // 2 - 1] = True
            ((parse,),) = model.parse(as_ids([utterance.ids]), allowed_lengths=lengths)
            n_pointers = 2 * sum(span.start < span.end for span in parse.spans)
            n_empty = sum(span.start == span.end for span in parse.spans)
            assert 2 * parse.skeleton.n_nodes + n_pointers == length - 2 * n_empty * bool(np.isinf(parse.log_p))


def test_only_the_autoregressive_one_has_a_beam(parsers, utterances):
    ids = as_ids([utterances[0].ids])
    assert len(parsers["ar"].model.parse(ids, nbest=5)[0]) == 5
    with pytest.raises(OptionError, match="nbest must be 1, got 2"):
        parsers["nar"].model.parse(ids, nbest=2)


@pytest.mark.parametrize("precision", ["float", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_parser_answers_with_valid_frames(bundles, kind, precision):
    parser = Parser.load(bundles[kind], precision=precision, threads=2)
    together = parser.batch(TEXTS[:60])
    assert [result.text for result in together] == TEXTS[:60]
    for text, result in zip(TEXTS, together, strict=False):
        assert is_valid_frame(result.best.frame)
        assert len(result.best.leaf_confidences) == len(result.best.leaves)
        assert all(0 <= p <= 1 for p in (result.confidence, *result.best.leaf_confidences))
        assert parser(text).best.frame == result.best.frame
    assert len({str(result.best.frame.skeleton) for result in together}) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_the_bundle_says_how_exact_it_is(bundles, kind):
    metadata = json.loads((bundles[kind] / "runtime.json").read_text())
    parity = metadata["parity"]["float"]
    # On some processors one text has two lengths that differ in the last bit.
    assert parity["same_trees"] >= parity["rows"] - 1 == 59
    assert parity["largest_difference"] < 1e-4
