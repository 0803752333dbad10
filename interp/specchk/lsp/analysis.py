"""What is known of a spec in one version of its text: its diagnostics, types and places.

An analysis is that of `specchk check` without what only values decide.  Unlike there, a spec with errors has
facts, too: of whatever could be read and typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from specchk.lang.check.checker import Checker
from specchk.lang.check.expressions import expression_checker
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.frontend import check_loaded
from specchk.lang.load import load
from specchk.lang.text.diagnostics import Diagnostic, Report, SpecError
from specchk.lang.text.source import Span
from specchk.lsp.texts import Drafts, KeptChunks, SpecText


# With a `__dict__`, for what is computed once of it.
class Analysis(Struct, frozen=True, dict=True):
    """A spec in one version of its text and of those that it needs; `spec` is None if it cannot be read."""

    path: str
    texts: tuple[SpecText, ...]
    spec: Spec | None
    facts: Facts
    diagnostics: tuple[Diagnostic, ...]

    @property
    def text(self) -> SpecText | None:
        """The file's own text."""
        return next((text for text in self.texts if text.source.path == self.path), None)

    @cached_property
    def _home(self) -> dict[int, SpecText]:
        return {place: text for text in self.texts for place in text.offsets}

    def place(self, span: Span) -> tuple[SpecText, int, int] | None:
        """The text of a span, and its offsets there; None for a span of no file that was read."""
        text = self._home.get(id(span.source))
        if text is None:
            return None
        start = text.offsets[id(span.source)]
        return text, start + span.start, start + span.end

    def namespaces(self) -> Iterator[Spec]:
        """The spec, and what it imports and refines."""
        if self.spec is not None:
            yield from (self.spec, *self.spec.imports.values(), *self.spec.refined.values())


def analyse(path: str, drafts: Mapping[str, str], kept: KeptChunks) -> Analysis:
    """Check the spec at a path, with the texts of open editors (by path) in place of files."""
    report, facts, files = Report(), Facts(), Drafts(drafts, kept.chunks)
    return examine(path, report, files, expression_checker(facts, report), kept)


def examine(path: str, report: Report, files: Drafts, checker: Checker, kept: KeptChunks) -> Analysis:
    """As `analyse`, with a checker of the caller's."""
    spec = None
    try:
        spec = load(path, report, files=files)
        if spec is not None:
            check_loaded(spec, checker)
        errors = list(report.found)
    except SpecError as error:  # as many as are reported
        errors = list(error.diagnostics)
    kept.keep(files.texts)
    return Analysis(path, tuple(files.texts), spec, checker.facts, tuple(errors))
