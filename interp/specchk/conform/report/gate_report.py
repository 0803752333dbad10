"""The results of a gate's controls and lock, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from specchk.conform.gate.gate import Held
from specchk.conform.gate.lock import Lock, Lowered
from specchk.conform.gate.since_run import Since


def render_since(revision: str, ran: Since, audited: bool, wrongly: Sequence[str]) -> list[str]:
    """The cases that were run, the reason, and the errors that an audit reports."""
    plan = ran.plan
    what = "everything" if plan.actions is None else ", ".join(sorted(plan.actions)) or "no action"
    lines = [f"since {revision}: {ran.ran} of {ran.all} cases, affected: {what} ({plan.reason})"]
    green = not any(result.divergence for result in ran.results)
    if audited and plan.actions is not None and green:
        left = ran.all - ran.ran
        said = "none runs changed code, none diverges" if not wrongly else "WRONGLY OMITTED:"
        lines.append(f"audit: {left} cases omitted; {said}")
    return [*lines, *(f"  {line}" for line in wrongly)]


def since_json(revision: str, ran: Since, wrongly: Sequence[str]) -> dict[str, object]:
    """The same as a member of the report's JSON object."""
    plan = ran.plan
    return {
        "since": {
            "revision": revision,
            "actions": None if plan.actions is None else sorted(plan.actions),
            "reason": plan.reason,
            "changed": [f"{function} of {file}" for file, function in sorted(plan.changed)],
            "cases": ran.ran,
            "of": ran.all,
            "left_out_wrongly": list(wrongly),
        }
    }


def render_held(held: Held, path: Path) -> Iterator[str]:
    """The lines below the suites' report; `path` is that of the lock."""
    if held.tried or held.vacuous:
        caught = sum(bool(trial.divergence) for trial in held.tried)
        yield f"controls: {caught} of {len(held.tried)} planted errors detected"
    for trial in held.tried:
        what = "spec" if trial.kind == "spec" else "code"
        yield f"  {what} `{trial.name}`: {trial.divergence or 'NOT DETECTED'}"
    if held.vacuous:
        yield f"vacuous: {held.vacuous}"
    if held.written:
        yield f"lock: {path} written; review it with the change that it belongs to"
        return
    if held.lock is None:
        return
    if held.below:
        yield f"below the lock {path}:"
        yield from (f"  {figure}" for figure in held.below)
        yield "  if this is intended (or the spec has changed): run --update-lock and have the lock reviewed"
    else:
        yield f"lock: {path} holds, {len(held.lock.suites)} suites"
    yield from _scores(held.lock)
    if held.above:
        yield "above the lock (--update-lock records it):"
        for figure in held.above:
            yield f"  {figure.place}: {figure.locked}, the lock has {figure.found}"
    if held.lock.implementation != held.found.implementation:
        was, now = held.lock.implementation, held.found.implementation
        yield f"implementation changed since the lock, {was} to {now}: this run checked the current one"


def _scores(lock: Lock) -> Iterator[str]:
    """The scores in a lock, which are those of the last recorded campaigns."""
    for kind, score in sorted(lock.mutants.items()):
        yield f"mutants recorded in the lock: {score} {kind} killed"
    for kind, layers in sorted(lock.layers.items()):
        yield f"{kind} mutants by layer, each as if it were the only one, {layers}:"
        yield from (f"  {layer}: {layers.of(layer)}" for layer in layers.killed)


def held_json(held: Held) -> dict[str, object]:
    """The same as members of the report's JSON object."""
    return {
        "controls": [{"name": c.name, "kind": c.kind, "found": c.divergence or None} for c in held.tried],
        "controls_vacuous": held.vacuous or None,
        "lock": None if held.lock is None else {
            "below": [_lowered(figure) for figure in held.below],
            "above": [_lowered(figure) for figure in held.above],
            "written": held.written,
            "implementation_changed": held.lock.implementation != held.found.implementation,
        },
        "implementation": held.found.implementation,
        "spec_fingerprint": held.found.spec,
    }  # fmt: skip


def _lowered(one: Lowered) -> dict[str, str]:
    return {"place": one.place, "lock": one.locked, "found": one.found}
