"""What recordings and a spec do not say of each other.

Every recording is followed as by `specchk validate`.  The states in which the spec may be after an event are
compared with all states of the tracing's model under the constants of the recording, if these can be listed.

Not here: corrupted copies, and the reasons for a refused event in full (`specchk validate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from msgspec import Struct, field

from specchk.conform.contract.recording import BadRecording, Recording
from specchk.conform.contract.tracing import ImpossibleEvent, Repeated, Tracing
from specchk.conform.recordings.explainer import CampaignOptions, RecordingExplainer
from specchk.conform.recordings.validate import Blocked, Haste, TooMany, Validator
from specchk.lang.frontend import CheckedSpec
from specchk.meaning.values import State
from specchk.report.diff import equations
from specchk.review.rows import ReviewRow
from specchk.review.states import ListedStates, listed


class RecordedStates(Struct):
    """The states in which the spec may be along recordings with the same constants, and those that it has."""

    model: ListedStates | None
    seen: set[State] = field(default_factory=set)


class RecordedFacts(Struct):
    """What the recordings show: actions and states, where the spec refuses them, and where they leave it."""

    actions: set[str] = field(default_factory=set)
    states: list[RecordedStates] = field(default_factory=list)
    blocked: list[tuple[str, Blocked]] = field(default_factory=list)
    outside: list[tuple[str, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def followed(cls: type[Tracing], checked: CheckedSpec, paths: Sequence[Path]) -> RecordedFacts:
    """Follow all recordings."""
    explainer = RecordingExplainer(cls, checked, CampaignOptions(power=False))
    result = RecordedFacts()
    models: dict[int, RecordedStates] = {}
    for path in paths:
        try:
            recording = cls.read(path)
            validator = explainer.validator(recording)
            explained, recording = explainer.explain(validator, recording)
        except BadRecording as error:
            result.problems.append(str(error))
            continue
        if id(validator) not in models:  # the explainer keeps one for each choice of constants
            models[id(validator)] = RecordedStates(listed(validator.instance))
        if explained.gave_up:
            result.problems.append(f"{recording.name}: {explained.gave_up}")
        if explained.blocked is not None:
            result.blocked.append((recording.name, explained.blocked))
        result.actions |= _actions(cls(validator.program, recording), recording, explained.consumed)
        after = _states_after(explained.by or validator, cls, recording, explained.consumed)
        beyond = _add(models[id(validator)], after)
        result.outside += [(recording.name, beyond)] if beyond is not None else []
    result.states = list(models.values())
    if any(states.model is None for states in result.states):
        result.problems.append("states were not compared: there are too many, or some step is undefined")
    return result


def recorded_rows(
    followed: RecordedFacts, cls: type[Tracing], checked: CheckedSpec, words: str
) -> Iterator[ReviewRow]:
    """The rows of recordings; `words` are the arguments of `specchk validate` that repeat them."""
    again = f"specchk validate {words}"
    top = f"{checked.spec.source.path}:1:1"
    for name, blocked in followed.blocked:
        event = blocked.event["event"]
        reason = f"`{blocked.invariant}` is false after it" if blocked.invariant else "no step explains it"
        text = f"{name}, event {blocked.number} ({event}): {blocked.reason or reason}"
        yield ReviewRow("refused", top, text, again)
    for action in checked.spec.actions.values():
        if action.name not in followed.actions and action.name not in cls.silent:
            yield ReviewRow(
                "unrecorded", action.span.where, f"`{action.name}` is in no recording",
                "record a run that takes it, list it as silent, or remove it",
            )  # fmt: skip
    for name, number in followed.outside:
        where = f"after event {number}" if number else "at its beginning"
        text = f"{name} is {where} in a state that its model does not reach"
        yield ReviewRow("unreached", top, text, "give the model larger bounds, or correct an action")
    for states in followed.states:
        if states.model is not None:
            yield from _unvisited(states.model, states.seen, top)


def _unvisited(model: ListedStates, seen: set[State], at: str) -> Iterator[ReviewRow]:
    missing = [state for state in model.states if state not in seen]
    if missing:
        nearest = ", ".join(equations(model.program, missing[0]))
        text = f"{len(missing)} of {len(model.states)} states of `{model.program.model}` are in no recording"
        yield ReviewRow("unvisited", at, text, f"record a run that reaches, for example, {nearest}")


def _add(states: RecordedStates, after: Sequence[tuple[State, ...]]) -> int | None:
    """Add the states along a recording; the first event after which the model has none of them."""
    known = None if states.model is None else frozenset(states.model.states)
    beyond = None
    for number, candidates in enumerate(after):
        states.seen.update(candidates)
        if known is not None and beyond is None and candidates and known.isdisjoint(candidates):
            beyond = number
    return beyond


def words_of(tracing: str, recordings: Sequence[str]) -> str:
    """Arguments on a command line."""
    return " ".join(map(quote, (tracing, *recordings)))


def _actions(tracing: Tracing, recording: Recording, most: int) -> set[str]:
    """The actions that the explained events name."""
    found = set()
    for event in recording.events[:most]:
        try:
            ways = tracing.meaning(event).ways
        except ImpossibleEvent:
            break
        steps = [step for way in ways for step in way]
        found |= {step.call.action if isinstance(step, Repeated) else step.action for step in steps}
    return found


def _states_after(
    validator: Validator, cls: type[Tracing], recording: Recording, most: int
) -> list[tuple[State, ...]]:
    """The states in which the spec may be at the beginning, and after each explained event."""
    after: list[tuple[State, ...]] = []
    for haste in Haste:  # the second one, if the first does not lead to the end
        tracing = cls(validator.program, recording)
        after = [validator.initial]
        with suppress(ImpossibleEvent, TooMany):
            for event in recording.events[:most]:
                states = validator.onward(tracing, tracing.meaning(event), after[-1], haste).after
                if not states:
                    break
                after.append(states)
        if len(after) > most:
            break
    return after
