"""Mutants of a spec: its text without one part of a guard, or without one assignment.

Harsh ones have the opposite of a guard in its place, or lack all guards of an action: they are for properties
that nothing else violates.

A text and not a program, so that a mutant is checked, typed and bounded as any spec is.

Not here: mutants of an implementation (`conform.mutation`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Span


class SpecMutant(Struct, frozen=True):
    """A change of a spec: in `owner`, an action, texts are replaced by others."""

    owner: str
    kind: str  # `guard`, `assignment`, or `harsh`
    changes: tuple[tuple[Span, str], ...]

    @property
    def span(self) -> Span:
        """The first place that is changed."""
        return self.changes[0][0]

    @property
    def text(self) -> str:
        """The changed text of the spec's file."""
        text = self.span.source.text
        for span, by in sorted(self.changes, key=lambda change: -change[0].start):
            text = text[: span.start] + by + text[span.end :]
        return text


def mutants(spec: Spec) -> Iterator[SpecMutant]:
    """The mutants of the actions of the spec's own file, in the order of the text."""
    for owner, body in _bodies(spec):
        for stmt in _statements(body):
            if stmt.span.source is not spec.source:
                continue
            match stmt:
                case decls.Require(condition=condition):
                    for part in _conjuncts(condition):
                        yield SpecMutant(owner, "guard", ((part.span, "true"),))
                case decls.Assign() | decls.AssignIn():
                    yield SpecMutant(owner, "assignment", ((stmt.span, "skip"),))


def harsh_mutants(spec: Spec) -> Iterator[SpecMutant]:
    """The harsh mutants, in the order of the text."""
    for owner, body in _bodies(spec):
        guards = [
            stmt.condition.span
            for stmt in _statements(body)
            if isinstance(stmt, decls.Require) and stmt.span.source is spec.source
        ]
        for span in guards:
            yield SpecMutant(owner, "harsh", ((span, f"not ({span.text})"),))
        if guards:
            yield SpecMutant(owner, "harsh", tuple((span, "true") for span in guards))


def _bodies(spec: Spec) -> list[tuple[str, tuple[decls.Stmt, ...]]]:
    actions = [(action.name, action.body) for action in spec.actions.values()]
    return actions + [(helper.name, helper.body) for helper in spec.helpers.values()]


def _conjuncts(condition: tree.Expr) -> Iterator[tree.Expr]:
    if isinstance(condition, tree.Binary) and condition.op == "and":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif not isinstance(condition, tree.BoolLiteral):
        yield condition


def _statements(body: tuple[decls.Stmt, ...]) -> Iterator[decls.Stmt]:
    for stmt in body:
        yield stmt
        match stmt:
            case decls.Any(body=inner):
                yield from _statements(inner)
            case decls.Either(branches=branches):
                for branch in branches:
                    yield from _statements(branch)
            case decls.When(then=then, orelse=orelse):
                yield from _statements(then)
                yield from _statements(orelse)
            case _:
                pass
