"""A report as one HTML file: no script, nothing from elsewhere, and the trees as drawings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from treepiece.checking.findings import CheckReport, Finding, FindingKind
from treepiece.trees.drawing import svg

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 0; font-size: 1.2rem; }
table { border-collapse: collapse; }
td, th { padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
article { border-top: 1px solid #8a94a355; margin-top: 1rem; padding-top: .5rem; overflow-wrap: anywhere; }
.where, figcaption, .advice { color: #76808f; }
.error { color: #c62828; } .warning { color: #b26a00; } .hint { color: #76808f; }
figure { margin: .5rem 0; overflow-x: auto; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_report(report: CheckReport, title: str) -> str:
    """Return a report as an HTML page; `title` says what was checked.

    >>> page = html_report(CheckReport(1, None, {FindingKind.UNREADABLE: 0}, {}), "<my rows>")
    >>> "<h1>&lt;my rows&gt;</h1>" in page
    True
    """
    return _plain("\n".join(_page(report, title)))


def _page(report: CheckReport, title: str) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>"
    others = "" if report.eval_rows is None else f", {report.eval_rows:,} rows of eval"
    yield f"<p>{report.rows:,} training rows{others}.</p>\n<table>"
    for kind, count in report.counts.items():
        severity, counts, *_ = kind.about
        name = f'<a href="#{kind}">{escape(counts)}</a>' if count else escape(counts)
        yield f'<tr><td class="{severity}">{severity}</td><td class="number">{count:,}</td><td>{name}</td></tr>'
    yield "</table>"
    yield from (f"<p>{escape(note)}.</p>" for note in report.notes)
    for kind, findings in report.examples.items():
        if report.counts[kind]:
            yield from _section(kind, report.counts[kind], findings)
    yield "</body>\n</html>\n"


def _section(kind: FindingKind, count: int, findings: tuple[Finding, ...]) -> Iterator[str]:
    about = kind.about
    shown = f"{len(findings):,} of {count:,}" if len(findings) < count else f"{count:,}"
    yield f'<section id="{kind}">\n<h2>{escape(about.counts.capitalize())}</h2>'
    yield (
        f'<p class="advice"><span class="{about.severity}">{about.severity}</span>, {shown}. '
        f"Expected: {escape(about.expected)}. To do: {escape(about.advice)}.</p>"
    )
    for finding in findings:
        yield from _article(finding)
    yield "</section>"


def _article(finding: Finding) -> Iterator[str]:
    yield f'<article>\n<div class="where">{escape(str(finding.where))}</div>'
    if finding.utterance is not None:
        yield f"<div><strong>{escape(finding.utterance)}</strong></div>"
    yield f"<div>{escape(finding.found)}</div>"
    for quote in finding.parses:
        yield f"<figure><figcaption>{escape(quote.caption)}</figcaption>{svg(quote.frame.tree)}</figure>"
    yield "</article>"


def _plain(page: str) -> str:
    """Return a page without what UTF-8 cannot hold, such as lone surrogates, and without control characters."""
    kept = page.encode(errors="replace").decode()
    return "".join(char if char >= " " or char in "\n\t" else "\ufffd" for char in kept)
