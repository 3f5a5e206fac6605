"""How many utterances per second training takes in, what the time goes to, and what helps.

    python -m experiments training-speed [--steps N] [--profile] [--json]

TreePiece with the MiniLM recipe on rows of the TOPv2 train split. Variants take turns, step by step, so that a busy
machine slows all of them alike.
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from experiments.topv2 import add_topv2, rows_of_split
from treepiece.progress import NoProgress
from treepiece.training.batches import plan_epoch
from treepiece.training.optimization import make_optimizer, multiplying_in
from treepiece.training.preparation import apply_recipe, new_model, training_examples
from treepiece.training.recipe import MatrixPrecision, Recipe, read_recipe

RECIPE = Path(__file__).parents[1] / "recipes" / "bundled-treepiece.yaml"
FIXED = {"batch_size": 32, "dropout": 0.0, "reranker_loss_weight": 1.0, "precision": "bfloat16"}
"""Whatever the recipe says."""
EVERY = 6  # a sixth of the rows, from all domains, is enough for a few dozen batches
Step = Callable[[Sequence[int]], None]


def make_step(topv2: Path, recipe: Recipe, *, compiled: bool = False) -> tuple[Step, list[int]]:
    """Return a function that takes one training step, and the lengths of the examples that it learns from."""
    rows = rows_of_split(topv2, "train")[::EVERY]
    trained = new_model(rows, recipe, NoProgress(), None)
    apply_recipe(trained.model, recipe)
    examples = training_examples(rows, trained, NoProgress())
    if compiled:
        trained.model.encoder.compile(dynamic=True)
    optimizer = make_optimizer(trained.model, recipe)

    def step(places: Sequence[int]) -> None:
        batch = trained.model.collate([examples[place] for place in places])
        with multiplying_in(recipe.precision, torch.device("cpu")):
            loss = trained.model.loss(batch, recipe.loss)["loss"]
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained.model.parameters(), recipe.optimizer.clip)
        optimizer.step()
        optimizer.zero_grad()

    return step, [len(example.subwords.ids) for example in examples]


def measure(topv2: Path, n_steps: int) -> dict[str, float]:
    """Return the utterances per second of each variant."""
    recipe = read_recipe(RECIPE, FIXED)
    changes: dict[str, dict[str, object]] = {
        "recipe": {},
        "float32": {"precision": MatrixPrecision.FLOAT32},
        "dropout 0.1": {"dropout": 0.1},
        "no reranker": {"reranker_loss_weight": 0.0},
        "word embeddings trained": {"freeze_word_embeddings": False},
        "torch.compile": {},
        "batches not sorted by length": {},
    }
    steps = {
        name: make_step(topv2, recipe.model_copy(update=change), compiled=name == "torch.compile")
        for name, change in changes.items()
    }
    lengths = steps["recipe"][1]
    sorted_plan = plan_epoch(lengths, recipe.batch_size, seed=0, epoch=0)
    order = np.random.default_rng(0).permutation(len(lengths))
    size = recipe.batch_size
    shuffled = [order[place : place + size].tolist() for place in range(0, len(order), size)]
    n_steps = min(n_steps, len(shuffled) - 3)
    seconds = dict.fromkeys(steps, 0.0)
    n_rows = dict.fromkeys(steps, 0)
    for number in range(-3, n_steps):  # the first three warm up, or compile
        for name, (step, _) in steps.items():
            places = (shuffled if "not sorted" in name else sorted_plan)[number]
            start = time.perf_counter()
            step(places)
            if number >= 0:
                seconds[name] += time.perf_counter() - start
                n_rows[name] += len(places)
    return {name: n_rows[name] / seconds[name] for name in steps}


def draw_profile(topv2: Path) -> str:
    """Return which operations the time of a few steps goes to."""
    recipe = read_recipe(RECIPE, FIXED)
    step, lengths = make_step(topv2, recipe)
    plan = plan_epoch(lengths, recipe.batch_size, seed=0, epoch=0)
    step(plan[0])
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for places in plan[1:6]:
            step(places)
    return str(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=14, max_name_column_width=50))


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_topv2(parser)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--profile", action="store_true", help="print a profile instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Namespace) -> None:
    """Measure and print."""
    if args.profile:
        print(draw_profile(args.topv2))
        return
    speeds = measure(args.topv2, args.steps)
    if args.json:
        print(json.dumps(speeds))
        return
    for name, speed in speeds.items():
        print(f"{name:32} {speed:6.1f} utterances a second  {speed / speeds['recipe']:.2f} x the recipe")
