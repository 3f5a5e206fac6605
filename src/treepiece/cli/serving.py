"""`treepiece serve`: a model behind HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treepiece.cli.console import note
from treepiece.cli.extras import needs_extra
from treepiece.cli.reading import BUNDLED_HELP
from treepiece.errors import OptionError
from treepiece.serving.settings import Settings
from treepiece.shipped import BUNDLED

if TYPE_CHECKING:
    from treepiece.runtime.parser import Parser

TOKEN = "TREEPIECE_TOKEN"
_USUAL = Settings()
_LIMITS = "Limits"
_TIMES = "Time limits, in seconds"
_ACCESS = "Access and log"


def serve(
    model: Annotated[
        str, typer.Option(metavar="DIR", help=f"The folder of a model that `treepiece export` wrote, {BUNDLED_HELP}")
    ] = BUNDLED,
    host: Annotated[
        str, typer.Option(help="Which address to listen on; 0.0.0.0 is all of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Which port; 0 is any that is free.")] = 8000,
    int8: Annotated[
        bool | None, typer.Option("--int8/--float", help="Which graphs.  [default: the fastest]", show_default=False)
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="How many cores.  [default: all]")] = None,
    batch_size: Annotated[
        int, typer.Option(metavar="N", help="At most this many readings are computed together.")
    ] = _USUAL.batch_size,
    batch_wait: Annotated[
        float, typer.Option(metavar="MS", help="A text waits so many milliseconds at most for others to join it.")
    ] = _USUAL.batch_wait,
    queue: Annotated[
        int,
        typer.Option(metavar="N", help="How many readings may wait; more are refused.", rich_help_panel=_LIMITS),
    ] = _USUAL.queue,
    connections: Annotated[
        int, typer.Option(metavar="N", help="Connections that may be open.", rich_help_panel=_LIMITS)
    ] = _USUAL.connections,
    most_bytes: Annotated[
        int, typer.Option(metavar="N", help="The largest body.", rich_help_panel=_LIMITS)
    ] = _USUAL.most_bytes,
    most_texts: Annotated[
        int, typer.Option(metavar="N", help="Texts of one request.", rich_help_panel=_LIMITS)
    ] = _USUAL.most_texts,
    most_characters: Annotated[
        int, typer.Option(metavar="N", help="The longest text or tree.", rich_help_panel=_LIMITS)
    ] = _USUAL.most_characters,
    most_readings: Annotated[
        int,
        typer.Option(
            metavar="N", help="Texts times `nbest` of one request; long texts count more.", rich_help_panel=_LIMITS
        ),
    ] = _USUAL.most_readings,
    answer_seconds: Annotated[
        float, typer.Option(metavar="S", help="For an answer.", rich_help_panel=_TIMES)
    ] = _USUAL.answer_seconds,
    body_seconds: Annotated[
        float, typer.Option(metavar="S", help="For a body to arrive.", rich_help_panel=_TIMES)
    ] = _USUAL.body_seconds,
    head_seconds: Annotated[
        float, typer.Option(metavar="S", help="For the head of a request to arrive.", rich_help_panel=_TIMES)
    ] = _USUAL.head_seconds,
    idle_seconds: Annotated[
        float, typer.Option(metavar="S", help="For a connection without a request.", rich_help_panel=_TIMES)
    ] = _USUAL.idle_seconds,
    drain_seconds: Annotated[
        float, typer.Option(metavar="S", help="To go on after SIGTERM, `/readyz` at 503.", rich_help_panel=_TIMES)
    ] = _USUAL.drain_seconds,
    stop_seconds: Annotated[
        float, typer.Option(metavar="S", help="To finish what was accepted after that.", rich_help_panel=_TIMES)
    ] = _USUAL.stop_seconds,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Clients need the token in it, or in {TOKEN}.", rich_help_panel=_ACCESS),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A site whose pages may call; can be repeated.", rich_help_panel=_ACCESS),
    ] = None,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Log what users typed.", rich_help_panel=_ACCESS)
    ] = False,
) -> None:
    """Serve a model over HTTP.

    `POST /v1/parse` takes `{"text": "..."}` or `{"texts": [...]}`, with `nbest` and `min_confidence`;
    `POST /v1/tokenize` cuts a tree into units; `GET /v1/model` describes the model; `/livez`, `/readyz` and `/metrics`
    are for those who run it, `/docs` explains all of it, and `/` is a playground. Requests that come at the same time
    are parsed together, and each is answered as if it had come alone. What is too much is refused at once, with a
    status and a reason.

    The log is JSON on standard error, one line a request. SIGTERM and Ctrl-C end the server when it has answered what
    it accepted. One process uses all cores: for more machines, run one on each behind a load balancer.

    Examples:

    - `treepiece serve`
    - `treepiece serve --model bundle --host 0.0.0.0 --port 80 --token-file token.txt`
    - `curl localhost:8000/v1/parse -H 'Content-Type: application/json' -d '{"text": "wake me at 8 am"}'`
    """
    settings = Settings(
        batch_size=batch_size,
        batch_wait=batch_wait,
        queue=queue,
        most_bytes=most_bytes,
        most_texts=most_texts,
        most_characters=most_characters,
        most_readings=most_readings,
        connections=connections,
        answer_seconds=answer_seconds,
        body_seconds=body_seconds,
        head_seconds=head_seconds,
        idle_seconds=idle_seconds,
        drain_seconds=drain_seconds,
        stop_seconds=stop_seconds,
        token=_read_token(token_file),
        origins=tuple(cors_origin or ()),
        log_texts=log_texts,
    )
    with needs_extra("serve", "serve"):
        from treepiece.serving.run import run_server

    def load() -> Parser:
        from treepiece.runtime.parser import Parser

        precision = None if int8 is None else "int8" if int8 else "float"
        return Parser.load(model, precision=precision, threads=threads)

    run_server(load, settings, host=host, port=port, on_start=_greet)


def _read_token(file: Path | None) -> str | None:
    """Return the token. It is no option of its own, because everybody on a machine can see the options of a program."""
    if file is None:
        return os.environ.get(TOKEN)
    try:
        return file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise OptionError(f"--token-file {file}: it is not text in UTF-8") from None
    except OSError as error:
        make = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise OptionError(f"--token-file {file}: {error.strerror}: make one with `{make} > FILE`") from None


def _greet(address: str) -> None:
    if sys.stderr.isatty():  # elsewhere the log says it, and is read by programs
        note(f"serving at {address}, with a playground; the reference is at {address}/docs; Ctrl-C stops")
