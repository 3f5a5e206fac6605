"""Recipes are read in full or refused with the place of the fault."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.errors import RecipeError
from treepiece.training.recipe import MODULES, Recipe, make_recipe, read_recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipes_that_ship_can_be_read(path):
    recipe = read_recipe(path, {})
    assert path.stem.endswith(f"-{recipe.kind}")
    modules = set(MODULES[recipe.kind]) - ({"reranker"} if not recipe.reranker_loss_weight else set())
    assert set(recipe.optimizer.learning_rates) == modules
    assert recipe.encoder == ("roberta-base" if "roberta" in path.stem else "minilm")
    assert make_recipe(recipe.to_json()) == recipe


def test_there_is_a_recipe_for_each_model_and_encoder():
    names = {path.stem for path in RECIPES}
    assert names >= {f"{name}-{kind}" for name in ("topv2-minilm", "paper-roberta") for kind in MODULES}
    assert names >= {f"low-resource-{part}-{kind}" for part in ("source", "target") for kind in ("treepiece", "ar")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 3", "epoch: there is no such setting; did you mean epochs?"),
        ("optimizer: {rate: 1}", "optimizer.rate: there is no such setting"),
        ("epochs: three", "epochs: must be a valid integer, got 'three'"),
        ("epochs: 0", "epochs: must be greater than or equal to 1, got 0"),
        ("epochs: true", "epochs: must be a valid integer, got True"),
        ("batch_size: 1.5", "batch_size: must be a valid integer, got 1.5"),
        ("dropout: 1.5", "dropout: must be less than or equal to 1, got 1.5"),
        ("dropout: .nan", "dropout: must be greater than or equal to 0, got nan"),
        ("checkpoint_seconds: .inf", "checkpoint_seconds: must be less than inf, got inf"),
        ("freeze_word_embeddings: 1", "freeze_word_embeddings: must be a valid boolean, got 1"),
        ("kind: gpt", "kind: must be 'treepiece', 'ar' or 'nar', got 'gpt'"),
        ("encoder: 3", "encoder: must be a valid string, got 3"),
        ("optimizer: 3", "optimizer: must be settings by name, got 3"),
        ("decoder: 3", "decoder: must be settings by name, got 3"),
        ("optimizer: {learning_rates: 3}", "optimizer.learning_rates: must be settings by name, got 3"),
        ("optimizer: {learning_rates: {encoder: fast}}", "optimizer.learning_rates.encoder: must be a valid number"),
        (
            "optimizer: {learning_rates: {decoder: 1.0}}",
            "optimizer.learning_rates.decoder: a model of the kind treepiece has no such module",
        ),
        ("optimizer: {warmup: -1}", "optimizer.warmup: must be greater than or equal to 0, got -1"),
        ("optimizer: {decay: 0.5}", "optimizer: decay belongs to the schedule exponential"),
        ("optimizer: {schedule: exponential, floor: 0.5}", "optimizer: floor belongs to the schedule cosine"),
        ("units: {pretraining: {epochs: 3}}", "units: pretraining has settings, but pretrained is false"),
        ("decoder: {n_heads: 0}", "decoder: n_heads must be a whole number"),
        ("decoder: {heads: 2}", "decoder.heads: there is no such setting; did you mean n_heads?"),
        ("tokenizer: {em: hard}", "tokenizer.em: must be 'viterbi', 'sampled' or 'exact', got 'hard'"),
        ("model: ar", "model: this setting is now called kind"),
        ("decoder: {dropout: 0.1}", "decoder.dropout: this setting is now called dropout"),
        ("units: {hinted: true}", "units.hinted: this setting is now called units.label_logits"),
        ("ranking: {weight: 1}", "ranking: there is no such setting any more: leave it out"),
        ("ema: 0.9", "ema: there is no such setting any more: leave it out"),
        ("noise: {share: 2}", "noise.share: must be less than or equal to 1, got 2"),
        ("noise: {shares: 0.2}", "noise.shares: there is no such setting; did you mean share?"),
        ("noise: {share: 0.2, weights: {typos: 1}}", "noise.weights.typos: must be 'swapped_letters', 'nearby_key', "),
        ("noise: {share: 0.2, weights: {numbers: -1}}", "noise.weights.numbers: must be greater than or equal to 0"),
        ("noise: {weights: {numbers: 2}}", "noise: weights are given, but share is 0"),
        ("- 1", "the recipe: expected settings by name, got [1]"),
        ("a: [", "not YAML"),
        ("!!python/object:os.system {}", "not YAML"),
    ],
)
def test_a_wrong_recipe_says_where(text, message, tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        read_recipe(path, {})
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(RecipeError, match="No such file"):
        read_recipe(tmp_path / "none.yaml", {})


def test_numbers_may_be_written_as_yaml_does_not_read_them(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("optimizer: {learning_rates: {encoder: 4e-6}}")
    assert read_recipe(path, {}).learning_rate("encoder") == 4e-6


def test_small_data_gets_more_epochs():
    assert Recipe().n_epochs(100) > Recipe().n_epochs(5000) >= Recipe().n_epochs(1_000_000)
    assert Recipe(epochs=7).n_epochs(100) == 7
