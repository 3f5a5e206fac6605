"""The demo runs without PyTorch, and says what is missing where there is no model."""

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"
RUN = """
import runpy, sys
from pathlib import Path
from treepiece import bundle
bundle.GRAPHS_FOLDER = Path({graphs!r})
sys.argv = ["demo.py", *{arguments!r}]
runpy.run_path({demo!r}, run_name="__main__")
assert not {{"torch", "transformers", "onnx", "lightning", "huggingface_hub"}} & set(sys.modules)
"""


def run(graphs, *arguments, **environment):
    code = RUN.format(graphs=str(graphs), arguments=[str(one) for one in arguments], demo=str(DEMO))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "utf-8", **environment}, check=False
    )


def test_the_demo(tiny_bundle):
    result = run(tiny_bundle)
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    for words in ("units a tree", "remind me to text grace tonight", "confidence", "score", "min_confidence=0.8"):
        assert words in shown
    assert "\x1b" not in shown, "colours are for terminals"
    assert max(map(len, shown.splitlines())) <= 160
    assert run("nowhere", tiny_bundle).returncode == 0, "a folder can be given"


def test_a_terminal_that_cannot_draw_lines(tiny_bundle):
    result = run(tiny_bundle, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr.decode()
    assert b"IN:" in result.stdout


def test_without_a_model_there_is_a_message(tmp_path):
    result = run(tmp_path)
    assert result.returncode == 1
    assert b"units a tree" in result.stdout, "the part that needs no model is shown"
    assert result.stderr.startswith(b"error: bundled: this installation has no model in it")
    assert len(result.stderr.splitlines()) == 1
