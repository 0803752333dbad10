"""The results of a gate as text and as JSON: controls, lock, and the files of choices and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct, to_builtins

from specchk.conform.covers.cases import EffectClass
from specchk.conform.gate.gate import BoundSpec, Held
from specchk.conform.gate.lock import Lowered, lowered, of_spec
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.lock_file import Choices, GateConditions, GateFigures, Listed
from specchk.conform.work.sources import files_of, fingerprint


def render_held(held: Held, path: Path) -> Iterator[str]:
    """The lines below the suites' report; `path` is that of the lock."""
    if held.tried or held.vacuous:
        caught = sum(bool(trial.divergence) for trial in held.tried)
        yield f"controls: {caught} of {len(held.tried)} planted errors detected"
    for trial in held.tried:
        what = "spec" if trial.kind == "spec" else "code"
        outdated = f"OUTDATED, so not tried; rewrite it: {trial.outdated}" if trial.outdated else ""
        yield f"  {what} `{trial.name}`: {trial.divergence or outdated or 'NOT DETECTED'}"
    if held.vacuous:
        yield f"vacuous: {held.vacuous}"
    if held.written:
        yield from _proof(held)
        yield f"lock: {path} written; review it with the change that it belongs to"
        return
    if held.lock is None:
        return
    if held.below:
        yield f"below the lock {path}:"
        yield from (f"  {figure}" for figure in held.below)
        yield "  if this is intended (or the spec has changed): run --update-lock and have the lock reviewed"
        if held.lock.judges != held.found.judges:
            yield "  a changed binding must notice the planted flaws again: --update-lock tries them first"
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


def _proof(held: Held) -> Iterator[str]:
    """What this lock gives up against the one before: lower figures, and flaws no longer noticed."""
    if held.before is None:
        return
    yield from (f"accepted: {figure}" for figure in lowered(held.before, held.found))
    if held.noticed is None:
        return
    if held.noticed.tried:
        noticed = held.noticed.tried - len(held.noticed.unnoticed)
        yield f"the changed binding notices {noticed} of {held.noticed.tried} planted flaws"
    for flaw in sorted({*held.noticed.unnoticed} - {*held.before.unnoticed}):
        yield f"NO LONGER NOTICED: {flaw}; see `specchk mutate BINDING --show {flaw}`"


def _scores(lock: GateFigures) -> Iterator[str]:
    """The scores in a lock, which are those of the last recorded campaigns."""
    for kind, score in sorted(lock.mutants.items()):
        yield f"mutants recorded in the lock: {score} {kind} killed"


