"""Started twice by torchrun: trains, and writes down what each process holds at the end."""

import hashlib
import json
import sys
from pathlib import Path
from unittest import mock

from tiny import rows_of

from treepiece.training import run
from treepiece.training.observer import Observer
from treepiece.training.preparation import hold_out
from treepiece.training.recipe import read_recipe


class Notes(Observer):
    def __init__(self):
        self.validation = []

    def epoch(self, report):
        self.validation.append([report.n_rows, report.em])


def main(folder, recipe_file):
    recipe = read_recipe(recipe_file, {})
    fabric = run.make_fabric()
    data = hold_out(rows_of(101), recipe)
    notes = Notes()
    run.begin_together(fabric, folder / "model", data, recipe, init=None, observer=notes)
    loops = []

    def remember(*args):
        loops.append(Loop(*args))
        return loops[0]

    Loop = run.Loop
    with mock.patch.object(run, "Loop", remember):
        run.go_on(folder / "model", data, observer=notes, fabric=fabric)
    run.leave(fabric)
    digest = hashlib.sha256()
    for name, weight in sorted(loops[0]._trained.model.state_dict().items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    seen = {
        "validation": notes.validation,
        "weights": digest.hexdigest(),
        "best": loops[0].position.best_em,
        "held_out": len(data.validation),
    }
    (folder / f"rank{fabric.global_rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
