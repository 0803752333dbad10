"""The comparison of a gate with its lock, and the fingerprints of specs.

A number that is lower than the lock's, a suite or a control that was removed, another variable that is
not observed: each is a `Lowered`, and so is a spec that is not the lock's, since its numbers have another
meaning.  Another implementation is the purpose of the gate, and is only reported.

Not here: the file (`work.lock_file`), running the gate, printing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from specchk.conform.work.judges import changed_between
from specchk.conform.work.lock_file import ConditionCounts, GateFigures, Numbers
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax.canonical import canonical

DIGITS = 12
MOST_NAMES = 12  # of changed functions, in one line


class Lowered(Struct, frozen=True):
    """A figure in which a gate is below its lock; without `locked`, `found` says it all."""

    place: str
    locked: str
    found: str

    def __str__(self) -> str:
        if not self.locked:
            return f"{self.place}: {self.found}"
        return f"{self.place}: the lock has {self.locked}, this run {self.found}"


def lowered(lock: GateFigures, current: GateFigures) -> tuple[Lowered, ...]:
    """All figures in which a gate is below its lock."""
    decided = _fewer_decided(lock.conditions, current.conditions)
    other = (*_other_spec(lock, current), *_other_judges(lock, current))
    return (*other, *_fewer(lock, current), *_lower(lock, current), *decided)


def raised(lock: GateFigures, current: GateFigures) -> tuple[Lowered, ...]:
    """The figures that are above the lock's, and suites and controls that the lock does not have."""
    decided = _fewer_decided(current.conditions, lock.conditions)
    return (*_lower(current, lock), *_fewer_suites(current, lock), *decided)


def _other_spec(lock: GateFigures, current: GateFigures) -> Iterator[Lowered]:
    if lock.spec == current.spec:
        return
    names = sorted({*lock.actions, *current.actions})
    changed = [name for name in names if lock.actions.get(name) != current.actions.get(name)]
    what = f"action {', '.join(changed)}" if changed else "a declaration other than an action"
    yield Lowered("spec", lock.spec, f"{current.spec}; changed: {what}")


def _other_judges(lock: GateFigures, current: GateFigures) -> Iterator[Lowered]:
    changed = changed_between(lock.judges, current.judges)
    if changed:
        more = f" and {len(changed) - MOST_NAMES} more" if len(changed) > MOST_NAMES else ""
        yield Lowered("the binding changed", "", ", ".join(changed[:MOST_NAMES]) + more)


def _fewer(lock: GateFigures, current: GateFigures) -> Iterator[Lowered]:
    if lock.binding != current.binding:
        yield Lowered("binding", lock.binding, current.binding)
    yield from _fewer_suites(lock, current)
    # More unobserved variables are less that is compared; fewer are an improvement, and not reported.
    more = sorted(set(current.unobserved) - set(lock.unobserved))
    if more:
        yield Lowered("unobserved", ", ".join(lock.unobserved) or "none", f"also {', '.join(more)}")
    gone = sorted(set(lock.controls) - set(current.controls))
    if gone:
        yield Lowered("controls", ", ".join(lock.controls), f"no {', '.join(gone)}")


def _fewer_suites(lock: GateFigures, current: GateFigures) -> Iterator[Lowered]:
    for name in lock.suites:
        if name not in current.suites:
            yield Lowered(f'suite "{name}"', f"{lock.suites[name].states} states", "no such suite")


def _lower(lock: GateFigures, current: GateFigures) -> Iterator[Lowered]:
    for name, numbers in lock.suites.items():
        present = current.suites.get(name)
        for key in _KEYS if present is not None else ():
            if getattr(present, key) < getattr(numbers, key):
                yield Lowered(f"{name}: {key}", f"{getattr(numbers, key)}", f"{getattr(present, key)}")
    for kind, kills in lock.mutants.items():
        score = current.mutants.get(kind)
        # Shares compared without division: more mutants at the same share are no loss.
        if score is not None and score.killed * kills.all < kills.killed * score.all:
            yield Lowered(f"mutants: {kind}", str(kills), str(score))


def _fewer_decided(lock: ConditionCounts | None, current: ConditionCounts | None) -> Iterator[Lowered]:
    """A line if more conditions are undecided or fewer decide, or if their number is not known."""
    if lock is not None and (current is None or current.is_below(lock)):
        yield Lowered(
            "conditions", str(lock), "none of this spec and models" if current is None else str(current)
        )


_KEYS = tuple(key for key in Numbers.__struct_fields__ if key != "suite")


def of_spec(checked: CheckedSpec) -> tuple[str, dict[str, str]]:
    """A short name of everything on which steps depend, and one of each action; layout does not count."""
    spec = checked.spec
    # Only what steps depend on: another invariant or model changes none of the lock's numbers.
    constraints = {name: decl for name, decl in spec.properties.items() if decl.kind == "constraint"}
    imported = {alias: _by_name(**_library(library)) for alias, library in spec.imports.items()}
    declared = _by_name(
        **_library(spec), variables=spec.variables, actions=spec.actions, helpers=spec.helpers,
        constraints=constraints, imported=imported,
    )  # fmt: skip
    used = declared.get("helpers", {})
    actions = {name: short_name((decl, used)) for name, decl in sorted(spec.actions.items())}
    return short_name((declared, spec.inits)), actions


def _library(spec: Spec) -> dict[str, dict[str, Any]]:
    """The declarations that a spec contributes when it is imported."""
    return {"sorts": spec.sorts, "consts": spec.consts, "types": spec.types, "defs": spec.defs}


def _by_name(**tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    # In order of names, so that moving a declaration changes nothing; only where there are any, so that a
    # kind of declarations that is added to the language changes nothing, either.
    return {kind: dict(sorted(table.items())) for kind, table in tables.items() if table}


def short_name(what: object) -> str:
    """A short name of trees, independent of layout, comments and the place of the file."""
    return hashlib.sha256(canonical(what).encode()).hexdigest()[:DIGITS]


def digest_of(names: Iterable[str]) -> str:
    """A short name of the names of mutants, independent of their order."""
    return hashlib.sha256(repr(sorted(names)).encode()).hexdigest()[:DIGITS]
