"""A report on a blocked recording: the last explained events, the event, the candidates, near misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from specchk.conform.contract.log_tracing import OWN
from specchk.conform.contract.recording import Event, Recording, shown_after
from specchk.conform.contract.tracing import Meaning
from specchk.conform.recordings.contradiction import Contradiction
from specchk.conform.recordings.nearmiss import NearMiss, allowed, instead, near_misses
from specchk.conform.recordings.validate import Blocked, Validator, Waiting
from specchk.explore.view import ABSENT, Viewer
from specchk.ir.nodes import Value
from specchk.ir.types import Map, Type
from specchk.meaning.values import State, show

LAST = 5


class Explanation(Struct, frozen=True):
    """The reason why a recording is not a behaviour of the spec, as plain values.

    `before` are the last explained events, with what each of them changed.  `contradiction` is None where it
    was not searched for.  Of an event that is explained, and after which an invariant is false, `state` is
    after it.  `place` is the event's file and line, and `allowed` are the steps of the spec from `state`.
    `others` are the other writers' next lines, each with a reason why it is not explained there.
    """

    number: int
    event: Mapping[str, Any]
    calls: tuple[str, ...]
    before: tuple[Mapping[str, Any], ...]
    candidates: int
    state: tuple[tuple[str, str], ...]
    misses: tuple[Mapping[str, Any], ...]
    instead: tuple[str, ...]
    reason: str
    invariant: str = ""
    contradiction: Contradiction | None = None
    place: str = ""
    allowed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def explanation_of(validator: Validator, recording: Recording, blocked: Blocked) -> Explanation:
    """The explanation of a blocked recording."""
    first = max(0, blocked.number - 1 - LAST)
    misses = () if blocked.invariant else near_misses(validator, blocked)
    # The nearest candidate: of thousands a reader needs one.
    shown = blocked.candidates[misses[0].candidate] if misses else blocked.candidates[0]
    return Explanation(
        blocked.number, blocked.event, _calls(blocked.meaning),
        tuple(_changes(recording.events, at) for at in range(first, blocked.number - 1)),
        len(blocked.candidates),
        tuple(_lines(validator, shown)), tuple(map(_miss, misses)),
        () if blocked.invariant else instead(validator, blocked), blocked.reason, blocked.invariant,
        place=recording.place(blocked.number),
        allowed=() if blocked.invariant else allowed(validator, shown),
        others=tuple(_other(validator, blocked, other) for other in blocked.others),
    )  # fmt: skip


def _other(validator: Validator, blocked: Blocked, other: Waiting) -> str:
    """Another writer's next line, with what is in its way, in a line of text."""
    misses = near_misses(validator, replace(blocked, event=other.event, meaning=other.meaning))
    reason = f"waits for {other.after}" if other.after else "cannot be a step"
    if misses and not other.after:
        miss = misses[0]
        reasons = [f"{guard.text}{_IS[guard.truth]}" for guard in miss.guards]
        reasons += [f"{field.expression} is {field.spec}, not {field.recorded}" for field in miss.differs]
        reason = f"{miss.call}: {' and '.join(reasons)}"
    return f"{other.event['at']}: {other.event['event']}, {other.event.get('place', '')}: {reason}"


def _changes(events: Sequence[Event], at: int) -> Event:
    """An event with only those fields that differ from its writer's last event."""
    event = events[at]
    # An event mostly shows the same as the previous one; only differences are of interest.
    earlier = (past for past in reversed(events[:at]) if past["at"] == event["at"] and shown_after(past))
    known, after = shown_after(next(earlier, {})), shown_after(event)
    return {**event, "after": {k: v for k, v in after.items() if k not in known or known[k] != v}}


def _calls(meaning: Meaning | None) -> tuple[str, ...]:
    if meaning is None:
        return ()
    return tuple(" then ".join(map(str, way)) or "no step" for way in meaning.ways)


def _lines(validator: Validator, state: State) -> Iterator[tuple[str, str]]:
    """A line for each lane of the spec's view, then all variables that the view does not hide.

    A map has a line for each run of keys with the same value.
    """
    viewer = Viewer(validator.instance)
    for lane, name in enumerate(viewer.lanes):
        cells = [
            (text, len(list(run))) for text, run in groupby(c.text for c in viewer.log(state, lane) or ())
        ]
        log = "log [" + " ".join(text if count == 1 else f"{text} x{count}" for text, count in cells) + "]"
        marks = [f"{mark}={value}" for mark, value in viewer.marks(state, lane).items()]
        labels = [
            f"{label}={value}" for label, value in viewer.labels(state, lane).items() if value not in ABSENT
        ]
        shown = [*([log] if cells or marks else []), *marks, *labels]
        if shown:
            yield name, " ".join(shown)
    for variable, value in zip(validator.program.variables, state, strict=True):
        if variable.name in viewer.hidden:
            continue
        if isinstance(variable.type, Map) and isinstance(value, tuple):
            yield from _runs(variable.name, validator.keys(variable.type), value, variable.type.value)
        else:
            yield variable.name, show(value, variable.type)


