"""The choices that an implementation makes where its spec allows several, as a TOML file beside the binding.

    spec, implementation    the fingerprints at the time of exploration
    [suites."MODEL BOUNDS"] model    a fingerprint of the model with its constants
                            states   that the implementation reaches, steps that it takes: its whole product
                            never    ids of effect classes that no step of the product has
                            reason   a person's words for that, kept when the rest is rewritten
                            ways     paths with classes that the cases of the suite do not reach

A suite of cases comes from the spec alone, so its cases go where an implementation that chooses
otherwise does not follow.  `applied` gives it the ways as cases of their own, and the classes that are
never taken.  For another spec or model nothing of a file counts.

Invariants: `read` is the inverse of `write`, and refuses other content (`seal`); a way is a
path of the spec with the classes that the spec gives it, whatever the file has.  Not here: the exploration
(`chosen`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.conform.covers.cases import CaseStep, Suite, SuiteCase, case_id
from specchk.conform.covers.classes import Classifier
from specchk.conform.covers.instances import Instances
from specchk.conform.work import seal
from specchk.ir.program import Program, setting
from specchk.meaning.initial import initial_states
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State, show

NAME = "choices.lock"
VERSION = 3
MEND = "restore the reviewed file, or delete it and write a new one with --update-choices"
DIGITS = 12
_REASON = "reason = "  # begins the lines that people fill in
HEAD = """\
# Which of the choices that the spec leaves this implementation makes: shown by exploring all that the two
# can do together.  Written by `specchk conform BINDING --update-choices`; `reason` is for people to fill in.
"""


class ChosenPath(Struct, frozen=True):
    """A path from one of the initial states (in ascending order) that the implementation follows."""

    steps: tuple[CaseStep, ...]
    start: int = 0


class Listed(Struct, frozen=True):
    """The result of exploring the whole product of one model; `never` has each class's id and description."""

    model: str
    states: int
    steps: int
    never: Mapping[str, str] = field(default_factory=dict)
    ways: tuple[ChosenPath, ...] = ()
    reason: str = ""


class Choices(Struct, frozen=True):
    """The contents of the file."""

    spec: str
    implementation: str
    suites: Mapping[str, Listed] = field(default_factory=dict)

    def of(self, spec: str, label: str, program: Program) -> Listed | None:
        """The entries valid for a model: none for another spec, or for other constants."""
        listed = self.suites.get(label)
        # Results for another spec or other constants do not apply; ignored, they can only
        # leave classes missed, which is reported.
        counts = listed is not None and self.spec == spec and listed.model == of_model(program)
        return listed if counts else None


class BadChoices(Exception):
    """A file without valid choices."""


def of_model(program: Program) -> str:
    """A short name of a model's bindings: its constants, and the elements of its sorts."""
    return hashlib.sha256(setting(program).encode()).hexdigest()[:DIGITS]


def applied(suite: Suite, program: Program, listed: Listed) -> Suite:
    """The suite with the paths as cases and the classes never taken; `BadChoices` for an invalid path."""
    known = {case.id for case in suite.cases}
    numbers: dict[str, list[int]] = {}
    for number, effect_class in enumerate(suite.classes):
        # Two classes may have one id, where their words are the same; then a way has both.
        numbers.setdefault(effect_class.id, []).append(number)
    # Before the ids are compared, so that a way that is no path is refused even if its case is known.
    cases = []
    if listed.ways:
        instances = Instances(Classifier(Tracer(program)))
        cases = [_case(suite, instances, way, numbers) for way in listed.ways]
    never = tuple(sorted(number for effect_class in listed.never for number in numbers.get(effect_class, ())))
    new = tuple(case for case in cases if case.id not in known)
    return replace(suite, cases=suite.cases + new, never=never)


def _case(
    suite: Suite, instances: Instances, way: ChosenPath, numbers: Mapping[str, Sequence[int]]
) -> SuiteCase:
    try:
        state = initial_states(instances.classifier.program)[way.start]
        classes = []
        for step in way.steps:
            # The file's steps are taken again by the spec, so that a way in it cannot claim classes that it
            # does not have.
            state, ids = followed(instances, state, step)
            classes.append(tuple(sorted(number for id_ in ids for number in numbers.get(id_, ()))))
    except LookupError:
        raise BadChoices(f"{NAME}: a way of {suite.label} is not a path of the spec") from None
    return SuiteCase(case_id(suite.label, way.start, way.steps), way.steps, tuple(classes), way.start)


def followed(instances: Instances, state: State, step: CaseStep) -> tuple[State, frozenset[str]]:
    """The target of a step, and the ids of its classes; `LookupError` if it is not possible."""
    classifier = instances.classifier
    for found in instances.classified(state):
        action = classifier.program.actions[found.action]
        if (action.name, found.choice) == (step.action, step.choice):
            typed = zip(found.args, action.params, strict=True)
            if tuple(show(arg, param.type) for arg, param in typed) == step.args:
                return found.after, frozenset(classifier.described(key).id for key in found.classes)
    raise LookupError(str(step))


def write(path: Path, choices: Choices) -> None:
    """Write a file."""
    seal.write(path, _lines(choices), _REASON)


def _lines(choices: Choices) -> Iterator[str]:
    yield from HEAD.split("\n")
    head = {"version": VERSION, "spec": choices.spec, "implementation": choices.implementation}
    yield from seal.entries(head)
    for label, listed in sorted(choices.suites.items()):
        heading = f"suites.{seal.quoted(label)}"
        figures = {name: getattr(listed, name) for name in ("model", "states", "steps", "reason")}
        yield from seal.table(heading, figures)
        yield from seal.table(f"{heading}.never", seal.named(sorted(listed.never.items())))
        for way in listed.ways:
            yield from (*seal.table(f"[{heading}.ways]", {"start": way.start}), "steps = [")
            yield from (f"  {seal.toml([step.action, *step.args, step.choice])}," for step in way.steps)
            yield "]"


def read(path: Path) -> Choices | None:
    """The contents of a file, None if there is no file; raises `BadChoices`."""
    return seal.load(path, _choices, version=VERSION, people=_REASON, mend=MEND, error=BadChoices)


def _choices(table: Mapping[str, Any]) -> Choices:
    suites = {label: _listed(one) for label, one in table.get("suites", {}).items()}
    spec = table["spec"] if table["version"] == VERSION else seal.OLDER
    return Choices(spec, table["implementation"], suites)


def _listed(table: Mapping[str, Any]) -> Listed:
    ways = tuple(
        ChosenPath(tuple(map(_read_step, way["steps"])), way["start"]) for way in table.get("ways", ())
    )
    numbers = table["states"], table["steps"]
    return Listed(table["model"], *numbers, dict(table["never"]), ways, table["reason"])


def _read_step(data: Sequence[Any]) -> CaseStep:
    action, *args, choice = data
    return CaseStep(action, tuple(args), choice)
