"""Started twice by torchrun: trains, and writes down what each process holds at the end."""

import hashlib
import json
import sys
from pathlib import Path

from tiny import rows_of

from treepiece.training import run
from treepiece.training.observer import Observer
from treepiece.training.preparation import hold_out
from treepiece.training.recipe import read_recipe

folder, recipe_file = map(Path, sys.argv[1:])
recipe = read_recipe(recipe_file, {})
fabric = run.make_fabric()
data = hold_out(rows_of(101), recipe)
seen = {"validation": []}


class Notes(Observer):
    def epoch(self, report):
        seen["validation"].append([report.n_rows, report.em])


loops = []
init = run.Loop.__init__


def remember(self, *args):
    loops.append(self)
    init(self, *args)


run.Loop.__init__ = remember
run.begin_together(fabric, folder / "model", data, recipe, init=None, observer=Observer())
run.go_on(folder / "model", data, observer=Notes(), fabric=fabric)
digest = hashlib.sha256()
for name, weight in sorted(loops[0]._trained.model.state_dict().items()):
    digest.update(name.encode() + weight.numpy().tobytes())
seen["weights"], seen["best"], seen["held_out"] = digest.hexdigest(), loops[0].position.best_em, len(data.validation)
run.leave(fabric)
(folder / f"rank{fabric.global_rank}.json").write_text(json.dumps(seen))
