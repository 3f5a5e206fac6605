"""The page on the command line, from the same objects that `treepiece --help` is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

from treepiece.cli.main import make_app

_HEAD = """# Command line

This page is made from the commands themselves (`python -m documentation`) and says what `--help` says. Every command
exits with 0 when it has done what it was asked, and with 2 and one line on standard error when its input or an option
is at fault; what else it may exit with is said below. Ctrl-C ends a training with 130, after saving it. Answers go to
standard output, everything else to standard error.
"""
_DEFAULT = re.compile(r" *\[default: (.*)\]$")


def write() -> str:
    """Return the page."""
    app = typer.main.get_command(make_app())
    parts = [_HEAD, *_command("treepiece", app)]
    return "\n".join(parts).rstrip() + "\n"


def _command(name: str, command: Any) -> Iterator[str]:  # noqa: ANN401  # the classes of typer are not for others
    """Yield the section of a command, and those of its commands."""
    commands: dict[str, Any] = getattr(command, "commands", {})
    if not commands:
        yield f"## {name}\n"
    if commands and " " not in name:
        yield from _options(command)
    yield from () if commands else (f"{_usage(name, command)}\n", f"{command.help.strip()}\n", *_options(command))
    for below in commands:
        yield from _command(f"{name} {below}", commands[below])


def _usage(name: str, command: Any) -> str:  # noqa: ANN401
    given = [one for one in command.params if not one.opts[0].startswith("-")]
    arguments = [_metavar(one) if one.required or one.nargs == -1 else f"[{_metavar(one)}]" for one in given]
    needed = [f"{one.opts[0]} {_metavar(one)}" for one in command.params if one.required and one.opts[0][0] == "-"]
    return f"`{' '.join([name, *needed, '[OPTIONS]', *arguments])}`"


def _options(command: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield a table of arguments and options for each group of them."""
    panels: dict[str | None, list[Any]] = {}
    for one in command.params:
        if one.name != "help" and not one.hidden:
            panels.setdefault(one.rich_help_panel, []).append(one)
    for panel, few in panels.items():
        yield f"| {panel or 'option'} | default | what it does |\n|---|---|---|"
        for one in few:
            text, default = _default(one)
            yield f"| {_names(one)} | {default} | {text} |".replace("|  |", "| |")
        yield ""


def _names(one: Any) -> str:  # noqa: ANN401
    if not one.opts[0].startswith("-"):
        return f"`{_metavar(one)}`"
    if one.is_flag:
        return ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    return f"`{one.opts[0]} {_metavar(one)}`".replace("|", r"\|")


def _metavar(one: Any) -> str:  # noqa: ANN401
    """Return what stands for a value: what the command says, or else what can be told from the default."""
    name = one.metavar
    if not name and isinstance(one.default, Enum):
        name = "|".join(str(choice.value) for choice in type(one.default))
    if not name:
        name = "TEXT" if isinstance(one.default, str) else one.name.upper().replace("_", "-")
    return f"[{name}]..." if one.nargs == -1 else str(name)


def _default(one: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return what an option does and its default, which some say in their text because it is no value."""
    text = one.help or ""
    found = _DEFAULT.search(text)
    if found:
        return text[: found.start()], found[1]
    if one.required:
        return text, "needed"
    if one.default is None or one.default is False or one.default == "" or getattr(one, "is_eager", False):
        return text, ""
    if one.default is True:
        return text, f"`{one.opts[0]}`"
    return text, f"`{one.default.value if isinstance(one.default, Enum) else one.default}`"
