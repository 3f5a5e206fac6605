"""The reference at `/docs`: the OpenAPI description as a page.

FastAPI's own pages load their scripts from a CDN. This one needs no script at all, so it works offline and under a
strict content security policy, and it explains the problem types that answers link to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from treepiece.serving.problems import ProblemType

_CODE = re.compile(r"`([^`]+)`")
_LIMITS = {"minimum": ", from", "maximum": " to", "maxLength": ", at most", "maxItems": ", at most"}


def write_page(description: Mapping[str, Any]) -> str:
    """Return an OpenAPI description as HTML."""
    info = description["info"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{escape(info["title"])}</title><link rel="stylesheet" href="page/reference.css"></head><body>',
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['summary'])}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts += _operation(path, method.upper(), operation)
    parts.append("<h2>Objects</h2>")
    for name, schema in description["components"]["schemas"].items():
        parts.append(f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{_prose(schema.get("description", ""))}</p>')
        parts.append(_fields(schema))
    rows = (
        (f'<code id="{kind.slug}">/docs#{kind.slug}</code>', str(kind.status), escape(kind.title), _prose(kind.remedy))
        for kind in ProblemType
    )
    parts += ['<h2 id="problems">Problems</h2>', _table(("type", "status", "title", "what to do"), *rows)]
    return "\n".join([*parts, "</body></html>"])


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2>"
    yield "".join(f"<p>{_prose(part)}</p>" for part in operation["description"].split("\n\n"))
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        yield _fields(schema)
        example = json.dumps(schema["examples"][0])
        command = f"curl http://HOST{path} -H 'Content-Type: application/json' -d '{example}'"
        yield f"<pre>{escape(command)}</pre>"
    answers = operation["responses"].items()
    yield _table(("status", "answer"), *((status, _prose(answer["description"])) for status, answer in answers))
    schemas = [(kind, body["schema"]) for kind, body in operation["responses"]["200"]["content"].items()]
    yield "".join(f"<p>Answer: {escape(kind)}, {_type(schema)}</p>" for kind, schema in schemas)


def _fields(schema: Mapping[str, Any]) -> str:
    return _table(
        ("field", "type", ""),
        *(
            (f"<code>{escape(name)}</code>", _type(field), _prose(field.get("description", "")))
            for name, field in schema["properties"].items()
        ),
    )


def _table(head: tuple[str, ...], *rows: tuple[str, ...]) -> str:
    lines = ["".join(f"<th>{cell}</th>" for cell in head)]
    lines += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _prose(text: str) -> str:
    """Return text as HTML, with text between backticks as code.

    >>> _prose("`nbest` < 3")
    '<code>nbest</code> &lt; 3'
    """
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _type(field: Mapping[str, Any]) -> str:
    """Return the type of a field in a few words.

    >>> _type({"type": "array", "items": {"type": "string"}, "maxItems": 128})
    'array of string, at most 128'
    """
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    if "$ref" in field:
        name = escape(str(field["$ref"]).rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    name = str(field.get("type", "object"))
    if "items" in field:
        name = f"{name} of {_type(field['items'])}"
    for key, words in _LIMITS.items():
        if key in field:
            name += f"{words} {int(field[key]):,}"
    return name
