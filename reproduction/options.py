"""The command line of the reproduction."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproduction.data import SPIS
from treepiece.errors import OptionError

ROOT = Path(__file__).parents[1]
REPORT = "report"
GROUPS = ("tokenizer", "figure3", "train", "scores", "latency", "inside", "low-resource", "ablations", REPORT)
_VARIABLE = "TREEPIECE_TOPV2"


@dataclass(frozen=True)
class Options:
    """What is asked for; `variants` and `rates` are empty for all that there are."""

    topv2: Path | None = None
    work: Path = Path("runs/reproduction")
    seeds: int = 1
    only: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    latency_rows: int = 200
    ablation_rows: int = 8000
    ablation_epochs: int = 2
    variants: tuple[str, ...] = ()
    spis: tuple[int, ...] = SPIS
    rates: tuple[float, ...] = ()
    from_scratch: bool = False
    recipes: Path = ROOT / "recipes"
    docs: Path = ROOT / "docs"
    is_plan: bool = False

    def __post_init__(self) -> None:
        for name in ("seeds", "latency_rows", "ablation_rows", "ablation_epochs"):
            if getattr(self, name) < 1:
                raise OptionError(f"--{name.replace('_', '-')} must be 1 or more, got {getattr(self, name)}")
        for spis in self.spis:
            if spis not in SPIS:
                raise OptionError(f"--spis must be among {', '.join(map(str, SPIS))}, got {spis}")
        if not all(rate > 0 for rate in self.rates):
            raise OptionError(f"--rates must be above 0, got {' '.join(map(str, self.rates))}")

    def wants(self, group: str) -> bool:
        """Return whether any part of a group is asked for."""
        return not self.only or any(name == group or name.startswith(f"{group}-") for name in self.only)

    @property
    def data(self) -> Path:
        """The folder of TOPv2."""
        if self.topv2 is None:
            raise OptionError(f"where is TOPv2? Give its folder with --topv2 DIR, or in {_VARIABLE}")
        return self.topv2


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """Return what a command line asks for."""
    parser = _parser()
    given = parser.parse_args(arguments)
    folder = given.topv2 or os.environ.get(_VARIABLE)
    return Options(
        topv2=Path(folder) if folder else None,
        work=given.work,
        seeds=given.seeds,
        only=tuple(given.only),
        takes=tuple(given.take),
        latency_rows=given.latency_rows,
        ablation_rows=given.ablation_rows,
        ablation_epochs=given.ablation_epochs,
        variants=tuple(given.variants),
        spis=tuple(given.spis),
        rates=tuple(given.rates),
        from_scratch=given.from_scratch,
        recipes=given.recipes,
        docs=given.docs,
        is_plan=given.plan,
    )


def _parser() -> argparse.ArgumentParser:
    default = Options()
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Train, evaluate, and write docs/results.md. What is done is kept in the folder --work and is not "
        "done again; Ctrl-C at any time, and the same command goes on.",
        epilog=f"Groups of parts: {', '.join(GROUPS)}. --plan lists all parts.",
    )
    add = parser.add_argument
    add("--topv2", metavar="DIR", help=f"the folder of TOPv2  [default: {_VARIABLE}]")
    add("--work", type=Path, default=default.work, metavar="DIR", help="where results are kept  [default: %(default)s]")
    add("--plan", action="store_true", help="list the parts and how far they are, and do nothing")
    add("--only", nargs="+", default=[], metavar="PART", help="these parts or groups; `report` takes seconds")
    add("--seeds", type=int, default=default.seeds, metavar="N", help="models of each kind  [default: %(default)s]")
    add("--take", nargs="+", default=[], metavar="KIND=DIR", help="take this trained model instead of training one")
    add(
        "--latency-rows", type=int, default=default.latency_rows, metavar="N", help="utterances  [default: %(default)s]"
    )
    add("--ablation-rows", type=int, default=default.ablation_rows, metavar="N", help="rows  [default: %(default)s]")
    add("--ablation-epochs", type=int, default=default.ablation_epochs, metavar="N", help="[default: %(default)s]")
    add("--variants", nargs="+", default=[], metavar="NAME", help="ablations to run  [default: all]")
    add("--spis", nargs="+", type=int, default=SPIS, metavar="N", help="samples per intent and slot  [default: all]")
    add(
        "--rates",
        nargs="+",
        type=float,
        default=[],
        metavar="X",
        help="factors of the low-resource learning rates, the best is kept  [default: 1]",
    )
    add("--from-scratch", action="store_true", help="low-resource training without the other domains first, too")
    add("--recipes", type=Path, default=default.recipes, metavar="DIR", help="recipes  [default: recipes]")
    add("--docs", type=Path, default=default.docs, metavar="DIR", help="where results.md is written  [default: docs]")
    return parser
