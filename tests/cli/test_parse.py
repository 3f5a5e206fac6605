"""`treepiece parse`, from the outside."""

import json
import os
import pty
import re
import subprocess
import sys
import threading

import pytest
from typer.testing import CliRunner

from treepiece.cli.main import app
from treepiece.data.toy import toy_rows
from treepiece.errors import TreepieceError
from treepiece.extras import install_command as install
from treepiece.runtime.parser import Parser

TEXTS = [utterance for _, utterance, _ in toy_rows(20)]


@pytest.fixture(scope="module")
def parser(tiny_bundle):
    return Parser.load(tiny_bundle, threads=1)


@pytest.fixture
def run(tiny_bundle):
    """Run the command in this process; return what it wrote to standard output, and to standard error."""

    def run(*arguments, stdin=b"", code=0):
        arguments = ["parse", "--model", tiny_bundle, "--threads", 1, *arguments]
        result = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout, result.stderr

    return run


def command(bundle, *arguments):
    program = [sys.executable, "-c", "from treepiece.cli.main import run; run()", "parse", "--model", bundle]
    return list(map(str, [*program, "--threads", 1, *arguments]))


def objects(text):
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_one_text_is_drawn(run, parser):
    result = parser(TEXTS[0])
    out, _ = run(TEXTS[0])
    assert out == f"{result.draw()}\nconfidence {result.confidence:.3f}\n"


def lines(*texts):
    return "".join(f"{text}\n" for text in texts)


def test_several_texts_are_drawn_with_their_words(run, parser):
    out, _ = run(stdin=lines(*TEXTS[:3]))
    for text, part in zip(TEXTS, out.strip().split("\n\n"), strict=False):
        assert part.startswith(f"{text}\n{parser(text).draw()}\nconfidence 0.")


def test_control_characters_do_not_reach_the_terminal(run):
    out, _ = run(stdin="hello\x1b[2J there\ntwo")
    assert "\x1b" not in out


def test_nbest(run, parser):
    out, _ = run("--nbest", 3, TEXTS[0])
    n = len(parser(TEXTS[0], nbest=3).candidates)
    assert n > 1
    assert out.count("candidate ") == n
    assert f"candidate {n} of {n}, confidence 0." in out
    (value,) = objects(run("--nbest", 3, "--json", TEXTS[0])[0])
    assert len(value["nbest"]) == n


def test_json_in_the_order_of_the_input(run, parser):
    found = objects(run("--json", stdin="".join(f"{text}\n" for text in TEXTS))[0])
    assert [value["text"] for value in found] == TEXTS
    for value, result in zip(found, parser.batch(TEXTS), strict=True):
        assert value.keys() == result.to_dict().keys()
        assert (value["tree"], value["units"]) == (result.tree, result.to_dict()["units"])


def test_the_same_tree_alone_and_in_any_batch(run, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    together = run("--top", "--input", tmp_path / "rows.txt")[0].splitlines()
    assert together == run("--top", stdin=lines(*reversed(TEXTS)))[0].splitlines()[::-1]
    assert together == [run("--top", text)[0].strip() for text in TEXTS]


def test_top_text(run, parser):
    out, err = run("--top", stdin=f"{TEXTS[0]}\n\n{TEXTS[1]}\n", code=1)
    assert out.split("\n") == [parser(TEXTS[0]).tree, "", parser(TEXTS[1]).tree, ""]
    assert err.startswith("error: line 2: the text is empty, got ''")
    assert run("--top", "--min-confidence", 1, TEXTS[0])[0] == "\n"


def test_words_that_top_text_cannot_hold(run, monkeypatch):
    monkeypatch.setattr("treepiece.runtime.result.Candidate.tree", None)
    out, err = run("--top", stdin=lines(*TEXTS[:2]), code=1)
    assert out == "\n\n"
    assert err.startswith("error: line 1: TOP text cannot hold these words")
    assert "SL:" in run(stdin=lines(*TEXTS[:5]))[0]


def test_what_is_not_understood(run):
    out, _ = run("--min-confidence", 1, TEXTS[0])
    assert out.startswith("not understood\nconfidence 0.")
    (value,) = objects(run("--min-confidence", 1, "--json", TEXTS[0])[0])
    assert (value["understood"], value["tree"]) == (False, None)


def test_precisions(run, tiny_bundle):
    for precision in ("int8", "float"):
        expected = Parser.load(tiny_bundle, precision=precision).batch(TEXTS[:5])
        found = run("--top", f"--{precision}", stdin=lines(*TEXTS[:5]))[0].splitlines()
        assert found == [result.tree for result in expected]


def test_errors_stand_in_their_place(run):
    stdin = b"\xef\xbb\xbfhello\r\n\n" + b"word " * 100 + b"\nbad \xff\none\xe2\x80\xa8two\nlast"
    out, err = run("--json", stdin=stdin, code=1)
    found = objects(out)
    assert [value.get("error") is None for value in found] == [True, False, False, False, True, True]
    assert found[0]["text"] == "hello"
    assert found[1] == {"text": "", "error": found[1]["error"]}
    assert "too long" in found[2]["error"]
    assert found[3]["text"] == "bad \ufffd"
    assert found[4]["text"] == "one\u2028two"
    assert err == "3 of 6 texts could not be parsed\n"
    out, err = run(stdin=stdin, code=1)
    assert err.startswith("error: line 2: the text is empty")
    assert "error: line 4: byte 5 is not UTF-8" in err
    assert out.count("confidence") == 3


def test_one_bad_text_is_one_line(run):
    assert run("-", stdin="\n", code=1)[1].startswith("error: line 1: the text is empty")
    assert run("", code=1) == ("", "error: the text is empty, got '': give an utterance of one word or more\n")


def test_files(run, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"said": TEXTS[0]}) + "\n{\n")
    out, _ = run("--input", tmp_path / "rows.jsonl", "--column", "said", "--json", code=1)
    first, second = objects(out)
    assert first["text"] == TEXTS[0]
    assert second["text"] is None
    assert "not JSON" in second["error"]
    (tmp_path / "empty.txt").write_text("")
    assert run("--input", tmp_path / "empty.txt", "--json") == ("", "")
    assert run("--input", "-", "--top", stdin=f"{TEXTS[0]}\n") == run("-", "--top", stdin=f"{TEXTS[0]}\n")


