"""The common parts of all pages: the document around them, and a trace to step through.

One self-contained file: style and script are in it, and its policy forbids to load anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from specchk.ir.program import Program
from specchk.report.diff import changes, parts
from specchk.search.verdict import Trace

# A spec's names are text of other people: even if an escape were missing, nothing could be loaded or sent.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def document(title: str, body: Iterable[str]) -> str:
    """A whole page."""
    assets = files("specchk.report.page").joinpath("assets")
    style, script = (
        assets.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js")
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + f"\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def row(*cells: str, mark: str = "") -> str:
    """A table row with cells in HTML; `mark` is a string of attributes."""
    return f"<tr{mark}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def table(titles: Sequence[str], rows: Iterable[str]) -> str:
    """A table with a header."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def coded(text: str) -> str:
    """A message as HTML: what is between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def verdict(kind: str, title: str, lines: Iterable[str]) -> str:
    """The box at the top; `kind` is the class that colours it."""
    below = "".join(f"<div>{coded(line)}</div>" for line in lines)
    return f'<div class="verdict {kind}"><strong>{coded(title)}</strong>{below}</div>'


def picture(drawing: str | None) -> Iterator[str]:
    """The section of an SVG, if there is one."""
    if drawing is not None:
        yield f'<h2>As a picture</h2><div class="lanes">{drawing}</div>'


def folded(program: Program, trace: Trace, names: Collection[str], what: str) -> Iterator[str]:
    """The variables omitted from the steps, collapsed; `what` describes them."""
    if names:
        rows = "".join(_variable(n, v, None) for n, v in parts(program, trace.initial) if n in names)
        yield (
            f"<details><summary>{len(names)} variables never change here and {what}</summary>"
            f'<table class="state">{rows}</table></details>'
        )


def controls(last: int) -> str:
    """The slider and the buttons, for steps 0 to `last`."""
    return (
        '<div class="controls"><button id="back" type="button" aria-label="step back">←</button>'
        f'<input id="slider" type="range" min="0" max="{last}" value="{last}" aria-label="step">'
        '<button id="forth" type="button" aria-label="step forward">→</button><span id="shown"></span></div>'
    )


def steps(program: Program, trace: Trace, left_out: Collection[str]) -> Iterator[str]:
    """One section for each state: all variables except omitted ones, and the changes of the step."""
    titles = ["initial state", *(str(step) for step in trace.steps)]
    states = trace.states
    for number, (title, state) in enumerate(zip(titles, states, strict=True)):
        changed: dict[str, list[str]] = {}
        for change in changes(program, states[number - 1], state) if number else ():
            changed.setdefault(change.variable, []).append(change.text("→"))
        rows = "".join(
            _variable(name, value, changed.get(name))
            for name, value in parts(program, state)
            if name not in left_out
        )
        head = "<tr><th>variable</th><th>value</th><th>changed</th></tr>"
        yield step(number, f"{number}: {title}", head + rows)


def step(number: int, title: str, rows: str) -> str:
    """One section with a table; `#step-7` links to it."""
    return (
        f'<section class="step" id="step-{number}"><h3>{escape(title)}</h3>'
        f'<table class="state">{rows}</table></section>'
    )


def _variable(name: str, value: str, changed: Sequence[str] | None) -> str:
    mark = ' class="changed"' if changed else ""
    diff = "".join(f"<div>{escape(line)}</div>" for line in changed or ())
    return f"<tr><td{mark}>{escape(name)}</td><td>{escape(value)}</td><td{mark}>{diff}</td></tr>"
