"""What a suite found, for people and for programs: the verdict first, then what it rests on.

A divergence is shown as the spec's behaviour that leads to it, a lane for each element of the main
sort, then what was asked of the implementation, and every place where the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType

from specchk.conform.binding import Binding
from specchk.conform.replay import Divergence
from specchk.conform.suites import Result
from specchk.core.instantiate import Instance
from specchk.core.values import State
from specchk.core.verdict import Step, Trace
from specchk.core.view import Viewer
from specchk.ir.footprint import switched_off
from specchk.report.diff import Change, changes
from specchk.report.draw.picture import picture
from specchk.report.draw.text import text
from specchk.report.text import constants

WIDTH = 80
_WORDS = MappingProxyType({
    "initial": "the implementation starts in another state",
    "refused": "the implementation refused a step that the spec allows",
    "accepted": "the implementation took a step that the spec forbids",
    "state": "the implementation took the step, but to a state that the spec does not allow",
    "changed": "the implementation refused the step, as the spec does, but changed",
    "outside": "the implementation is in a state that the spec has no words for",
    "ambiguous": "the binding observes too little to go on",
    "restored": "the binding's snapshots are wrong",
    "raised": "the implementation failed with an exception",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class About:
    """What a suite was run on."""

    instance: Instance
    binding: Binding[object]

    @property
    def name(self) -> str:
        """The spec, its model and the binding."""
        program = self.instance.program
        return f"{program.spec}, model {program.model}, on {type(self.binding).__name__}"


def verdict(result: Result) -> str:
    """`diverges`, `vacuous`, `conforms`, or `conforms so far` where a budget ended the suite."""
    if result.divergence is not None:
        return "diverges"
    if result.vacuous:
        return "vacuous"
    return "conforms" if result.complete else "conforms so far"


def render(about: About, result: Result) -> str:
    """The whole report."""
    why = f": {_WORDS[result.divergence.kind]}" if result.divergence is not None else ""
    why = f": {result.vacuous}" if result.vacuous else why
    lines = [f"{verdict(result)}{why}: {about.name}"]
    lines += [part for line in _basis(about, result) for part in _wrapped(line)]
    if result.divergence is not None:
        lines += ["", *_divergence(about.instance, result.divergence)]
    return "\n".join(lines)


def _wrapped(line: str) -> list[str]:
    return wrap(line, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def _basis(about: About, result: Result) -> Iterator[str]:
    """The numbers, and what was not looked at."""
    program, tally = about.instance.program, result.tally
    nothing = sum(tally.impossible.values())
    yield f"{result.suite}: {result.states} states, {result.steps} steps taken, {result.seconds:.2f} s"
    yield f"probes: {result.probes} refused, {nothing} with nothing to ask the implementation with"
    yield f"constants: {constants(program) or '(none)'}"
    off = switched_off(program)
    never = [a.name for a in program.actions if a.name not in tally.taken and a.name not in off]
    left = [f"{name} ({count})" for name, count in tally.left.items() if count]
    for title, names in (
        ("never taken", never),
        ("never taken, because these constants switch them off", list(off)),
        ("successors that the implementation never chose", left),
        ("unobserved", [f"{name} ({reason})" for name, reason in about.binding.unobserved.items()]),
    ):
        if names:
            yield f"{title}: {', '.join(names)}"


def _divergence(instance: Instance, found: Divergence) -> Iterator[str]:
    """The lanes, then the step and the differences."""
    closest = _closest(instance, found)
    steps = found.trace.steps
    if found.step is not None and closest is not None and found.kind in ("state", "refused"):
        steps = (*steps, Step(found.step.action, found.step.args, closest))
    yield text(picture(Viewer(instance), Trace(found.trace.initial, steps), None, "as the spec has it"))
    yield ""
    yield f"here: {_WORDS[found.kind]}"
    if found.step is not None:
        way = f", {found.way}" if found.way else ""
        yield f"  step {len(found.trace.steps) + 1}: {found.step}{way}"
    if found.reason:
        yield f"  {found.reason}"
    for change in _differences(instance, found, closest):
        yield f"  {change.path}: the spec has {change.before}, the implementation {change.after}"


def _closest(instance: Instance, found: Divergence) -> State | None:
    """The allowed state with the fewest differences."""
    return min(found.expected, key=lambda state: len(_differences(instance, found, state)), default=None)


def _differences(instance: Instance, found: Divergence, expected: State | None) -> list[Change]:
    if expected is None or found.found is None:
        return []
    pairs = zip(expected, found.found, strict=True)
    whole = tuple(spec if seen is None else seen for spec, seen in pairs)
    return changes(instance.program, expected, whole)


def as_json(about: About, result: Result, exit_code: int) -> dict[str, object]:
    """The report as one JSON object."""
    program = about.instance.program
    return {
        "schema": "specchk.conform/1",
        "verdict": verdict(result).replace(" ", "_"),
        "spec": program.spec,
        "model": program.model,
        "binding": type(about.binding).__name__,
        "suite": result.suite,
        "states": result.states,
        "taken": result.tally.taken,
        "refused": result.tally.refused,
        "impossible": result.tally.impossible,
        "left": {name: count for name, count in result.tally.left.items() if count},
        "unobserved": dict(about.binding.unobserved),
        "vacuous": result.vacuous or None,
        "divergence": _json_divergence(about.instance, result.divergence),
        "seconds": round(result.seconds, 3),
        "exit_code": exit_code,
    }


def _json_divergence(instance: Instance, found: Divergence | None) -> dict[str, object] | None:
    if found is None:
        return None
    different = _differences(instance, found, _closest(instance, found))
    return {
        "kind": found.kind,
        "path": [str(step) for step in found.trace.steps],
        "step": None if found.step is None else str(found.step),
        "way": found.way or None,
        "reason": found.reason,
        "differences": [
            {"place": change.path, "spec": change.before, "implementation": change.after}
            for change in different
        ],
    }
