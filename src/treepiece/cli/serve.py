"""`treepiece serve`: a model behind HTTP."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from treepiece.bundle import BUNDLED
from treepiece.cli.arguments import BUNDLED_HELP, Spelling, load_parser
from treepiece.cli.console import note
from treepiece.errors import OptionError
from treepiece.extras import needs_extra
from treepiece.serving.settings import Settings

TOKEN = "TREEPIECE_TOKEN"
_DEFAULTS = Settings()
_limit = partial(typer.Option, metavar="N", rich_help_panel="Limits")
_time = partial(typer.Option, metavar="S", rich_help_panel="Time limits, in seconds")
_access = partial(typer.Option, rich_help_panel="Access and log")


def serve(
    model: Annotated[
        str, typer.Option(metavar="DIR", help=f"The folder of a model that `treepiece export` wrote, {BUNDLED_HELP}")
    ] = BUNDLED,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any free port.")] = 8000,
    int8: Annotated[
        bool | None, typer.Option("--int8/--float", help="Which graphs.  [default: the fastest]", show_default=False)
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="How many cores.  [default: all]")] = None,
    spelling: Spelling = True,
    batch_size: Annotated[
        int, typer.Option(metavar="N", help="The maximum number of candidates in a batch.")
    ] = _DEFAULTS.batch_size,
    batch_wait: Annotated[
        float,
        typer.Option(metavar="MS", help="The maximum time in milliseconds that a text waits for others to join it."),
    ] = _DEFAULTS.batch_wait,
    queue: Annotated[int, _limit(help="The maximum number of waiting candidates; more are refused.")] = _DEFAULTS.queue,
    concurrency: Annotated[int, _limit(help="The maximum number of concurrent requests.")] = _DEFAULTS.concurrency,
    max_bytes: Annotated[int, _limit(help="The maximum size of a body.")] = _DEFAULTS.max_bytes,
    max_texts: Annotated[int, _limit(help="The maximum number of texts in a request.")] = _DEFAULTS.max_texts,
    max_characters: Annotated[int, _limit(help="The maximum length of a text or a tree.")] = _DEFAULTS.max_characters,
    max_candidates: Annotated[
        int, _limit(help="The maximum of texts times `nbest` in a request; long texts count more.")
    ] = _DEFAULTS.max_candidates,
    answer_seconds: Annotated[float, _time(help="Time limit of an answer.")] = _DEFAULTS.answer_seconds,
    body_seconds: Annotated[float, _time(help="Time limit of reading a body.")] = _DEFAULTS.body_seconds,
    idle_seconds: Annotated[float, _time(help="Idle time of a connection.")] = _DEFAULTS.idle_seconds,
    drain_seconds: Annotated[
        float, _time(help="Seconds to keep serving after SIGTERM, with `/readyz` at 503.")
    ] = _DEFAULTS.drain_seconds,
    stop_seconds: Annotated[
        float, _time(help="Then, time limit to finish accepted requests.")
    ] = _DEFAULTS.stop_seconds,
    token_file: Annotated[
        Path | None, _access(metavar="FILE", help=f"Require the bearer token in this file, or in {TOKEN}.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        _access(
            metavar="NAME",
            help="A host name that clients may use; can be repeated.  [default: loopback names on "
            "loopback, all names elsewhere]",
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None, _access(metavar="URL", help="A site whose pages may call the server; can be repeated.")
    ] = None,
    log_texts: Annotated[bool, _access("--log-texts", help="Log the texts of users.")] = False,
) -> None:
    """Serve a model over HTTP.

    `POST /v1/parse` takes `{"text": "..."}` or `{"texts": [...]}`, with `nbest` and `min_confidence`;
    `POST /v1/tokenize` cuts a tree into units; `GET /v1/model` describes the model; `/livez`, `/readyz` and `/metrics`
    are for operators, `/docs` is the reference, and `/` is a playground. Concurrent requests are parsed together, and
    each gets the same answer as alone. Requests beyond the limits are refused at once, with a status and a reason.

    The log is JSON on standard error, one line per request. After SIGTERM or Ctrl-C the server answers accepted
    requests and exits. One process uses all cores; on several machines, run one on each behind a load balancer.

    Examples:

    - `treepiece serve`
    - `treepiece serve --model bundle --host 0.0.0.0 --port 80 --token-file token.txt`
    - `curl localhost:8000/v1/parse -H 'Content-Type: application/json' -d '{"text": "wake me at 8 am"}'`
    """
    settings = Settings(
        batch_size=batch_size,
        batch_wait=batch_wait,
        queue=queue,
        max_bytes=max_bytes,
        max_texts=max_texts,
        max_characters=max_characters,
        max_candidates=max_candidates,
        concurrency=concurrency,
        answer_seconds=answer_seconds,
        body_seconds=body_seconds,
        idle_seconds=idle_seconds,
        drain_seconds=drain_seconds,
        stop_seconds=stop_seconds,
        token=_read_token(token_file),
        allowed_hosts=tuple(allowed_host or ()),
        origins=tuple(cors_origin or ()),
        log_texts=log_texts,
    )
    with needs_extra("serve", "serve"):
        from treepiece.serving.server import run_server

    run_server(
        partial(load_parser, model, int8, threads, spelling=spelling), settings, host=host, port=port, on_start=_greet
    )


def _read_token(file: Path | None) -> str | None:
    """Return the token. It is not an option, because every user of a machine can see the options of a program."""
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
    if sys.stderr.isatty():  # elsewhere the log has it, for programs
        note(f"serving at {address}, with a playground; the reference is at {address}/docs; Ctrl-C stops")
