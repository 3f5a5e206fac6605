"""Measures how many utterances a second training takes in, what the time goes to, and what helps.

    python benchmarks/training.py [--steps N] [--profile] [--json]

TreePiece with the MiniLM recipe on rows of the TOPv2 train split. Variants take turns, step by step,
so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from corpora import topv2_folder
from torch.profiler import ProfilerActivity, profile

from treepiece.data.reader import read_rows
from treepiece.training.batches import plan_epoch
from treepiece.training.objectives import Objective, make_objective, parts
from treepiece.training.observer import Observer
from treepiece.training.precision import Precision, multiplying_in
from treepiece.training.preparation import make_ready, new_model, training_examples
from treepiece.training.recipe import Recipe, read_recipe
from treepiece.training.schedule import make_optimizer

RECIPE = Path(__file__).parents[1] / "recipes" / "topv2-minilm-treepiece.yaml"
FIXED = {"batch": 32, "dropout": 0.0, "judge_weight": 1.0, "ranking": {"weight": 0.0}, "precision": "bfloat16"}
"""Whatever the recipe says."""
EVERY = 6  # a sixth of the rows, from all domains, is enough for a few dozen batches
Step = Callable[[Sequence[int]], None]


def make_step(recipe: Recipe, *, compiled: bool = False) -> tuple[Step, list[int]]:
    """Return a function that takes one training step, and the lengths of the examples that it learns from."""
    rows = list(islice(read_rows(topv2_folder(), split="train"), 0, None, EVERY))
    trained = new_model(rows, recipe, Observer(), None)
    make_ready(trained.model, recipe)
    examples = training_examples(rows, trained, Observer())
    objective: Objective = make_objective(trained, examples, recipe)
    if compiled:
        trained.model.encoder.compile(dynamic=True)
    optimizer = make_optimizer(trained.model, recipe)

    def step(places: Sequence[int]) -> None:
        with multiplying_in(recipe.precision, torch.device("cpu")):
            loss = objective(places)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.model.parameters(), recipe.optimizer.clip)
        optimizer.step()
        optimizer.zero_grad()

    return step, [len(example.subwords.ids) for example in examples]


def in_one_part(step: Step, lengths: list[int]) -> tuple[Step, list[int]]:
    """Return a step whose decoders get the rows of a batch all at once."""

    def whole(places: Sequence[int]) -> None:
        with patch.object(parts, "N_PARTS", 1):
            step(places)

    return whole, lengths


def measure(n_steps: int) -> dict[str, float]:
    """Return the utterances a second of each variant."""
    recipe = read_recipe(RECIPE, FIXED)
    variants = {
        "recipe": make_step(recipe),
        "float32": make_step(replace(recipe, precision=Precision.FLOAT32)),
        "decoders in one part": in_one_part(*make_step(recipe)),
        "dropout 0.1": make_step(replace(recipe, dropout=0.1)),
        "no judge": make_step(replace(recipe, judge_weight=0.0)),
        "word embeddings trained": make_step(replace(recipe, freeze_words=False)),
        "torch.compile": make_step(recipe, compiled=True),
        "batches not sorted by length": make_step(recipe),
    }
    lengths = variants["recipe"][1]
    sorted_plan = plan_epoch(lengths, recipe.batch, seed=0, epoch=0)
    order = np.random.default_rng(0).permutation(len(lengths))
    shuffled = [order[place : place + recipe.batch].tolist() for place in range(0, len(order), recipe.batch)]
    n_steps = min(n_steps, len(shuffled) - 3)
    seconds = dict.fromkeys(variants, 0.0)
    n_rows = dict.fromkeys(variants, 0)
    for number in range(-3, n_steps):  # the first three warm up, or compile
        for name, (step, _) in variants.items():
            places = (shuffled if "not sorted" in name else sorted_plan)[number]
            start = time.perf_counter()
            step(places)
            if number >= 0:
                seconds[name] += time.perf_counter() - start
                n_rows[name] += len(places)
    return {name: n_rows[name] / seconds[name] for name in variants}


def draw_profile() -> str:
    """Return which operations the time of a few steps goes to."""
    recipe = read_recipe(RECIPE, FIXED)
    step, lengths = make_step(recipe)
    plan = plan_epoch(lengths, recipe.batch, seed=0, epoch=0)
    step(plan[0])
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for places in plan[1:6]:
            step(places)
    return str(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=14, max_name_column_width=50))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--profile", action="store_true", help="print a profile instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    if args.profile:
        print(draw_profile())
        return
    speeds = measure(args.steps)
    if args.json:
        print(json.dumps(speeds))
        return
    for name, speed in speeds.items():
        print(f"{name:32} {speed:6.1f} utterances a second  {speed / speeds['recipe']:.2f} x the recipe")


if __name__ == "__main__":
    main()