def held_json(held: Held) -> dict[str, object]:
    """The same as members of the report's JSON object."""
    return {
        "controls": [
            {"name": c.name, "kind": c.kind, "found": c.divergence or None, "outdated": c.outdated or None}
            for c in held.tried
        ],
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


class Standing(Struct, frozen=True):
    """The entries of a file of choices and the valid ones among them; `path` as a person would write it.

        never taken   the spec allows these classes; the whole product has shown that no step has them
        WRONG         one of them was taken by this very run
        stale         shown for another spec, or for a model that has changed: it does not count
        another implementation   it counts, since this run has not refuted it, and it is reported

    `counted` has by suite how many classes are never taken; `wrong` those that were.
    """

    path: Path
    choices: Choices
    is_of_spec: bool
    is_of_implementation: bool
    listed: Mapping[str, Listed]
    counted: Mapping[str, int]
    wrong: tuple[tuple[str, EffectClass], ...]
    written: bool = False
    title: ClassVar[str] = "Choices"

    @property
    def is_wrong(self) -> bool:
        """Whether this run has refuted an entry."""
        return bool(self.wrong)

    @property
    def stale(self) -> tuple[str, ...]:
        """The suites for which the file is outdated."""
        return tuple(sorted(set(self.choices.suites) - set(self.listed)))

    @property
    def never(self) -> int:
        """The number of classes that are provably never taken."""
        return sum(self.counted.values())

    def lines(self) -> Iterator[str]:
        """The lines below a gate's report."""
        if not self.is_of_spec:
            yield _ignored("choices", self.path, "another spec")
            return
        written, refresh = f"{self.path} written; " if self.written else "", "run --update-choices"
        yield f"choices: {written}{self.never} allowed classes are never taken by the implementation"
        for label, listed in self.listed.items():
            yield (f"  {label}: {self.counted[label]}, of {listed.states} states, {listed.steps} steps; "
                   f"{len(listed.ways)} way{'s' * (len(listed.ways) != 1)} added")  # fmt: skip
        for reason in dict.fromkeys(listed.reason for listed in self.listed.values() if listed.reason):
            yield f"  because {reason}"
        for label in self.stale:
            yield f"  {label}: STALE, of another model or no suite of the gate, so ignored; {refresh}"
        for label, taken in self.wrong:
            yield f"  {label}: WRONG: listed as never taken, but taken: {taken.id} {taken}"
        if not self.is_of_implementation:
            yield f"  explored with another implementation; this run has not refuted it; {refresh}"

    def json(self) -> dict[str, object]:
        """The same as a member of the report's JSON object."""
        suites = [
            {"label": label, "never": self.counted[label], "states": listed.states, "steps": listed.steps,
             "ways": len(listed.ways), "reason": listed.reason}
            for label, listed in self.listed.items()
        ]  # fmt: skip
        return {
            "choices": {
                "never": self.never,
                "suites": suites,
                "stale": list(self.stale),
                "wrong": [
                    {"label": label, "id": taken.id, "class": str(taken)} for label, taken in self.wrong
                ],
                "of_this_spec": self.is_of_spec,
                "of_this_implementation": self.is_of_implementation,
            }
        }


def standing(
    path: Path, choices: Choices, bound: BoundSpec, parts: Sequence[Part], results: Sequence[SuiteResult], *,
    written: bool = False,
) -> Standing:  # fmt: skip
    """The status of a gate's choices after a run."""
    listed, counted, wrong = {}, {}, []
    for part, result in zip(parts, results, strict=True):
        if part.listed is not None and result.coverage is not None:
            listed[part.label] = part.listed
            counted[part.label] = len(result.coverage.never)
            wrong += [(part.label, taken) for taken in result.coverage.wrong]
    is_same = choices.implementation == implementation_of(bound)
    is_of_spec = choices.spec == of_spec(bound.checked)[0]
    return Standing(path, choices, is_of_spec, is_same, listed, counted, tuple(wrong), written)


def implementation_of(bound: BoundSpec) -> str:
    """The fingerprint of the explored model."""
    return fingerprint(files_of(bound.path, bound.cls.implementation), bound.path.resolve().parent)


class ConditionStatus(Struct, frozen=True):
    """A file of conditions: its path as a person would write it, and whether it fits spec and models."""

    path: Path
    conditions: GateConditions
    is_current: bool
    is_written: bool = False
    title: ClassVar[str] = "Conditions"
    is_wrong: ClassVar[bool] = False  # that a condition never decides is a warning

    def lines(self) -> Iterator[str]:
        """The lines below a gate's report."""
        if not self.is_current:
            yield _ignored("conditions", self.path, "another spec or other models")
            return
        undecided = self.conditions.undecided
        written = f"{self.path} written; " if self.is_written else ""
        decide = self.conditions.all - len(undecided)
        yield f"conditions: {written}{decide} of {self.conditions.all} decide in a model of the gate"
        searched = sum(condition.is_impossible for condition in undecided)
        if searched:
            yield f"  {_are(searched)} impossible for all offsets in every model, by symbolic search"
        left = [condition for condition in undecided if not condition.is_impossible]
        open_ = [condition for condition in left if not condition.reason]
        argued = len(left) - len(open_)
        if argued:
            yield f"  {argued} {'decides' if argued == 1 else 'decide'} in none, with a reason in {self.path}"
        for condition in open_:
            part = f"{condition.owner} {condition.effect} by `{condition.text}` in {condition.within}"
            yield f"  never decides: {part}"

    def json(self) -> dict[str, object]:
        """The same as a member of the report's JSON object."""
        return {
            "conditions": {
                "all": self.conditions.all,
                "undecided": list(map(to_builtins, self.conditions.undecided)),
                "current": self.is_current,
            }
        }


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"


def _ignored(name: str, path: Path, other: str) -> str:
    """The line for a section that does not count."""
    return f"{name}: those in {path} belong to {other} and are ignored; run --update-{name}"
