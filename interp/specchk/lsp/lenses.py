"""What an editor shows beside declarations: commands that run them, and what the last run counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from lsprotocol import types as lsp

from specchk.lsp.outline import outline
from specchk.lsp.runs import LastRun, summary
from specchk.lsp.texts import SpecText

_PROPERTIES = ("invariant", "step invariant", "reachable", "liveness")


def lenses(
    text: SpecText, uri: str, findings: dict[str, LastRun], model: str | None
) -> Iterator[lsp.CodeLens]:
    """The commands of a text's models, scenarios and properties; `model` is the chosen one."""
    entries = list(outline(text.source.text))
    chosen = model or next((entry.name for entry in entries if entry.word == "model"), None)
    for entry in entries:
        where = text.range(entry.named, entry.named + len(entry.name))

        def lens(title: str, command: str, where: lsp.Range = where, **names: str) -> lsp.CodeLens:
            arguments = [{"uri": uri, **names}]
            return lsp.CodeLens(where, lsp.Command(title, f"specchk.{command}", arguments=arguments))

        if entry.word == "model":
            finding = findings.get(entry.name)
            if finding is not None:
                stale = "" if finding.text == text.source.text else " (of an earlier text)"
                yield lens(summary(finding.report) + stale, "report", model=entry.name)
            yield lens("run", "run", model=entry.name)
            yield lens("draw", "draw", model=entry.name)
            yield lens("explore", "explore", model=entry.name)
            if entry.name != chosen:
                yield lens("choose", "choose", model=entry.name)
        elif entry.word == "scenario":
            yield lens("run", "run", scenario=entry.name)
            yield lens("draw", "draw", scenario=entry.name)
        elif entry.word in _PROPERTIES and chosen is not None:
            yield lens(f"run in {chosen}", "run", model=chosen, property=entry.name)
            kind = "witness" if entry.word == "reachable" else "property"
            yield lens("draw", "draw", where, model=chosen, **{kind: entry.name})


def counts(text: SpecText, finding: LastRun | None, path: str) -> Iterator[tuple[str, int, int, int]]:
    """What the last run counted in an unchanged text: its kind, how often it happened, and where it is."""
    if finding is None or finding.text != text.source.text:
        return
    starts = text.source.line_starts
    points = []
    for point in finding.report.get("coverage") or ():
        file, line, column = point["at"].rsplit(":", 2)
        if file == path:
            points.append((starts[int(line) - 1] + int(column) - 1, int(line), point["kind"], point["count"]))
    points.sort()
    for (start, line, kind, count), after in zip_longest(points, points[1:]):
        # Up to the next of its line, of which there are two in an `if`.
        ends = starts[line - 1] + len(text.source.line(line))
        yield kind, count, start, min(ends, after[0]) if after is not None else ends


def hints(text: SpecText, finding: LastRun | None, path: str) -> Iterator[lsp.InlayHint]:
    """How many steps each action had, at the end of its line."""
    for kind, count, _, end in counts(text, finding, path):
        if kind == "action":
            yield lsp.InlayHint(text.position(end), f"{count:,} steps", padding_left=True)


def marks(text: SpecText, finding: LastRun | None, path: str) -> Iterator[lsp.Diagnostic]:
    """The parts of an unchanged text that the last run never met."""
    for kind, count, start, end in counts(text, finding, path):
        if count == 0 and finding is not None:
            yield lsp.Diagnostic(
                text.range(start, end), f"this {kind} never happens in model {finding.report['model']}",
                lsp.DiagnosticSeverity.Hint, source="specchk", tags=[lsp.DiagnosticTag.Unnecessary],
            )  # fmt: skip
