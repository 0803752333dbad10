"""Runs a binding's controls: the gate's own suites, which must find a divergence.

A gate that is broken finds nothing wrong, and looks like one that is green.  So every gate run takes
a spec that is wrong and an implementation that is wrong through the same suites and the same
comparison.  Without one of each, or with one that finds nothing, the run is vacuous.

Not here: the definition of a control (`known_bad`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk import kept
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.failures import LOST
from specchk.conform.contract.known_bad import (
    BadCode,
    BadFile,
    BadSpec,
    BadStart,
    Control,
    NoSuchText,
    planted,
)
from specchk.conform.covers.cache import cached_suite, suite_key
from specchk.conform.covers.cases import Suite, as_json, from_json
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.spec_side import SpecSide
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec

KINDS = (((BadSpec,), "an error in the spec"),
         ((BadCode, BadFile, BadStart), "an error in the implementation"))  # fmt: skip
Bounds = tuple[tuple[str, str], ...]
Instances = Mapping[tuple[str, Bounds], Instance]  # by model and bounds
Sides = dict[int, SpecSide]  # by the program's identity


class Tried(Struct, frozen=True):
    """A control that was run: `divergence` is the one found, in one line; empty if there was none.

    `outdated` is why a control could not be run, because the implementation has changed where it was planted.
    """

    name: str
    kind: str  # spec, code
    divergence: str
    outdated: str = ""


class Trial(Struct, frozen=True):
    """A control to be run: its number in the binding's `controls`, its program, and the loader of its cases.

    `key` is a name for all that the cases depend on; without one it is not kept which of them caught it.
    """

    number: int
    program: Program
    load: Callable[[], Suite]
    key: str = ""


def try_controls(
    cls: type[Binding[Any]], checked: CheckedSpec, max_states: int | None,
    instances: Instances = MappingProxyType({}),
) -> tuple[Tried, ...]:  # fmt: skip
    """Run all of a binding's controls; `instances` are those of existing models."""
    trial_of = trials(checked, max_states, instances)
    sides: Sides = {}
    return tuple(try_control(cls, trial_of(cls, number), sides) for number in range(len(cls.controls)))


def trials(
    checked: CheckedSpec, max_states: int | None, instances: Instances = MappingProxyType({})
) -> Callable[[type[Binding[Any]], int], Trial]:
    """A function that prepares the control of a number: most use the same models, which it builds once."""

    @cache
    def instance(model: str, bounds: Bounds) -> Instance:
        return instances.get((model, bounds)) or instantiate(checked, model, dict(bounds))

    @cache
    def suite(model: str, bounds: Bounds) -> Suite:
        return cached_suite(instance(model, bounds), "classes", bounds, max_states)

    @cache
    def key(model: str, bounds: Bounds) -> str:
        return suite_key(instance(model, bounds), "classes", bounds, (max_states,))

    def trial(cls: type[Binding[Any]], number: int) -> Trial:
        control = cls.controls[number]
        about = control.model, tuple(control.bounds.items())
        return Trial(number, instance(*about).program, partial(suite, *about), key(*about))

    return trial


def try_control(cls: type[Binding[Any]], trial: Trial, sides: Sides | None = None) -> Tried:
    """Run one control up to its first divergence.

    `sides` are those of the earlier controls, and get that of this one: a spec allows the same for every
    implementation.
    """
    control = cls.controls[trial.number]
    kind = "spec" if isinstance(control, BadSpec) else "code"
    try:
        divergence = _found(cls, control, trial, sides)
    except NoSuchText as error:
        # The others still show that the gate can fail: who moves a function is not stopped by this one.
        return Tried(control.name, kind, "", str(error))
    return Tried(control.name, kind, "" if divergence is None else _line_of(divergence))


def _found(cls: type[Binding[Any]], control: Control, trial: Trial, sides: Sides | None) -> Divergence | None:
    with ExitStack() as stack:
        match control:
            case BadCode():
                stack.enter_context(planted(control))
                binding = cls(trial.program)
            case BadFile() | BadStart():
                binding = cls.with_mistake(trial.program, control)
            case BadSpec():
                # A wrong spec may need a binding that leaves out what only the right one checks.
                binding = cls.against(trial.program)
        replayer = Replayer(binding, None if sides is None else sides.get(id(trial.program)))
        if sides is not None:
            sides[id(trial.program)] = replayer.spec
        divergence = _divergence(replayer, trial, (cls.__name__, control.name))
    # A mistake that is not a valid program shows nothing about the comparison.
    is_at_start = divergence is not None and divergence.step is None and not divergence.trace.steps
    if divergence is not None and is_at_start and divergence.kind in LOST:
        raise NoSuchText(f"with `{control.name}` the implementation does not start: {divergence.reason}")
    return divergence


def _divergence(replayer: Replayer[Any], trial: Trial, about: object) -> Divergence | None:
    """The first divergence of a control's cases; None if there is none.

    A control is caught by one case, and most often by the same as the last time, which is kept alone and
    tried first: to load the others and to run those before it would be in vain in each run of the gate.
    """
    path = kept.place("controls", kept.name_of(about, trial.key)) if trial.key else None
    last = kept.read(path)
    if last is not None:
        divergence = run_suite(replayer, from_json(last.decode())).divergence
        if divergence is not None:
            return divergence
    suite = trial.load()
    result = run_suite(replayer, suite)
    case = None if result.failed is None else suite.case(result.failed)
    if case is not None:
        alone = replace(suite, cases=(case,), classes=(), probe_classes=(), probes=(), never=())
        kept.write(path, as_json(alone).encode())
    return result.divergence


def _line_of(divergence: Divergence) -> str:
    """The divergence in one line: `accepted, step 3: decide_commit()`."""
    if divergence.step is None:
        return divergence.kind
    return f"{divergence.kind}, step {len(divergence.trace.steps) + 1}: {divergence.step}"


def why_vacuous(cls: type[Binding[Any]], tried: Sequence[Tried]) -> str:
    """The reason why the controls do not show that the gate could have failed; empty if they do."""
    # One of each kind: a wrong spec shows that steps are compared, wrong code that the code is what runs.
    missing = [what for kind, what in KINDS if not any(isinstance(control, kind) for control in cls.controls)]
    if missing:
        return f"the binding's `controls` lack {' and '.join(missing)}"
    silent = [f"`{trial.name}`" for trial in tried if not trial.divergence and not trial.outdated]
    if silent:
        return f"no divergence was found with the control {' and '.join(silent)}"
    for kind in ("spec", "code"):
        own = [trial for trial in tried if trial.kind == kind]
        if all(trial.outdated for trial in own):
            return f"all {len(own)} controls in the {kind} are outdated: `{own[0].name}`: {own[0].outdated}"
    return ""
