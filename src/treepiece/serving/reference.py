"""The reference at `/docs`: the OpenAPI description as a page.

The usual pages for this load their scripts from other sites. This one needs none, so it works where there is no way out
to the internet, and under a policy that runs nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treepiece.serving.problems import ProblemType

_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 2.5rem } h2 code { font-size: 1.1rem }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem }
pre { padding: .8rem; overflow-x: auto; border: 1px solid #8886; border-radius: 6px }
table { border-collapse: collapse } td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
"""
_CODE = re.compile(r"`([^`]+)`")
_REFERENCE = re.compile(r"#/components/schemas/(\w+)")
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'"


def add_reference(app: FastAPI) -> None:
    """Serve the reference."""
    page = cache(lambda: write_page(app.openapi()).encode())  # when it is first asked for: routes may still be added

    async def reference(request: Request) -> Response:
        return HTMLResponse(page(), headers={"Content-Security-Policy": _POLICY})

    app.add_api_route("/docs", reference, methods=["GET"], include_in_schema=False)


def write_page(description: Mapping[str, Any]) -> str:
    """Return an OpenAPI description as HTML."""
    info = description["info"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['summary'])}</p>",
        '<p>For programs: <a href="/openapi.json">openapi.json</a>. Errors: <a href="#problems">problems</a>.</p>',
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts += _operation(path, method.upper(), operation, description)
    return "\n".join([*parts, *_problems(), "</body></html>"])


def _prose(text: str) -> str:
    """Return text as HTML, with what stands between backticks as code.

    >>> _prose("`nbest` < 3")
    '<code>nbest</code> &lt; 3'
    """
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _operation(path: str, method: str, operation: Mapping[str, Any], description: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2><p>{_prose(operation['summary'])}."
    yield f"{_prose(operation.get('description', ''))}</p>"
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        example = json.dumps(schema["examples"][0])
        yield from _fields(schema)
        command = f"curl http://HOST{path} -H 'Content-Type: application/json' -d '{example}'"
        yield f"<pre>{escape(command)}</pre>"
    yield "<table><tr><th>status</th><th>what it means</th></tr>"
    for status, response in operation["responses"].items():
        yield f"<tr><td>{escape(status)}</td><td>{_prose(response['description'])}</td></tr>"
    yield "</table>"
    content = operation["responses"]["200"].get("content", {}).get("application/json")
    if content is not None:
        yield "<details><summary>The answer</summary>"
        schemas = description["components"]["schemas"]
        for name in _names(content["schema"], schemas):
            yield f"<h3>{escape(name)}</h3><p>{_prose(schemas[name].get('description', ''))}</p>"
            yield from _fields(schemas[name])
        yield "</details>"


def _names(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    """Return the objects that an answer is made of, and those that they are made of."""
    names = _REFERENCE.findall(json.dumps(schema))
    for name in names:  # which grows on the way
        names += [other for other in _REFERENCE.findall(json.dumps(schemas[name])) if other not in names]
    return list(dict.fromkeys(names))


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "<table>"
    for name, field in schema["properties"].items():
        yield f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(_type(field))}</code></td>"
        yield f"<td>{_prose(field.get('description', ''))}</td></tr>"
    yield "</table>"


def _type(field: Mapping[str, Any]) -> str:
    """Return what a field is, in a few words.

    >>> _type({"type": "array", "items": {"type": "string"}, "maxItems": 128})
    'array of string, at most 128'
    """
    if "anyOf" in field:
        return " or ".join(_type(choice) for choice in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    name = str(field.get("type", "object"))
    if "items" in field:
        name = f"{name} of {_type(field['items'])}"
    for key, words in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most"), ("maxItems", "at most")):
        if key in field:
            name += f"{' ' if key == 'maximum' else ', '}{words} {int(field[key]):,}"
    return name


def _problems() -> Iterator[str]:
    yield '<h2 id="problems">Problems</h2><p>Errors are objects of the type <code>application/problem+json</code>, '
    yield "with <code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code> and "
    yield "<code>request_id</code>.</p><table><tr><th>type</th><th>status</th><th>title</th><th>what to do</th></tr>"
    for problem in ProblemType:
        yield f'<tr id="{problem.slug}"><td><code>/docs#{problem.slug}</code></td><td>{problem.status}</td>'
        yield f"<td>{escape(problem.title)}</td><td>{_prose(problem.remedy)}</td></tr>"
    yield "</table>"
