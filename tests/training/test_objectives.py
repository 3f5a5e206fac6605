"""The losses say what the search later asks."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.decoding.linear import LinearState  # noqa: E402
from treepiece.models.ar import CachedScore  # noqa: E402
from treepiece.models.utterances import encode_utterances  # noqa: E402
from treepiece.training.examples import too_large  # noqa: E402
from treepiece.training.objectives.treepiece import _pointer_targets  # noqa: E402

KINDS = ["treepiece", "ar", "nar"]


@pytest.mark.parametrize("composed", [False, True])
def test_the_loss_of_units_is_the_score_of_each_step_of_the_search(made, composed):
    model, examples, objective = made("treepiece", units={"composed": composed})
    with torch.no_grad():
        for place in range(20):
            memory = encode_utterances(model.encoder, [examples[place].subwords])
            partial, total = model.grammar.start(), 0.0
            unit_ids = objective._unit_ids[place]
            for unit_id in unit_ids:
                logits = torch.tensor(model.score([(0, partial)], memory))
                total -= float(logits.log_softmax(1)[0, unit_id])
                assert model.grammar.allowed(partial)[unit_id]  # what training has can be generated
                partial = model.grammar.extend(partial, unit_id, 0.0)
            assert partial.is_complete
            assert float(objective([place])["units"]) == pytest.approx(total / len(unit_ids), abs=1e-4)


def test_the_loss_of_tokens_is_the_score_of_each_step_of_the_search(made):
    model, examples, objective = made("ar")
    with torch.no_grad():
        for place in range(20):
            memory = encode_utterances(model.encoder, [examples[place].subwords])
            state, total = LinearState(len(examples[place].subwords.offsets)), 0.0
            tokens = objective._tokens[place]
            score = CachedScore(model.decoder, memory)
            for token in tokens:
                logits = torch.tensor(score([(0, state)]))
                total -= float(logits.log_softmax(1)[0, token])
                assert model.grammar.allowed(state)[token]
                state = model.grammar.extend(state, token, 0.0)
            assert state.is_complete
            assert float(objective([place])["loss"]) == pytest.approx(total / len(tokens), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_loss(kind, made):
    _, examples, objective = made(kind)
    with torch.no_grad():
        together = objective(range(30))
        alone = [objective([place]) for place in range(30)]
    for name in set(together) - ({"loss"} if kind != "ar" else set()):
        sizes = [n_targets(objective, examples[place], place, name) for place in range(30)]
        mean = sum(n * float(losses[name]) for n, losses in zip(sizes, alone, strict=True)) / sum(sizes)
        assert float(together[name]) == pytest.approx(mean, abs=1e-4), name


def n_targets(objective, example, place, name):
    """Return how many predictions a loss is the mean of."""
    if name == "units":
        return len(objective._unit_ids[place])
    if name in ("start", "end"):
        return len(example.spans)
    return 1 if name == "length" else len(objective._tokens[place])


def test_leaves_point_at_the_states_of_their_first_and_last_subword(made):
    _, examples, objective = made("treepiece")
    read = [objective._tokens(example.frame.skeleton) for example in examples]
    for example, skeleton, first, last in zip(examples, read, *_pointer_targets(examples, read), strict=True):
        for place, span, leaf in zip(skeleton.leaves, example.spans, example.frame.leaves, strict=True):
            # States have the special token first, and offsets do not.
            assert example.subwords.offsets[first[place] - 1].start == leaf.chars.start
            assert example.subwords.offsets[last[place] - 1].end == leaf.chars.end
            assert (first[place], last[place]) == (span.start + 1, span.end)


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_gets_a_gradient(kind, made):
    model, _, objective = made(kind)
    objective(range(40))["loss"].backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


def test_sampled_partitions_change_from_epoch_to_epoch_and_make_the_same_trees(made, toy):
    _, examples, objective = made("treepiece", units={"sampling": 0.1})
    drawn = []
    for epoch in (0, 1, 0):
        objective.begin_epoch(epoch)
        drawn.append(objective._unit_ids)
        for example, unit_ids in zip(examples, drawn[-1], strict=True):
            assert objective._tokenizer.decode(unit_ids) == example.frame.skeleton
    assert drawn[0] == drawn[2] != drawn[1]


def test_frames_that_do_not_fit_are_named(made):
    _, examples, _ = made("ar")
    example = max(examples, key=lambda example: len(example.spans))
    n_tokens = 2 * example.frame.skeleton.n_nodes
    assert too_large(example, n_tokens, linear=False) is None
    assert "too large" in too_large(example, n_tokens, linear=True)
    assert "too large" in too_large(example, n_tokens - 1, linear=False)
