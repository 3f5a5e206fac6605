"""A judge learns to write gold frames, and so to say how probable the candidates of a beam are."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.decoding.linear import LinearGrammar, LinearState  # noqa: E402
from treepiece.decoding.ranking import CANDIDATES  # noqa: E402
from treepiece.errors import RecipeError  # noqa: E402
from treepiece.models.ar import CachedScore  # noqa: E402
from treepiece.models.utterances import encode_utterances  # noqa: E402
from treepiece.training.configs import write_config  # noqa: E402
from treepiece.training.examples import make_examples  # noqa: E402
from treepiece.training.objectives import make_objective  # noqa: E402
from treepiece.training.observer import Observer  # noqa: E402
from treepiece.training.preparation import inherit, new_model  # noqa: E402
from treepiece.training.weighing import _WEIGHTS, fit_weights  # noqa: E402


@pytest.fixture
def made(toy, recipe):
    settings = recipe(judge_weight=1.0, label_smoothing=0.0)
    trained = new_model(toy(80), settings, Observer(), None)
    trained.model.eval()
    examples = make_examples(toy(80), trained.subwords)[0]
    return trained, examples, make_objective(trained, examples, settings)


def test_a_frame_is_as_probable_as_writing_it_token_by_token(made):
    trained, examples, objective = made
    model = trained.model
    grammar = LinearGrammar(model.judge.vocabulary, trained.definition.pairs, budget=64)
    with torch.no_grad():
        for place, example in enumerate(examples[:20]):
            memory = encode_utterances(model.encoder, [example.subwords])
            frame = model.judge.vocabulary.write(example.frame.skeleton, example.spans)
            score = CachedScore(model.judge.decoder, memory)
            state, total = LinearState(len(example.subwords.offsets)), 0.0
            for token in frame:
                total += float(torch.tensor(score([(0, state)])).log_softmax(1)[0, token])
                state = grammar.extend(state, token, 0.0)
            assert float(model.judge([frame], memory)) == pytest.approx(total, abs=1e-3)
            assert float(objective([place])["judge"]) == pytest.approx(-total / len(frame), abs=1e-4)


def test_frames_read_together_are_as_probable_as_alone(made):
    trained, examples, _ = made
    model = trained.model
    utterances = [example.subwords for example in examples[:12]]
    with torch.no_grad():
        memory = encode_utterances(model.encoder, utterances)
        parses = model.candidates(utterances, memory, beam=CANDIDATES)
        for item, (few, scores) in enumerate(zip(parses, model.read_frames(parses, memory), strict=True)):
            for parse, score in zip(few, scores, strict=True):
                frame = model.judge.vocabulary.write(parse.skeleton, parse.spans)
                assert float(model.judge([frame], memory.select([item]))) == pytest.approx(float(score), abs=1e-3)


def test_the_judge_learns_and_its_weight_is_part_of_the_model(made):
    trained, examples, objective = made
    model = trained.model
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    before = float(objective(range(40))["judge"].detach())
    for _ in range(60):
        objective(range(40))["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert float(objective(range(40))["judge"].detach()) < before / 2
    model.judge.weight.fill_(-1.0)
    fit_weights(model, examples)
    assert float(model.state_dict()["judge.weight"]) in _WEIGHTS.astype(np.float32)


def test_a_beam_with_a_frame_that_is_too_long_to_read_is_left_as_it_is(made, monkeypatch):
    model, utterances = made[0].model, [example.subwords for example in made[1][:12]]
    with torch.no_grad():
        found = model.candidates(utterances, encode_utterances(model.encoder, utterances), beam=CANDIDATES)
    judged = model.parse(utterances, beam=CANDIDATES)
    assert all(parse.passes == len(parse.unit_ids) + bool(parse.spans) + 1 for few in judged for parse in few)
    monkeypatch.setattr(model.judge, "longest", 1)
    left = model.parse(utterances, beam=CANDIDATES)
    assert left == [sorted(few, key=lambda parse: -parse.log_p) for few in found] != judged


@pytest.mark.parametrize(
    ("second_look", "read"),
    [
        ({"judge_weight": 0.7}, lambda recipe: recipe.judge_weight),
        ({"ranking": {"weight": 0.7}}, lambda recipe: recipe.ranking.weight),
    ],
)
def test_a_second_look_that_is_there_learns_on_whatever_the_recipe_says(second_look, read, toy, recipe):
    old = new_model(toy(60), recipe(**second_look), Observer(), None)
    assert read(inherit(recipe(), old)) == 1.0
    old.facts = {"recipe": write_config(recipe(**second_look))}
    assert read(inherit(recipe(), old)) == 0.7
    assert read(inherit(recipe(judge_weight=0.2, ranking={"weight": 0.2}), old)) == 0.2
    assert read(inherit(recipe(), new_model(toy(60), recipe(), Observer(), None))) == 0.0


def test_a_model_without_a_judge_gets_one_and_one_with_it_keeps_it(toy, recipe):
    plain, judged = recipe(), recipe(judge_weight=1.0)
    old = new_model(toy(60), plain, Observer(), None)
    new = new_model(toy(60), judged, Observer(), old)
    assert new.definition.judged
    again = new_model([*toy(60), *toy(200, seed=3)], plain, Observer(), new)  # with labels that are new
    assert again.definition.judged
    known = new.definition.tokenizer.units.labels
    places = [again.definition.tokenizer.units.labels.index(label) for label in known]
    assert len(again.definition.labels) > len(known)
    for name in ("bias", "embedding.tables.0"):
        before, after = (model.judge.decoder.state_dict()[name] for model in (new.model, again.model))
        assert torch.equal(after[places], before[: len(known)])


def test_settings_that_make_no_sense_are_refused(recipe):
    with pytest.raises(RecipeError, match="judge_weight"):
        recipe(judge_weight=-1.0)
