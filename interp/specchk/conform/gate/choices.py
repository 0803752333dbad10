"""The choices that an implementation makes where its spec allows several, as a section of its lock.

A suite of cases comes from the spec alone, so its cases go where an implementation that chooses
otherwise does not follow.  `applied` gives it the paths that the implementation does follow as cases of
their own, and the classes that are never taken.  For another spec or model nothing of a lock counts.

Invariant: a path is one of the spec with the classes that the spec gives it, whatever the file has.
Not here: the exploration (`chosen`), the file (`work.lock_file`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from specchk.conform.covers.cases import CaseStep, Suite, SuiteCase, case_id
from specchk.conform.covers.classes import Classifier
from specchk.conform.covers.instances import Instances
from specchk.conform.work.lock_file import NAME, BadLock, Choices, ChosenPath, Listed
from specchk.ir.program import Program, setting
from specchk.meaning.initial import initial_states
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State, show

DIGITS = 12


def listed_of(choices: Choices | None, spec: str, label: str, program: Program) -> Listed | None:
    """The entries valid for a model: none for another spec, or for other constants."""
    # Results for another spec or other constants do not apply; ignored, they can only leave classes missed,
    # which is reported.
    listed = choices.suites.get(label) if choices is not None and choices.spec == spec else None
    return listed if listed is not None and listed.model == of_model(program) else None


def of_model(program: Program) -> str:
    """A short name of a model's bindings: its constants, and the elements of its sorts."""
    return hashlib.sha256(setting(program).encode()).hexdigest()[:DIGITS]


def applied(suite: Suite, program: Program, listed: Listed) -> Suite:
    """The suite with the paths as cases and the classes never taken; `BadLock` for an invalid path."""
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
        classes, steps = [], tuple(map(read_step, way.steps))
        for step in steps:
            # The file's steps are taken again by the spec, so that a way in it cannot claim classes that it
            # does not have.
            state, ids = followed(instances, state, step)
            classes.append(tuple(sorted(number for id_ in ids for number in numbers.get(id_, ()))))
    except LookupError:
        raise BadLock(f"{NAME}: a way of {suite.label} is not a path of the spec") from None
    return SuiteCase(case_id(suite.label, way.start, steps), steps, tuple(classes), way.start)


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


def written_step(step: CaseStep) -> tuple[str | int, ...]:
    """A step as a lock has it."""
    return (step.action, *step.args, step.choice)


def read_step(written: tuple[str | int, ...]) -> CaseStep:
    """The step that `written_step` has written."""
    action, *args, choice = written
    return CaseStep(str(action), tuple(map(str, args)), int(choice))
