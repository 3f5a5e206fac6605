"""`treepiece tools`, from the outside."""

import json

import pytest
from typer.testing import CliRunner

from treepiece.cli.main import app
from treepiece.errors import BundleError
from treepiece.integrations.tool_calls import ToolSet


def test_the_command_prints_what_python_has():
    result = CliRunner().invoke(app, ["tools", "bundled", "--json"], catch_exceptions=False)
    assert json.loads(result.stdout) == ToolSet.load("bundled").schemas
    lines = CliRunner().invoke(app, ["tools"], catch_exceptions=False).stdout.splitlines()
    assert "CREATE_REMINDER(AMOUNT, DATE_TIME, ORDINAL, PERSON_REMINDED, RECURRING_DATE_TIME, TODO)" in lines
    assert len(lines) == len(json.loads(result.stdout))


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(BundleError, match="not a bundle"):
        CliRunner().invoke(app, ["tools", str(tmp_path)], catch_exceptions=False)
