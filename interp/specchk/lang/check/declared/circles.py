"""Cycles: definitions that use themselves without a measure, and actions that are enabled if they are not.

They have no meaning: an expression in such a circle would never be evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from specchk.lang.check.levels import children
from specchk.lang.check.spec import Facts, Ref, Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report

Use = tuple[tree.Node, Ref]


def circles(spec: Spec, facts: Facts, report: Report) -> None:
    """Report each cycle of actions, definitions and helper actions, at the use that closes it."""
    for use, circle in _circles(spec.actions, _uses(spec, facts)):
        report.add(
            "S206", use.span, f"whether an action is enabled may not depend on itself: {' -> '.join(circle)}",
            "name the conditions that both need with a `def`",
        )  # fmt: skip


def recursions(spec: Spec, facts: Facts, report: Report) -> None:
    """Report each cycle of definitions without a measure, at the use that closes it."""
    uses = _uses(spec, facts)

    def unmeasured(name: str) -> list[Use]:
        return [
            (use, ref) for use, ref in uses(name) if ref.kind == "def" and not spec.defs[ref.name].measure
        ]

    for use, circle in _circles([d.name for d in spec.defs.values() if not d.measure], unmeasured):
        report.add(
            "S206", use.span, f"a recursive definition needs a measure: {' -> '.join(circle)}",
            "add what decreases with each call, `def f(s: T): U decreases len(s) = e`; or iterate with a "
            "quantifier, a comprehension or fold",
        )  # fmt: skip


def _uses(spec: Spec, facts: Facts) -> Callable[[str], list[Use]]:
    """The definitions and helper actions that a declaration uses, and (by `enabled`) actions."""
    every = {**spec.defs, **spec.helpers, **spec.actions}

    def used(node: tree.Node) -> Iterator[Use]:
        if isinstance(node, decls.Assign):
            return  # the value that a step would assign is not evaluated
        if isinstance(node, decls.CallHelper) and node.call.callee.text in spec.helpers:
            yield node, Ref("helper", node.call.callee.text, spec)
        ref = facts.refs.get(id(node))
        if ref is not None and ref.home is spec and ref.kind in ("def", "action"):
            yield node, ref
        for part in children(node):
            yield from used(part)

    return cache(lambda name: list(used(every[name])))


def _circles(names: Iterable[str], used: Callable[[str], list[Use]]) -> Iterator[tuple[tree.Node, list[str]]]:
    """The cycles through the names, with the use that closes each; one of several through the same name."""
    done: set[str] = set()
    for name in names:
        found = _way_back(name, used) if name not in done else None
        if found is not None:
            use, way = found
            done |= {*way}
            yield use, [*way, name]


def _way_back(name: str, used: Callable[[str], list[Use]]) -> tuple[tree.Node, list[str]] | None:
    """A path from a name to itself, and the use at its end."""
    seen = {name}
    # With a stack of our own: a chain of definitions may be longer than Python's.
    way = [(name, iter(used(name)))]
    while way:
        step = next(way[-1][1], None)
        if step is None:
            way.pop()
            continue
        use, ref = step
        if ref.name == name:
            return use, [passed for passed, _ in way]
        if ref.name not in seen:
            seen.add(ref.name)
            way.append((ref.name, iter(used(ref.name))))
    return None
