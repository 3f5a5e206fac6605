"""`treepiece tools`: the intents of a model as functions that agents can call."""

from __future__ import annotations

from typing import Annotated

import typer

from treepiece.bundle import BUNDLED
from treepiece.cli.arguments import BUNDLED_HELP, Json
from treepiece.cli.console import say, say_json
from treepiece.integrations.tool_calls import ToolSet


def tools(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help=f"A folder that `treepiece train` or `treepiece export` wrote, {BUNDLED_HELP}"
        ),
    ] = BUNDLED,
    as_json: Json = False,
) -> None:
    """Print the intents of a model as functions: one for each intent, with its slots as parameters.

    --json prints a list of tools in the form of OpenAI and LangChain, with parameters in JSON Schema.

    Example: `treepiece tools bundled --json`
    """
    schemas = ToolSet.load(model).schemas
    if as_json:
        say_json(schemas)
        return
    for schema in schemas:
        function = schema["function"]
        say(f"{function['name']}({', '.join(function['parameters']['properties'])})")