def test_a_job(run, parser, tmp_path):
    (tmp_path / "rows.tsv").write_text("id\tutterance\n1\t" + TEXTS[0] + "\n2\t\n")
    out, err = run("--input", tmp_path / "rows.tsv", "--output", tmp_path / "out.jsonl")
    assert out == ""
    assert err.splitlines()[0].startswith("error: line 3: the text is empty")
    assert err.splitlines()[1] == f"{tmp_path / 'out.jsonl'}: 2 rows, 0 not understood, 1 with an error"
    first, second = objects((tmp_path / "out.jsonl").read_text())
    assert first["tree"] == parser(TEXTS[0]).tree
    assert second["id"] == "2"
    with pytest.raises(TreepieceError, match="exists already"):
        run("--input", tmp_path / "rows.tsv", "--output", tmp_path / "out.jsonl")
    run("--input", tmp_path / "rows.tsv", "--output", tmp_path / "out.jsonl", "--overwrite")
    (tmp_path / "many.txt").write_text("\n" * 9)
    _, err = run("--input", tmp_path / "many.txt", "--output", tmp_path / "many.tsv", "--resume")
    assert err.splitlines()[0].endswith("there is no job to resume: starting a new one")
    assert "error: 4 more rows" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "--top", "x"], "--json and --top exclude each other"),
        (["x", "--input", "a.txt"], "a text and --input exclude each other"),
        (["x", "--output", "a.tsv"], "name the file to read with --input"),
        (["--input", "-", "--output", "a.tsv"], "name the file to read with --input"),
        (["x", "--column", "a"], "name the file to read with --input"),
        (["--input", "a.txt", "--output", "b.tsv", "--top"], "--top is for standard output"),
        (["x", "--resume"], "name the file to write with --output"),
        (["x", "--engine", "ray"], "name the file to write with --output"),
        (["--input", "a.csv"], "must end with .txt, .jsonl, .tsv, .parquet"),
        (["--input", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--input", "nowhere.txt", "--output", "b.tsv"], "nowhere.txt: no such file"),
        (["x", "--nbest", "0"], "nbest must be a whole number, from 1 to 100, got 0"),
        (["x", "--min-confidence", "2"], "min_confidence must be a number from 0 to 1"),
        (["x", "--threads", "0"], "threads must be a whole number, from 1 to 1,024"),
    ],
)
def test_options_that_do_not_fit(run, arguments, message):
    with pytest.raises(TreepieceError) as caught:
        run(*arguments)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        (["set", "an", "alarm", "for", "six"], "'set an alarm for six'"),
        (["what's", "up"], "'what'\"'\"'s up'"),
        (["-", "hello"], "'- hello'"),
        (["one text", "another text"], "'one text another text'"),
    ],
)
def test_a_text_without_quotes_is_one_line_that_says_to_quote_it(run, words, quoted):
    with pytest.raises(TreepieceError) as caught:
        run(*words)
    assert str(caught.value) == (
        f"expected one text, got {len(words)} arguments: quote the text, as in `treepiece parse {quoted}`; "
        "for several texts, use a pipe with one text per line, or --input"
    )


def test_the_summary_of_a_job_as_json(run, tmp_path):
    (tmp_path / "rows.txt").write_text(lines(*TEXTS[:3], ""))
    out, err = run("--input", tmp_path / "rows.txt", "--output", tmp_path / "out.tsv", "--json")
    (value,) = objects(out)
    assert (value["output"], value["rows"], value["errors"], value["not_understood"]) == (
        str(tmp_path / "out.tsv"),
        4,
        1,
        0,
    )
    assert value["examples"][0].startswith("line 4: the text is empty")
    assert err == ""


