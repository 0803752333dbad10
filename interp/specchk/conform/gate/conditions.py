"""The conditions of a spec that decide in no model of a gate, as a section of its lock.

A suite reaches only states of its model.  So where a condition never decides, code without
it takes the same steps in every suite, and the gate cannot detect this.

Invariant: for another spec or other models nothing of a lock counts.  A search that did not end shows
nothing.
Not here: the definition of a condition (`explore.conditions`), searching for states in which it decides, the
file (`work.lock_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import chain

from msgspec.structs import replace

from specchk.conform.gate.choices import of_model
from specchk.conform.gate.lock import of_spec, short_name
from specchk.conform.gate.tiers import Part
from specchk.conform.work.lock_file import GateConditions, UndecidedCondition
from specchk.explore.conditions import Condition, Decided
from specchk.explore.conditions import conditions as conditions_of
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec

# Among the conditions with these keys those that decide in no state of a program, whatever its offsets are.
Impossible = Callable[[Program, Collection[tuple[str, str, str]]], Collection[Condition]]


def is_current(conditions: GateConditions, checked: CheckedSpec, parts: Sequence[Part]) -> bool:
    """Whether conditions were determined for this spec and these models."""
    return conditions.spec == _of_conditions(checked) and conditions.models == _models(parts)


class SearchCut(Exception):
    """A search that did not end."""


def determined(
    checked: CheckedSpec, parts: Sequence[Part], decide: Callable[[Program], Decided],
    known: GateConditions | None, impossible: Impossible,
) -> GateConditions:  # fmt: skip
    """Search each model once; `known` has reasons to keep.  Raises `SearchCut` if a budget ends a search.

    Of those that are left `impossible` shows which decide for no offset, model by model.
    """
    # Suites of one model reach the same states, whatever their kind, so it is searched once.
    programs: dict[str, tuple[str, Program]] = {}
    for part in parts:
        programs.setdefault(of_model(part.instance.program), (part.label, part.instance.program))
    every: dict[UndecidedCondition, bool] = {}
    for _, program in programs.values():
        decided = decide(program)
        if not decided.is_complete:
            raise SearchCut(f"{program.model}: {decided.ended} ({decided.states} states)")
        for conditions, decides in ((decided.deciding, True), (decided.never + decided.unknown, False)):
            # By text, not by place: a spec that is only moved or formatted keeps its reasons.
            for condition in conditions:
                named = _named(checked, condition)
                every[named] = every.get(named, False) or decides
    reasons = {part: part.reason for part in known.undecided} if known else {}
    left = [
        replace(part, reason=reasons.get(part, "")) for part, decides in every.items() if not decides
    ]  # fmt: skip
    left.sort(key=lambda part: (part.owner, part.within, part.text, part.effect))
    open_ = set(left)
    for label, program in programs.values():
        shown = shown_in(checked, program, open_, impossible)
        left = [_with_model(part, label, shown[part]) if part in shown else part for part in left]
    return GateConditions(_of_conditions(checked), len(every), _models(parts), tuple(left))


def shown_in(
    checked: CheckedSpec, program: Program, open_: set[UndecidedCondition], impossible: Impossible
) -> dict[UndecidedCondition, bool]:
    """The conditions that occur in a program, and whether each is impossible in all of its places."""
    named = {condition: _named(checked, condition) for condition in conditions_of(program)}
    asked = {condition: name for condition, name in named.items() if name in open_}
    shown = impossible(program, {condition.key for condition in asked}) if asked else ()
    # Two places with one text are one condition in the file.
    missing = {name for condition, name in asked.items() if condition not in shown}
    return {name: name not in missing for name in asked.values()}


def _with_model(condition: UndecidedCondition, label: str, is_shown: bool) -> UndecidedCondition:
    if is_shown:
        return replace(condition, unbounded=condition.unbounded + 1)
    return replace(condition, bounded=tuple(sorted((*condition.bounded, label))))


def _named(checked: CheckedSpec, condition: Condition) -> UndecidedCondition:
    span, spec = condition.span, checked.spec
    declarations = chain(
        spec.defs.items(), spec.actions.items(), spec.helpers.items(), spec.properties.items()
    )
    around = (
        name
        for name, one in declarations
        if one.span.source is span.source and one.span.start <= span.start and span.end <= one.span.end
    )
    within = next(around, condition.owner)
    return UndecidedCondition(condition.owner, condition.effect, within, " ".join(span.text.split()), "")


def _models(parts: Sequence[Part]) -> dict[str, str]:
    return {part.label: of_model(part.instance.program) for part in parts}


def _of_conditions(checked: CheckedSpec) -> str:
    return short_name((of_spec(checked)[0], dict(sorted(checked.spec.properties.items()))))
