"""The documentation is true: its code runs, its figures and its reference are those of the code, its links lead on."""

import re
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version

import pytest
from doc_blocks import PAGES, ROOT, BlockError, read_blocks

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'treepiece[train]'")

from doc_session import Session
from typer.testing import CliRunner

from tools.docs.__main__ import DOCS, MADE
from treepiece.cli.main import make_app


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def session(tmp_path, monkeypatch, tiny_bundle, tiny_encoder):
    made = Session(
        tmp_path, TINY_ENCODER=tiny_encoder, TINY_MODEL=tiny_bundle.parent / "model", TINY_BUNDLE=tiny_bundle
    )
    monkeypatch.chdir(made.folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("COLUMNS", "100")
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if "```" in page.read_text(encoding="utf-8")], ids=name_of)
def test_every_block_of_a_page(page, session):
    if page.stem == "spacy":
        pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'treepiece[spacy]'")
    for block in read_blocks(page.read_text(encoding="utf-8"), name_of(page)):
        if block.is_run:
            session.run(block)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```\nx\n```\n", "nothing runs a block without a language"),
        ("```rust\nx\n```\n", "nothing runs rust"),
        ("```sh\nx\n", "not of the form"),
        ("~~~sh\nx\n~~~\n", "not of the form"),
        ("<!-- docs: not run: docker is not there -->\n\n```sh\nx\n```\n", "right before"),
        ("<!-- docs: not run:  -->\n```sh\nx\n```\n", "not understood"),
        ("<!-- docs: skip: it fails -->\n```sh\nx\n```\n", "not understood"),
        ("<!-- docs: with: --rows 9 => --rows 1 -->\n```sh\nx\n```\n", "'--rows 9' is not in the block"),
    ],
)
def test_no_block_is_left_out_without_a_word(text, reason):
    with pytest.raises(BlockError, match=re.escape(reason)):
        read_blocks(text, "page")


def test_what_is_run_of_a_page():
    text = (
        '<!-- docs: with: 9 => 1 -->\n```sh\nx 9\n```\n\n```python title="a.py"\ny\n```\n\n- z\n\n  ```sh\n  z\n  ```\n'
    )
    assert [(block.title, block.code, block.line) for block in read_blocks(text, "page")] == [
        (None, "x 1\n", 2),
        ("a.py", "y\n", 6),
        (None, "z\n", 12),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ treepiece --version\nsix\n```\n",
        "```sh\nfalse\n```\n",
        "```sh\ntreepiece parse --model nowhere hello\n```\n",
        "```sh\npip install '.[nothing]'\n```\n",
        "```sh\nmake nothing\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```python\nassert False\n```\n",
    ],
)
def test_a_block_that_is_wrong_is_noticed(code, tmp_path, monkeypatch):
    session = Session(tmp_path)
    monkeypatch.chdir(session.folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    (block,) = read_blocks(code, "page")
    with closing(session), pytest.raises(AssertionError):
        session.run(block)


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_is_up_to_date(name):
    if name == "cli.md" and not version("typer").startswith("0.29."):
        pytest.skip("docs/cli.md is written with typer 0.29: pip install 'treepiece[docs]'")
    assert (DOCS / name).read_text(encoding="utf-8") == MADE[name](), "run `python -m tools.docs`"


def test_the_reference_names_what_help_names():
    """Every option of every command, and no other."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^##+ `treepiece (.*?)`\n(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL))
    app = make_app()
    for command, section in sections.items():
        result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "300", "NO_COLOR": "1"})
        assert options_in(result.stdout) == options_in(section), command
    assert {"parse", "serve", "tokenizer train", "data toy"} < sections.keys()


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))


def test_the_tables_on_the_server_are_those_of_the_code():
    from treepiece.serving.problems import ProblemType
    from treepiece.serving.settings import Settings

    server = (DOCS / "server.md").read_text(encoding="utf-8")
    problems = re.findall(r"^\| `/docs#([a-z-]+)` \| (\d+) \|", server, flags=re.MULTILINE)
    assert problems == [(problem.slug, str(problem.status)) for problem in ProblemType]
    deployment = (DOCS / "deployment.md").read_text(encoding="utf-8")
    limits = re.findall(r"^\| `--([a-z-]+)` \| ([\d,]+) \|", deployment, flags=re.MULTILINE)
    assert len(limits) >= 6
    for name, value in limits:
        assert int(value.replace(",", "")) == getattr(Settings(), name.replace("-", "_")), name


def test_the_metrics_are_those_of_the_code():
    pytest.importorskip(
        "prometheus_client", reason="prometheus-client is not installed: pip install 'treepiece[serve]'"
    )
    from treepiece.serving.metrics import Metrics

    written = set(re.findall(r"`(treepiece_[a-z_]+)`", (DOCS / "deployment.md").read_text(encoding="utf-8")))
    known = dict.fromkeys(("name", "kind", "version", "precision", "treepiece"), "")
    page = Metrics(known, waiting=lambda: 0, bound=1, under_way=lambda: 0).write().decode()
    made = re.findall(r"^# TYPE (treepiece_[a-z_]+) ", page, flags=re.MULTILINE)
    assert written == {name for name in made if not name.endswith("_created")}


@pytest.mark.slow
def test_the_site(tmp_path):
    """It can be built, all its links lead somewhere, and its pages ask nobody else for anything."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'treepiece[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    elsewhere = re.compile(r'<(?:script|img|link|iframe)[^>]*?(?:src|href)="(https?://[^"]*)"')
    for page in pages:
        assert not elsewhere.findall(page.read_text("utf-8")), page
