"""The reasons why no candidate could take an event: for each possible action, the guard or field in the way.

For every candidate state and every alternative of the event, its calls are taken one after another.
The first one without a successor was blocked by a guard, an option that is none or a choice from an empty
set, and that conjunct is reported with the values it read.  If all calls succeed, the event's
values are not those of the spec: the fields that differ are reported.

Invariant: an event that `validate` could not take has at least one near miss, unless no candidate was
left before it or its meaning was impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from specchk.conform.contract.tracing import ImpossibleEvent, Repeated, Seen, TracedStep
from specchk.conform.contract.values import words
from specchk.conform.recordings.validate import Blocked, Validator
from specchk.meaning.explain import Blame, false_guards
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, show
from specchk.search.verdict import Step

MOST = 6
MOST_ALLOWED = 8  # steps


class Differs(Struct, frozen=True):
    """A field: its values in the recording and in the spec."""

    field: str
    expression: str
    recorded: str
    spec: str


class NearMiss(Struct, frozen=True):
    """One reason why one candidate could not take the event: a guard is false, or fields differ."""

    call: str
    candidate: int
    guards: tuple[Blame, ...]
    differs: tuple[Differs, ...]

    @property
    def distance(self) -> tuple[int, int]:
        """The distance from success: a step that was taken is nearer than one that was not."""
        return (1, len(self.guards)) if self.guards else (0, len(self.differs))


def near_misses(validator: Validator, blocked: Blocked) -> tuple[NearMiss, ...]:
    """The reasons why the event was blocked, the nearest first, each once."""
    if blocked.meaning is None:
        return ()
    reasons: dict[tuple[str, str], NearMiss] = {}
    for number, state in enumerate(blocked.candidates):
        for way in blocked.meaning.ways:
            for miss in _misses(validator, number, state, way, blocked.meaning.seen):
                reason = repr([(g.text, g.values) for g in miss.guards] + list(miss.differs))
                # Candidates differ in what was not logged; the same reason from many of them is one reason.
                reasons.setdefault((miss.call, reason), miss)
    return tuple(sorted(reasons.values(), key=lambda miss: miss.distance)[:MOST])


def _misses(
    validator: Validator, number: int, state: State, way: Sequence[TracedStep], seen: Sequence[Seen]
) -> Iterator[NearMiss]:
    states: tuple[State, ...] = (state,)
    for step in way:
        try:
            index, instances = validator.instances(step.call if isinstance(step, Repeated) else step)
        except ImpossibleEvent:
            return
        after = tuple(validator.by_way((validator.step(step),), states))
        if not after:
            # An argument that is `ANY` represents every value; a few show which guard is false.
            for before in _before_blocked(validator, step, states)[:MOST]:
                for args in instances[:MOST]:
                    call = str(Step.of(validator.program, index, args, before))
                    action = validator.program.actions[index]
                    guards = false_guards(validator.fields.evaluator, action, before, args)
                    yield NearMiss(call, number, tuple(guards), ())
            return
        states = after
    name = " then ".join(map(str, way)) or "no step"
    for reached in states:
        yield NearMiss(name, number, (), tuple(differences(validator, reached, seen)))


def _before_blocked(validator: Validator, step: TracedStep, states: Sequence[State]) -> Sequence[State]:
    """The states in which a step was blocked: for a repeated call, those after the calls taken."""
    if not isinstance(step, Repeated):
        return states
    # Ends before `step.least` calls: with as many the step would not be blocked.
    while after := validator.by_call(step.call, states):
        states = after
    return states


def differences(validator: Validator, state: State, seen: Sequence[Seen]) -> Iterator[Differs]:
    """The fields of an event whose recorded values a state does not have."""
    for shown in seen:
        expression = validator.fields.expression(shown.expression)
        has = expression.value(state)
        if expression.wanted(shown.value) != has:
            has_text = "nothing" if has is None else show(has, expression.type)
            yield Differs(shown.field, shown.expression, words(shown.value), has_text)


def allowed(validator: Validator, state: State) -> tuple[str, ...]:
    """The steps of the spec from a state, one of each action first, and how many are left out."""
    try:
        taken = validator.stepper.successors(state)
        steps = [
            (number, str(Step.of(validator.program, number, args, after))) for number, args, after in taken
        ]
    except Faulty:
        return ()
    firsts = dict(reversed(steps))
    labels = tuple(dict.fromkeys([*sorted(firsts.values()), *(label for _, label in steps)]))
    more = (f"and {len(labels) - MOST_ALLOWED} more",) if len(labels) > MOST_ALLOWED else ()
    return (*labels[:MOST_ALLOWED], *more)


def instead(validator: Validator, blocked: Blocked) -> tuple[str, ...]:
    """Steps of the spec, other than the event's, after which all fields agree with the event."""
    if blocked.meaning is None or not blocked.meaning.seen or blocked.reason:
        return ()
    named: set[tuple[int, tuple[Any, ...]]] = set()
    for step in [step for way in blocked.meaning.ways for step in way]:
        number, instances = validator.instances(step.call if isinstance(step, Repeated) else step)
        named.update((number, args) for args in instances)
    labels: dict[str, None] = {}
    for state in blocked.candidates:
        if validator.fields.agree(state, blocked.meaning.seen):
            labels["no step at all"] = None
        try:
            successors = validator.stepper.successors(state)
        except Faulty:
            continue
        for number, args, after in successors:
            if (number, args) not in named and validator.fields.agree(after, blocked.meaning.seen):
                labels[str(Step.of(validator.program, number, args, after))] = None
    return tuple(labels)[:MOST]
