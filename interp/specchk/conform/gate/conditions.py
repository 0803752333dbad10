"""The conditions of a spec that decide in no model of a gate, as a TOML file beside the binding.

    spec            a fingerprint of the conditions' sources: actions, definitions, invariants
    [models]        for each model of the gate, a fingerprint of its constants
    all             conditions that the constants of some model leave open
    [[undecided]]   for a condition that decides in none of them: the action or property (owner), its effect,
                    the containing declaration, its text
                    proved    the variables that keep one value, so that it is impossible (`explore.fixed`)
                    unbounded the number of models that have it and in which it decides for no length of the
                              logs, or of anything else with a horizon
                    bounded   the other models that have it: only searched up to their bounds
                    reason    a person's words for that, kept when the rest is rewritten

A suite reaches only states of its model.  So where a condition never decides, code without
it takes the same steps in every suite, and the gate cannot detect this.

Invariants: `read` is the inverse of `write`, and refuses other content (`seal`); for another spec
or other models nothing of a file counts.  A search that did not end shows nothing.
Not here: the definition of a condition (`explore.conditions`), searching for states in which it decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from specchk.conform.gate.choices import of_model
from specchk.conform.gate.lock import ConditionCounts, of_spec, short_name
from specchk.conform.gate.tiers import Part
from specchk.conform.work import seal
from specchk.explore.conditions import Condition, Decided
from specchk.explore.conditions import conditions as conditions_of
from specchk.explore.fixed import fixed, is_never_true, read_of
from specchk.identity import Identified
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec

NAME = "conditions.lock"
VERSION = 3
MEND = "restore the reviewed file, or delete it and write a new one with --update-conditions"
_REASON = "reason = "  # begins the lines that people fill in
_EVIDENCE = ("proved", "unbounded", "bounded")  # left out where it is empty
HEAD = """\
# The conditions of the spec that never decide in a model of the gate: code that lacks one of them takes the
# same steps in every suite.  Written by `specchk conform BINDING --update-conditions`.  `unbounded`: number
# of models in which it is impossible for all offsets; `bounded`: the models where this is not shown; `specchk
# conditions BINDING --prove` repeats these proofs.  `reason` is for people to fill in: why no model can have
# such a state.
"""

# Among the conditions with these keys those that decide in no state of a program, whatever its offsets are.
Impossible = Callable[[Program, Collection[tuple[str, str, str]]], Collection[Condition]]


class UndecidedCondition(Identified, frozen=True):
    """A condition that decides in no model, identified by texts only, since line numbers change.

    `proved` is why it is impossible for all sizes, `unbounded` in how many models it is for all offsets;
    `bounded` are the other models.
    """

    incidental: ClassVar = frozenset({"reason", "unbounded", "bounded"})
    owner: str
    effect: str
    within: str
    text: str
    reason: str = ""
    proved: str = ""
    unbounded: int = 0
    bounded: tuple[str, ...] = ()

    @property
    def is_impossible(self) -> bool:
        """Whether the condition is proved impossible: for all sizes, or in each model for all offsets."""
        return bool(self.proved) or (self.unbounded > 0 and not self.bounded)


class GateConditions(Struct, frozen=True):
    """The contents of the file."""

    spec: str
    models: Mapping[str, str]
    all: int
    undecided: tuple[UndecidedCondition, ...]

    @property
    def counts(self) -> ConditionCounts:
        """The figures for a lock."""
        possible = [condition for condition in self.undecided if not condition.is_impossible]
        return ConditionCounts(self.all, len(self.undecided), len(possible))

    def is_of(self, checked: CheckedSpec, parts: Sequence[Part]) -> bool:
        """Whether the file was written for this spec and these models."""
        return self.spec == _of_conditions(checked) and self.models == _models(parts)


class BadConditions(Exception):
    """A file without valid conditions, or a search that did not end."""


def determined(
    checked: CheckedSpec, parts: Sequence[Part], decide: Callable[[Program], Decided],
    known: GateConditions | None, impossible: Impossible,
) -> GateConditions:  # fmt: skip
    """Search each model once; `known` has reasons to keep.  Raises `BadConditions` if a budget ends a search.

    Of those that are left `impossible` shows which decide for no offset, model by model.
    """
    # Suites of one model reach the same states, whatever their kind, so it is searched once.
    programs: dict[str, tuple[str, Program]] = {}
    for part in parts:
        programs.setdefault(of_model(part.instance.program), (part.label, part.instance.program))
    every: dict[UndecidedCondition, bool] = {}
    proofs = proved(checked, [program for _, program in programs.values()])
    for _, program in programs.values():
        decided = decide(program)
        if not decided.is_complete:
            raise BadConditions(f"{program.model}: {decided.ended} ({decided.states} states)")
        for conditions, decides in ((decided.deciding, True), (decided.never + decided.unknown, False)):
            # By text, not by place: a spec that is only moved or formatted keeps its reasons.
            for condition in conditions:
                named = _named(checked, condition)
                every[named] = every.get(named, False) or decides
    wrong = [named for named, decides in every.items() if decides and named in proofs]
    assert not wrong, f"decides, and was shown not to: {wrong}"
    reasons = {replace(part, proved=""): part.reason for part in known.undecided} if known else {}
    left = [
        replace(part, proved=proofs.get(part, ""), reason=reasons.get(part, ""))
        for part, decides in every.items() if not decides
    ]  # fmt: skip
    left.sort(key=lambda part: (part.owner, part.within, part.text, part.effect))
    open_ = {part for part in left if not part.proved}
    for label, program in programs.values():
        shown = shown_in(checked, program, open_, impossible)
        left = [_with_model(part, label, shown[part]) if part in shown else part for part in left]
    return GateConditions(_of_conditions(checked), _models(parts), len(every), tuple(left))


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


def proved(checked: CheckedSpec, programs: Iterable[Program]) -> dict[UndecidedCondition, str]:
    """The conditions that are impossible in all programs that contain them, each with the evidence.

    By induction over the steps and not by a search, so that no size or horizon of a model matters.
    """
    shown: dict[UndecidedCondition, set[str]] = {}
    for program in programs:
        supposed = fixed(program)
        for condition, witness in conditions_of(program).items():
            names = [program.variables[slot].name for slot in read_of(witness.body, supposed)]
            is_impossible = is_never_true(witness.body, supposed)
            because = f"one value in every state: {', '.join(names)}" if names else "no variable decides it"
            shown.setdefault(_named(checked, condition), set()).add(because if is_impossible else "")
    # Of several models the shortest: a model may fix more variables than the others, and than it takes.
    return {named: min(sorted(every), key=len) for named, every in shown.items() if "" not in every}


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
    return UndecidedCondition(condition.owner, condition.effect, within, " ".join(span.text.split()))


def _models(parts: Sequence[Part]) -> dict[str, str]:
    return {part.label: of_model(part.instance.program) for part in parts}


def _of_conditions(checked: CheckedSpec) -> str:
    return short_name((of_spec(checked)[0], dict(sorted(checked.spec.properties.items()))))


def write(path: Path, conditions: GateConditions) -> None:
    """Write a file."""
    seal.write(path, _lines(conditions), _REASON)


def _lines(conditions: GateConditions) -> Iterator[str]:
    yield from HEAD.split("\n")
    yield from seal.entries({"version": VERSION, "spec": conditions.spec, "all": conditions.all})
    yield from seal.table("models", seal.named(sorted(conditions.models.items())))
    for condition in conditions.undecided:
        values = asdict(condition)
        reason = values.pop("reason")
        shown = {key: value for key, value in values.items() if value or key not in _EVIDENCE}
        yield from seal.table("[undecided]", {**shown, "reason": reason})


def read(path: Path) -> GateConditions | None:
    """The contents of a file, None if there is no file; raises `BadConditions`."""
    return seal.load(path, _conditions, version=VERSION, people=_REASON, mend=MEND, error=BadConditions)


def _conditions(table: Mapping[str, Any]) -> GateConditions:
    undecided = tuple(
        UndecidedCondition(**{**condition, "bounded": tuple(condition.get("bounded", ()))})
        for condition in table.get("undecided", ())
    )
    spec = table["spec"] if table["version"] == VERSION else seal.OLDER
    return GateConditions(spec, dict(table["models"]), table["all"], undecided)
