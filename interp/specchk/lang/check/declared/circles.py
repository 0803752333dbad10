"""Circles: actions that are enabled, by `enabled`, only if they are or are not.  They have no meaning."""

from __future__ import annotations

from collections.abc import Iterator

from specchk.lang.check.levels import children
from specchk.lang.check.spec import Facts, Ref, Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report


def circles(spec: Spec, facts: Facts, report: Report) -> None:
    """Report each circle of actions, definitions and helper actions, at the use that closes it."""
    done: set[str] = set()
    for action in spec.actions.values():
        # With a stack of our own: a chain of definitions may be longer than Python's.
        way = [(action.name, iter(_used(action, spec, facts)))] if action.name not in done else []
        while way:
            step = next(way[-1][1], None)
            if step is None:
                done.add(way.pop()[0])
                continue
            use, ref = step
            names = [name for name, _ in way]
            if ref.name in names:
                _report(use, [*names[names.index(ref.name) :], ref.name], report)
            elif ref.name not in done:
                way.append((ref.name, iter(_used(_declaration(ref, spec), spec, facts))))


def _report(use: tree.Node, circle: list[str], report: Report) -> None:
    report.add(
        "S206", use.span, f"whether an action is enabled may not depend on itself: {' -> '.join(circle)}",
        "name the conditions that both need with a `def`",
    )  # fmt: skip


def _declaration(ref: Ref, spec: Spec) -> tree.Node:
    if ref.kind == "def":
        return spec.defs[ref.name]
    return spec.helpers[ref.name] if ref.kind == "helper" else spec.actions[ref.name]


def _used(node: tree.Node, spec: Spec, facts: Facts) -> Iterator[tuple[tree.Node, Ref]]:
    """The definitions, helper actions and, by `enabled`, actions of a spec that a declaration uses."""
    if isinstance(node, decls.Assign):
        return  # what a step would assign is not evaluated
    if isinstance(node, decls.CallHelper) and node.call.callee.text in spec.helpers:
        yield node, Ref("helper", node.call.callee.text, spec)
    ref = facts.refs.get(id(node))
    if ref is not None and ref.home is spec and ref.kind in ("def", "action"):
        yield node, ref
    for part in children(node):
        yield from _used(part, spec, facts)