def _runs(name: str, keys: Sequence[str], values: Sequence[Value], kind: Type) -> Iterator[tuple[str, str]]:
    for item, run in groupby(zip(keys, values, strict=True), key=itemgetter(1)):
        same = [key for key, _ in run]
        where = same[0] if len(same) == 1 else f"{same[0]}..{same[-1]}"
        yield f"{name}[{where}]", show(item, kind)


def _miss(miss: NearMiss) -> dict[str, Any]:
    guards = [
        {
            "text": guard.text,
            "truth": guard.truth,
            "where": guard.span.where,
            "values": dict((*guard.bindings, *guard.values)),
        }
        for guard in miss.guards
    ]
    return {"step": miss.call, "guards": guards, "fields": list(map(to_builtins, miss.differs))}


def render(name: str, events: int, explanation: Explanation) -> str:
    """The explanation as text, in the order in which it is read: where both agree, the line, and why not."""
    what = "no behaviour of the spec explains"
    if explanation.invariant:
        what = f"the invariant `{explanation.invariant}` is false after"
    lines = [f"{name}: {what} event {explanation.number} of {events}", ""]
    lines += ["the explained events before it, with their changes:"] if explanation.before else []
    first = explanation.number - len(explanation.before)
    lines += [f"{first + n:6}  {_event(one)}" for n, one in enumerate(explanation.before)]
    lines += ["", *([] if explanation.invariant else _state(explanation, "before"))]
    at = f", {explanation.place}:" if explanation.place else ":"
    lines += [
        ("the event" if explanation.invariant else "the unexplained event") + at,
        f"{explanation.number:6}  {_event(explanation.event)}",
    ]
    lines += [f"        read as {' or '.join(explanation.calls)}" if explanation.calls else "", ""]
    if explanation.reason:
        lines += [f"why: {explanation.reason}", ""]
    if explanation.allowed:
        lines += ["what the spec allows there: " + ", ".join(explanation.allowed), ""]
    if explanation.misses:
        count = explanation.candidates
        many = "the only possible state" if count == 1 else f"any of the {count} possible states"
        lines += [f"why the spec does not allow it, from {many}:"]
        for miss in explanation.misses:
            lines += miss_lines(miss)
        lines += [""]
    if explanation.others:
        lines += ["the other writers' next lines are not explained there either:"]
        lines += [*(f"  {other}" for other in explanation.others), ""]
    if explanation.instead:
        lines += ["steps that lead to a state like the event's: " + ", ".join(explanation.instead), ""]
    if explanation.contradiction is not None:
        lines += [*_contradiction(explanation.contradiction), ""]
    lines += _state(explanation, "after") if explanation.invariant else []
    while not lines[-1]:
        lines.pop()
    return "\n".join(line for n, line in enumerate(lines) if line or (n and lines[n - 1]))


def _state(explanation: Explanation, when: str) -> list[str]:
    """The nearest state to an event in which the spec may be before or after it."""
    lines = [f"  {name} = {value}" for name, value in explanation.state]
    return [f"a state of the spec {when} the event:", *lines, ""]


def _contradiction(found: Contradiction) -> Iterator[str]:
    if found.order is not None:
        moved, after = found.order
        place = f"after line {after}, which another writer wrote" if after else "first"
        yield f"in another order all lines so far are explained: line {moved} {place}"
    if not found.lines:
        return
    given = f" after the first {found.given} events" if found.given else ""
    count = len(found.lines)
    lines = "this line alone" if count == 1 else f"these {count} lines"
    yield f"the smallest contradiction{given}: {lines}, whichever of the others happened"
    for line in found.lines:
        yield f"{line.number:6}  {line.event.get('at')}: {line.event.get('event')}"
        claims = [*(["its step"] if line.step else []), *(f"{k}={_short(v)}" for k, v in line.fields.items())]
        yield f"        needed for {', '.join(claims)}"
    if not found.is_minimal:
        yield "  a bound ended the search: less may be enough"


_IS = MappingProxyType({False: " is false", True: " is true", None: ""})  # below a `not`, a part is true


def miss_lines(miss: Mapping[str, Any]) -> Sequence[str]:
    """A step that does not explain the event, and what is in its way."""
    if miss["guards"]:
        lines = [f"  {miss['step']} is not enabled:"]
        for guard in miss["guards"]:
            values = ", ".join(f"{name} = {value}" for name, value in guard["values"].items())
            lines.append(f"    {guard['text']}{_IS[guard['truth']]}" + (f"  ({values})" if values else ""))
            lines.append(f"      at {guard['where']}")
        return lines
    lines = [f"  {miss['step']} is enabled, but then"]
    for field in miss["fields"]:
        recorded = f"the recording has {field['field']} {field['recorded']}"
        lines.append(f"    {field['expression']} is {field['spec']}; {recorded}")
    return lines


_OWN = (*OWN, "after")


def _event(event: Event) -> str:
    """An event on one line: its node, name and arguments, and the state that it shows."""
    facts = [f"{k}={_short(v)}" for k, v in event.items() if k not in _OWN]
    after = [f"{k}={_short(v)}" for k, v in shown_after(event).items()]
    return f"{event.get('at')}: {event.get('event')} {' '.join(facts)}".rstrip() + (
        f"  ->  {' '.join(after)}" if after else ""
    )


def _short(value: Any) -> str:
    return str(value).replace(" ", "")
