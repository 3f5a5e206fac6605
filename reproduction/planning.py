"""All parts of the reproduction, in the order in which they are worth doing."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.ablations import ablation_part, variant_names
from reproduction.data import TARGETS, check_files, split_files
from reproduction.inside import inside_part
from reproduction.low_resource import LOW_KINDS, RATES, Few, source_part, target_part, wanted_files
from reproduction.measuring import figure_part, latency_part, tokenizer_part
from reproduction.options import GROUPS, REPORT, Options
from reproduction.part import Part
from reproduction.scoring import scores_part
from reproduction.sources import KINDS, Taken, take, taken_part, train_part
from treepiece.errors import OptionError


def plan_parts(options: Options) -> list[Part]:
    """Return all parts but the report; those that others need stand before them.

    What makes the largest difference to the report comes first: one model of each kind, then everything that is asked
    of those, and further seeds last.
    """
    check_files(options.data, split_files("train") + split_files("eval"))
    taken = _taken(options)
    seeds = {kind: choose_seeds([seed for other, seed in taken if other == kind], options.seeds) for kind in KINDS}
    first = {kind: seeds[kind][0] for kind in KINDS}
    parts = [tokenizer_part(options.data), figure_part(options.data)]
    parts += [part for kind, seed in first.items() for part in _model_parts(kind, seed, options, taken)]
    parts.append(latency_part(first, options.latency_rows, options.data))
    parts.append(inside_part(options.data))
    if options.wants("low-resource"):
        parts += _low_resource(options)
    if options.wants("ablations"):
        parts += [
            ablation_part(name, options.ablation_rows, options.ablation_epochs, options.data, options.recipes)
            for name in options.variants or variant_names()
        ]
    for turn in range(1, max(map(len, seeds.values()))):
        for kind in KINDS:
            if turn < len(seeds[kind]):
                parts += _model_parts(kind, seeds[kind][turn], options, taken)
    return parts


def choose_seeds(taken: Sequence[int], n: int) -> list[int]:
    """Return the seeds of `n` models of a kind: those that are taken, and as many others as are still needed.

    >>> choose_seeds([3], 1), choose_seeds([1], 3), choose_seeds([], 2)
    ([3], [0, 1, 2], [0, 1])
    """
    others = [seed for seed in range(n + len(taken)) if seed not in taken]
    return sorted([*taken, *others[: max(0, n - len(taken))]])


def choose_parts(parts: Sequence[Part], only: Sequence[str]) -> list[Part]:
    """Return the parts that are asked for, by name or by group; without any names, all."""
    for name in only:
        if name not in GROUPS and not any(part.is_chosen(name) for part in parts):
            raise OptionError(f"--only {name}: there is no such part; groups are {', '.join(GROUPS)}; --plan lists all")
    return [part for part in parts if not only or any(part.is_chosen(name) for name in only if name != REPORT)]


def _taken(options: Options) -> dict[tuple[str, int], Taken]:
    found: dict[tuple[str, int], Taken] = {}
    for choice in options.takes:
        taken = take(choice)
        before = found.setdefault((taken.kind, taken.seed), taken)
        if before is not taken:
            raise OptionError(
                f"--take {choice}: {before.folder} has seed {taken.seed} too: take models of different seeds"
            )
    return found


def _model_parts(kind: str, seed: int, options: Options, taken: dict[tuple[str, int], Taken]) -> list[Part]:
    here = taken.get((kind, seed))
    train = train_part(kind, seed, options.data, options.recipes) if here is None else taken_part(here)
    return [train, scores_part(kind, seed, options.data, here)]


def _low_resource(options: Options) -> list[Part]:
    check_files(options.data, wanted_files(options.spis))
    rates = options.rates or RATES
    parts = [source_part(kind, options.data, options.recipes) for kind in LOW_KINDS]
    starts = (True, False) if options.from_scratch else (True,)
    return parts + [
        target_part(Few(kind, domain, spis, from_source), rates, options.data, options.recipes)
        for from_source in starts
        for spis in sorted(options.spis)
        for domain in TARGETS
        for kind in LOW_KINDS
    ]
