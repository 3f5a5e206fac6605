"""The losses say what the search later asks."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.data.examples import too_large
from treepiece.decoding.linearization import TokenState
from treepiece.models.baselines import CachedScore, mask_tokens
from treepiece.models.batch import collate_spans
from treepiece.models.encoder import encode_utterances
from treepiece.models.layers import PADDING, set_dropout
from treepiece.models.losses import cross_entropy
from treepiece.models.token_decoder import BLANK

KINDS = ["treepiece", "ar", "nar"]


@pytest.mark.parametrize("compositional", [False, True])
def test_the_loss_of_units_is_the_score_of_each_step_of_the_search(made, compositional):
    model, examples, loss = made("treepiece", units={"compositional": compositional})
    with torch.no_grad():
        for place in range(20):
            scorer = model.scorer([examples[place].subwords])
            partial, total = model.grammar.start(), 0.0
            unit_ids = model.tokenizer.encode(examples[place].frame.skeleton)
            for unit_id in unit_ids:
                logits = torch.tensor(scorer.next_units([(0, partial)]))
                total -= float(logits.log_softmax(1)[0, unit_id])
                assert model.grammar.allowed(partial)[unit_id]  # what training has can be generated
                partial = model.grammar.extend(partial, unit_id, 0.0)
            assert partial.is_complete
            assert float(loss([place])["units"]) == pytest.approx(total / len(unit_ids), abs=1e-4)


def test_the_loss_of_tokens_is_the_score_of_each_step_of_the_search(made):
    model, examples, loss = made("ar")
    with torch.no_grad():
        for place in range(20):
            encoded = encode_utterances(model.encoder, [examples[place].subwords])
            state, total = TokenState(len(examples[place].subwords.offsets)), 0.0
            tokens = model.grammar.vocabulary.write(examples[place].frame.skeleton, examples[place].spans)
            score = CachedScore(model.decoder, encoded)
            for token in tokens:
                logits = torch.tensor(score([(0, state)]))
                total -= float(logits.log_softmax(1)[0, token])
                assert model.grammar.allowed(state)[token]
                state = model.grammar.extend(state, token, 0.0)
            assert state.is_complete
            assert float(loss([place])["loss"]) == pytest.approx(total / len(tokens), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_loss(kind, made):
    model, examples, loss = made(kind)
    with torch.no_grad():
        together = loss(range(30))
        alone = [loss([place]) for place in range(30)]
    for name in set(together) - ({"loss"} if kind != "ar" else set()):
        sizes = [n_targets(model, examples[place], name) for place in range(30)]
        mean = sum(n * float(losses[name]) for n, losses in zip(sizes, alone, strict=True)) / sum(sizes)
        assert float(together[name]) == pytest.approx(mean, abs=1e-4), name


def n_targets(model, example, name):
    """Return how many predictions a loss is the mean of."""
    if name == "units":
        return len(model.tokenizer.encode(example.frame.skeleton))
    if name in ("start", "end"):
        return len(example.spans)
    vocabulary = model.vocabulary if hasattr(model, "vocabulary") else model.grammar.vocabulary
    return 1 if name == "length" else len(vocabulary.write(example.frame.skeleton, example.spans))


def test_leaves_point_at_the_states_of_their_first_and_last_subword(made):
    model, examples, _ = made("treepiece")
    read = [model.read_skeleton(example.frame.skeleton) for example in examples]
    targets = collate_spans(examples, read, model.spans.closing)
    for example, skeleton, first, last in zip(examples, read, targets.first, targets.last, strict=True):
        places = list(skeleton.leaves)
        assert ((first != PADDING).nonzero().flatten().tolist()) == places
        for place, span, leaf in zip(places, example.spans, example.frame.leaves, strict=True):
            # States have the special token first, and offsets do not.
            assert example.subwords.offsets[int(first[place]) - 1].start == leaf.chars.start
            assert example.subwords.offsets[int(last[place]) - 1].end == leaf.chars.end
            assert (int(first[place]), int(last[place])) == (span.start + 1, span.end)


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_gets_a_gradient(kind, made):
    model, _, loss = made(kind)
    loss(range(40))["loss"].backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize("kind", KINDS)
def test_without_dropout_a_model_in_training_gives_the_same_loss_twice(kind, made):
    model, _, loss = made(kind)
    model.train()
    # The non-autoregressive model masks tokens at random in training.
    same = model.eval if kind == "nar" else model.train
    with torch.no_grad():
        assert loss(range(20))["loss"] != loss(range(20))["loss"]
        set_dropout(model, 0.0)
        same()
        assert loss(range(20))["loss"] == loss(range(20))["loss"]


def test_masks_are_random_and_every_frame_has_one():
    frames = torch.tensor([[5, 6, 7, 8], [9, 4, BLANK, BLANK]] * 300)
    lengths = (frames != BLANK).sum(1)
    shown = mask_tokens(frames, lengths)
    assert ((shown == frames) | (shown == BLANK)).all()
    n_masked = ((shown == BLANK) & (frames != BLANK)).sum(1)
    for length in (4, 2):
        counts = torch.bincount(n_masked[lengths == length], minlength=length + 1).tolist()
        assert counts[0] == 0
        assert len(counts) == length + 1
        assert min(counts[1:]) > 200 / length, "each number of masks is as likely as any other"
    assert ((shown == BLANK) & (frames != BLANK)).float()[lengths == 4].mean(0).std() < 0.1, "at any position"


def test_a_masked_token_is_guessed_from_those_that_are_shown(made):
    model, _, loss = made("nar")
    with torch.no_grad():
        blank = loss([0])["tokens"]
        model.train()
        set_dropout(model, 0.0)
        assert any(loss([0])["tokens"] != blank for _ in range(20))
        model.eval()
        assert loss([0])["tokens"] == blank


def test_an_example_learns_the_partition_that_it_names(made):
    model, examples, _ = made("treepiece", tokenizer={"merges": 60})
    example = max(examples, key=lambda one: one.frame.skeleton.n_nodes)
    partitions = [scored.unit_ids for scored in model.tokenizer.nbest(example.frame.skeleton, 5)]
    assert len(partitions) > 1
    for unit_ids in partitions:
        batch = model.collate([replace(example, unit_ids=unit_ids)])
        assert tuple(batch.units.targets[0].tolist()) == unit_ids
    assert tuple(model.collate([example]).units.targets[0].tolist()) == partitions[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_moves_between_devices_as_one(kind, made):
    model, examples, _ = made(kind)
    batch = model.collate(examples[:3])
    assert len(batch) == 3
    moved = batch.to("meta")
    assert moved.utterances.ids.is_meta
    assert {part is None for part in (moved.units, batch.units)} == {kind != "treepiece"}
    assert (moved.frames is None) == (kind == "treepiece")


def test_frames_that_do_not_fit_are_named(made):
    _, examples, _ = made("ar")
    example = max(examples, key=lambda example: len(example.spans))
    n_tokens = 2 * example.frame.skeleton.n_nodes
    assert too_large(example, n_tokens, linear=False) is None
    assert "too large" in too_large(example, n_tokens, linear=True)
    assert "too large" in too_large(example, n_tokens - 1, linear=False)


def test_cross_entropy_is_that_of_torch_where_all_classes_are_possible():
    logits, targets = torch.randn(3, 4, 7), torch.tensor([[0, 1, 2, PADDING]] * 3)
    for smoothing in (0.0, 0.1):
        expected = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), label_smoothing=smoothing, ignore_index=PADDING
        )
        torch.testing.assert_close(cross_entropy(logits, targets, smoothing), expected)


def test_impossible_classes_cost_nothing():
    logits, targets = torch.randn(3, 7), torch.tensor([0, 1, 2])
    lowest = torch.full((3, 5), torch.finfo(torch.float32).min)
    wider = torch.cat([logits, lowest], 1)
    torch.testing.assert_close(cross_entropy(wider, targets, 0.1), cross_entropy(logits, targets, 0.1))
    assert cross_entropy(logits, torch.full((3,), PADDING)) == 0
