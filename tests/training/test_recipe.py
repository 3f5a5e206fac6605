"""Recipes are read in full or refused with the place of the fault."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from treepiece.errors import RecipeError
from treepiece.training.configs import read_config, write_config
from treepiece.training.recipe import MODULES, OptimizerConfig, Recipe, Schedule, read_recipe
from treepiece.training.schedule import rate_factor

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipes_that_ship_can_be_read(path):
    recipe = read_recipe(path, {})
    assert path.stem.endswith(f"-{recipe.model}")
    modules = set(MODULES[recipe.model]) - ({"judge"} if not recipe.judge_weight else set())
    assert set(recipe.optimizer.learning_rates) == modules
    assert recipe.encoder == ("roberta-base" if "roberta" in path.stem else "minilm")
    assert read_config(Recipe, write_config(recipe)) == recipe


def test_there_is_a_recipe_for_each_model_and_encoder():
    names = {path.stem for path in RECIPES}
    assert names >= {f"{name}-{kind}" for name in ("topv2-minilm", "paper-roberta") for kind in MODULES}
    assert names >= {f"low-resource-{part}-{kind}" for part in ("source", "target") for kind in ("treepiece", "ar")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: 3", "epoch: there is no such setting; did you mean epochs?"),
        ("optimizer: {rate: 1}", "optimizer.rate: there is no such setting"),
        ("epochs: three", "epochs: expected a whole number, got 'three'"),
        ("epochs: 0", "epochs must be a whole number, 1 or more, got 0"),
        ("epochs: true", "epochs: expected a whole number, got True"),
        ("batch: 1.5", "batch: expected a whole number, got 1.5"),
        ("ema: 2", "ema must be a number from 0 to 1, got 2.0"),
        ("dropout: 1.5", "dropout must be a number from 0 to 1, got 1.5"),
        ("freeze_words: 1", "freeze_words: expected true or false, got 1"),
        ("model: gpt", "model: expected one of treepiece, ar, nar, got 'gpt'"),
        ("optimizer: 3", "optimizer: expected settings by name, got 3"),
        ("optimizer: {learning_rates: 3}", "optimizer.learning_rates: expected values by name, got 3"),
        ("optimizer: {learning_rates: {encoder: fast}}", "optimizer.learning_rates.encoder: expected a number"),
        (
            "optimizer: {learning_rates: {decoder: 1.0}}",
            "learning_rates.decoder: the model treepiece has no such module",
        ),
        ("optimizer: {warmup: -1}", "optimizer: warmup must be a number from 0 to 1"),
        ("decoder: {n_heads: 0}", "decoder: n_heads must be a whole number"),
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


def test_the_rate_rises_then_falls():
    config = OptimizerConfig(warmup=0.1, floor=0.02)
    factors = [rate_factor(config, step, 100, 0) for step in range(100)]
    assert factors[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert factors[-1] == pytest.approx(0.02, abs=1e-3)


def test_the_paper_s_rate_falls_by_epochs():
    config = OptimizerConfig(schedule=Schedule.EXPONENTIAL, warmup=0.05, decay=0.9)
    assert rate_factor(config, 50, 1000, 5) == 0.9**5
    assert rate_factor(config, 24, 1000, 2) == 0.5


def test_small_data_gets_more_epochs():
    assert Recipe().n_epochs(100) > Recipe().n_epochs(5000) >= Recipe().n_epochs(1_000_000)
    assert Recipe(epochs=7).n_epochs(100) == 7
