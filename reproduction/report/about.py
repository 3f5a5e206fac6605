"""The section on how everything was made."""

from __future__ import annotations

from reproduction.report.markdown import NOT_RUN, listed, section
from reproduction.report.results import KINDS, Results, mixed_with
from reproduction.store import Json

_COMMANDS = """\
```sh
make reproduce                                  # all of it; Ctrl-C at any time, the same command goes on
make reproduce ARGS="--seeds 3"                 # three models of each kind, as in the paper
make reproduce ARGS="--take treepiece=DIR"      # with a model that is trained already
make reproduce ARGS="--only report"             # this page again, from the results that are there
```

`TOPV2=DIR` or `TREEPIECE_TOPV2` says where TOPv2 is; `python -m reproduction --help` lists the rest. Results are
kept as JSON in `runs/reproduction/parts`, each with a checksum of all that it was made from. Those that this page
was written from are in `docs/results/parts` too, and stand for parts that `runs/reproduction` does not have."""
_SELECTION = """\
Whatever these runs chose or fitted, they did on rows of the train split, but for the [low-resource
splits](#a-few-rows-of-a-new-domain). The best epoch of a model is the one with
the best EM on rows held out from it ({rows}); on the same rows graphs were compared with PyTorch and the
temperatures of confidences fitted. The eval split was parsed to be scored, and for nothing else. It is not a blind
test, though: earlier models had been scored on it while the recipes were written."""
_RECIPES = "The recipes are `recipes/topv2-minilm-*.yaml` and `recipes/low-resource-*.yaml`."


def about(results: Results) -> str:
    """Return the section on commands, choices, seeds and machines."""
    return section(
        "How this was made", _COMMANDS, f"{_selection(results)} {_RECIPES}", _models(results), _machines(results)
    )


def _selection(results: Results) -> str:
    rows = sorted({int(model["validation"].get("rows", 0)) for kind in KINDS for model in results.models(kind)})
    return _SELECTION.format(rows=f"{listed([f'{n:,}' for n in rows])} rows" if rows else NOT_RUN)


def _models(results: Results) -> str:
    lines = ["Models:", ""]
    for kind, name in KINDS.items():
        parts = {int(part.rpartition("-")[2]): result for part, result in results.group(f"train-{kind}").items()}
        lines += [f"- {name}, seed {seed}: {_model(parts[seed])}." for seed in sorted(parts)]
        if not parts:
            lines.append(f"- {name}: {NOT_RUN}.")
    return "\n".join(lines)


def _model(result: Json) -> str:
    validation = result["validation"]
    origin = "taken as it was trained elsewhere" if result["taken"] else "trained here"
    end = "" if result["finished"] else ", its training had not ended"
    em = f"{100 * validation['em']:.2f}" if "em" in validation else "unknown"
    return (
        f"{origin}{end}; {result['rows']:,} rows, epoch {validation.get('epoch', 'unknown')} of "
        f"{result['recipe'].get('epochs', 'as many as the data needs')}{mixed_with(result)}, "
        f"EM {em} % on the rows held out"
    )


def _machines(results: Results) -> str:
    lines = ["Machines:", ""]
    for machine, parts in results.machines():
        libraries = ", ".join(f"{name} {version}" for name, version in machine["libraries"].items())
        cores = f"{machine['cores']} core{'s' * (machine['cores'] != 1)}"
        lines.append(
            f"- {cores} of {machine['cpu']}, {machine['system']}, Python {machine['python']}, {libraries}: "
            f"{len(parts)} part{'s' * (len(parts) != 1)}."
        )
    return "\n".join(lines) if len(lines) > 2 else ""
