"""A reranker learns to write gold frames, and so to say how probable the candidates of a beam are."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.decoding.linearization import TokenGrammar, TokenState
from treepiece.decoding.search import label_pairs
from treepiece.decoding.types import DecodingConfig
from treepiece.models.baselines import CachedScore
from treepiece.models.batch import pad
from treepiece.models.encoder import encode_utterances
from treepiece.models.token_decoder import BLANK
from treepiece.progress import NoProgress
from treepiece.training.preparation import inherit, new_model
from treepiece.training.tuning import WEIGHTS, tune

ALWAYS = DecodingConfig(rerank_threshold=1.0, prune_ratio=0.0)


@pytest.fixture
def with_reranker(made):
    return made("treepiece", reranker_loss_weight=1.0)


def test_a_frame_is_as_probable_as_writing_it_token_by_token(with_reranker):
    model, examples, loss = with_reranker
    grammar = TokenGrammar(
        model.reranker.vocabulary, label_pairs(example.frame.skeleton for example in examples), budget=64
    )
    with torch.no_grad():
        for place, example in enumerate(examples[:20]):
            encoded = encode_utterances(model.encoder, [example.subwords])
            frame = model.reranker.vocabulary.write(example.frame.skeleton, example.spans)
            score = CachedScore(model.reranker.decoder, encoded)
            state, total = TokenState(len(example.subwords.offsets)), 0.0
            for token in frame:
                total += float(torch.tensor(score([(0, state)])).log_softmax(1)[0, token])
                state = grammar.extend(state, token, 0.0)
            assert float(model.reranker(torch.tensor([frame]), encoded)) == pytest.approx(total, abs=1e-3)
            assert float(loss([place])["reranker"]) == pytest.approx(-total / len(frame), abs=1e-4)


def test_frames_read_together_are_as_probable_as_alone(with_reranker):
    model, examples, _ = with_reranker
    chosen = examples[:12]
    frames = [model.reranker.vocabulary.write(example.frame.skeleton, example.spans) for example in chosen]
    with torch.no_grad():
        encoded = encode_utterances(model.encoder, [example.subwords for example in chosen])
        together = model.reranker(pad(frames, BLANK), encoded)
        for item, frame in enumerate(frames):
            alone = model.reranker(torch.tensor([frame]), encoded.select([item]))
            assert float(alone) == pytest.approx(float(together[item]), abs=1e-3)


def test_the_reranker_learns_and_its_weight_is_tuned(with_reranker):
    model, examples, loss = with_reranker
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    before = float(loss(range(40))["reranker"].detach())
    for _ in range(60):
        loss(range(40))["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert float(loss(range(40))["reranker"].detach()) < before / 2
    assert tune(model, examples).reranker_weight in WEIGHTS


def test_a_beam_with_a_frame_that_is_too_long_to_read_is_left_as_it_is(with_reranker, monkeypatch):
    model, examples, _ = with_reranker
    utterances = [example.subwords for example in examples[:12]]
    reranked = model.parse(utterances, ALWAYS)
    assert any(best.reranker_log_p is not None for (best,) in reranked)
    for (best,) in reranked:
        assert best.passes == len(best.unit_ids) + bool(best.spans) + (best.reranker_log_p is not None)
    monkeypatch.setattr(model.pipeline, "_max_length", 1)
    left = model.parse(utterances, ALWAYS)
    assert all(best.reranker_log_p is None for (best,) in left)
    only_units = replace(ALWAYS, reranker_weight=0.0)
    monkeypatch.undo()
    for (best,), (same,) in zip(left, model.parse(utterances, only_units), strict=True):
        assert (best.skeleton, best.spans) == (same.skeleton, same.spans)


def test_a_reranker_that_is_there_keeps_learning_whatever_the_recipe_says(toy, recipe):
    old = new_model(toy(60), recipe(reranker_loss_weight=0.7), NoProgress(), None)
    assert inherit(recipe(), old).reranker_loss_weight == 1.0
    old.metadata = {"recipe": recipe(reranker_loss_weight=0.7).to_json()}
    assert inherit(recipe(), old).reranker_loss_weight == 0.7
    assert inherit(recipe(reranker_loss_weight=0.2), old).reranker_loss_weight == 0.2
    assert inherit(recipe(), new_model(toy(60), recipe(), NoProgress(), None)).reranker_loss_weight == 0.0


def test_a_model_without_a_reranker_gets_one_and_one_with_it_keeps_it(toy, recipe):
    plain, reranked = recipe(), recipe(reranker_loss_weight=1.0)
    old = new_model(toy(60), plain, NoProgress(), None)
    new = new_model(toy(60), reranked, NoProgress(), old)
    assert new.definition.extensions.reranker
    again = new_model([*toy(60), *toy(200, seed=3)], plain, NoProgress(), new)  # with new labels
    assert again.definition.extensions.reranker
    known = new.definition.tokenizer.units.labels
    places = [again.definition.tokenizer.units.labels.index(label) for label in known]
    assert len(again.definition.labels) > len(known)
    for name in ("bias", "embedding.tables.0"):
        before, after = (model.reranker.decoder.state_dict()[name] for model in (new.model, again.model))
        assert torch.equal(after[places], before[: len(known)])