def test_faults_are_one_line_and_exit_code_2(tmp_path):
    result = subprocess.run(command(tmp_path, "hello"), capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {tmp_path}: not a bundle")
    assert len(result.stderr.splitlines()) == 1


def test_without_a_model(monkeypatch, tmp_path):
    monkeypatch.setattr("treepiece.bundle.GRAPHS_FOLDER", tmp_path / "nowhere")
    with pytest.raises(TreepieceError, match="bundled: this installation has no model in it .* give its folder"):
        CliRunner().invoke(app, ["parse", "hello"], catch_exceptions=False)


def test_the_model_of_the_package(monkeypatch, tiny_bundle, parser):
    monkeypatch.setattr("treepiece.bundle.GRAPHS_FOLDER", tiny_bundle)
    result = CliRunner().invoke(app, ["parse", "--top", "--threads", "1", TEXTS[0]], catch_exceptions=False)
    assert result.stdout == f"{parser(TEXTS[0]).tree}\n"


def test_lines_are_answered_as_they_come(tiny_bundle):
    """Whoever writes a line and reads the answer before the next is not kept waiting."""
    program = command(tiny_bundle, "--json")
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def write(data):
            process.stdin.write(data)
            process.stdin.flush()

        for text in (*TEXTS[:3], ""):
            write(f"{text}\n".encode())
            assert json.loads(process.stdout.readline())["text"] == text
        write(b"half a line ")
        write(b"and the rest\nwithout an end")
        assert json.loads(process.stdout.readline())["text"] == "half a line and the rest"
        rest, _ = process.communicate(timeout=300)
    assert json.loads(rest)["text"] == "without an end"
    assert process.returncode == 1


def test_a_reader_that_goes_is_no_error(tiny_bundle, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in TEXTS * 20))
    parse = " ".join(command(tiny_bundle, "--input", tmp_path / "rows.txt", "--json")).replace(
        "from treepiece.cli.main import run; run()", "'from treepiece.cli.main import run; run()'"
    )
    program = f"{parse} | head -n 1"
    result = subprocess.run(program, shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_closed_standard_input(tiny_bundle):
    program = " ".join(command(tiny_bundle)).replace(
        "from treepiece.cli.main import run; run()", "'from treepiece.cli.main import run; run()'"
    )
    result = subprocess.run(f"{program} <&-", shell=True, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: standard input is closed")


def test_a_terminal_with_nothing_to_parse(tiny_bundle):
    ours, theirs = pty.openpty()
    try:
        result = subprocess.run(
            command(tiny_bundle), stdin=theirs, capture_output=True, text=True, timeout=300, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert result.returncode == 2
    assert result.stderr.startswith("error: there is nothing to parse: give a text")


def watch(arguments):
    """Run a command whose standard error is a terminal; return its standard output, and what the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = []
    thread = threading.Thread(target=lambda: shown.extend(iter(lambda: read_terminal(ours), b"")))
    thread.start()
    out, _ = process.communicate(timeout=300)
    thread.join()
    os.close(ours)
    assert process.returncode == 0
    return out.decode(), b"".join(shown).decode()


def read_terminal(handle):
    try:
        return os.read(handle, 1 << 16)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.slow
def test_bars_are_drawn_on_a_terminal_only(run, tiny_bundle, tmp_path):
    (tmp_path / "rows.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    out, shown = watch(command(tiny_bundle, "--input", tmp_path / "rows.txt", "--json"))
    assert [value["text"] for value in objects(out)] == TEXTS
    assert "parsing" in shown
    out, shown = watch(command(tiny_bundle, "--input", tmp_path / "rows.txt", "--output", tmp_path / "out.tsv"))
    assert out == ""
    assert "rows/s" in shown
    assert run("--input", tmp_path / "rows.txt", "--json")[1] == ""


def test_parsing_loads_nothing_heavy(tiny_bundle):
    code = (
        "import sys\nfrom treepiece.cli.main import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    arguments = [sys.executable, "-c", code, "parse", "--model", str(tiny_bundle), "--json", "hello"]
    loaded = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    assert "onnxruntime" in loaded
    assert not {"torch", "transformers", "lightning", "ray", "pyarrow", "pandas", "onnx"} & set(loaded)


def test_what_is_missing_is_named(run, tmp_path, monkeypatch):
    (tmp_path / "rows.txt").write_text("hello\n")
    engines = ("treepiece.jobs.parquet", "treepiece.jobs.ray_engine")
    for name in (*engines, "pyarrow", "pyarrow.parquet", "ray", "ray.data"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(TreepieceError, match=re.escape(f"needs pyarrow, which is not installed: {install('parquet')}")):
        run("--input", tmp_path / "rows.txt", "--output", tmp_path / "out.parquet")
    with pytest.raises(TreepieceError, match=re.escape(f"needs ray, which is not installed: {install('ray')}")):
        run("--input", tmp_path / "rows.txt", "--output", tmp_path / "out.tsv", "--engine", "ray")


def test_help_teaches():
    out = CliRunner().invoke(app, ["parse", "--help"]).output
    assert "Examples" in out
    assert "treepiece parse --model bundle" in out
