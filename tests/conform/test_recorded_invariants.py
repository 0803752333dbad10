"""A recording is checked against the model's invariants, and against another order of its lines."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate_steps
from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.recording import Event, Recording, Unreadable
from specchk.conform.contract.tracing import Call, ImpossibleEvent, Repeated, Seen, Tracing, Ways, event
from specchk.conform.recordings.contradiction import contradiction_of
from specchk.conform.recordings.explanation import explanation_of, render
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

COUNTER = """spec counter
type N = nat upto 2
var x : N = 0
var hidden : bool = false
action up():
    require not hidden
    x' = x + 1
action hide():
    require not hidden
    hidden' = true
action jump():
    require hidden
    x' = x + 2
    hidden' = false
action fall():
    x' = 0
invariant small: x < 4
invariant odd: not hidden or x != 1
model all:
    expect holds
model chosen:
    properties odd
    expect holds
"""


class CounterTracing(Tracing):
    """`hide` and `fall` leave no event."""

    spec, model, reads = "counter.spec", "all", "counter/1"
    silent: ClassVar = ("hide", "fall")

    @event("up")
    def up(self, e: Event) -> Call:
        return Call("up")

    @event("jump")
    def jump(self, e: Event) -> Call:
        return Call("jump")

    @event("either")
    def either(self, e: Event) -> Ways:
        return Ways((Call("up"), Call("jump")))  # type: ignore[arg-type]  # each is a way

    @event("wrong")
    def wrong(self, e: Event) -> Any:
        return e["gives"]

    def after(self, e: Event) -> list[Seen]:
        return [Seen("x", "x", e["x"])] if "x" in e else []


def recorded(*events: tuple[str, int | None]) -> Recording:
    lines = [{"at": "a", "event": name, **({} if x is None else {"x": x})} for name, x in events]
    return Recording("one", {"format": "counter/1"}, tuple(lines))


def explained(recording: Recording, model: str = "all") -> tuple[Validator, Explained]:
    validator = Validator(instantiate_steps(check("counter.spec", COUNTER), model, {}))
    found = validator.explain(CounterTracing(validator.program, recording), recording)
    return found.by or validator, found


@pytest.mark.parametrize(
    ("model", "events", "number", "invariant"),
    [
        ("all", [("up", 1), ("up", 2), ("up", 3)], 0, ""),
        ("all", [("up", 1), ("up", 2), ("up", 3), ("up", 4), ("up", 5)], 4, "small"),
        ("all", [("up", 1), ("up", 2), ("jump", 4)], 3, "small"),
        ("chosen", [("up", 1), ("up", 2), ("jump", 4), ("up", None)], 0, ""),
        # Not certain: `fall` may have come before.
        ("all", [("up", None)] * 5, 0, ""),
        # Without the silent step it would be false; with one it is not.
        ("all", [("up", 1), ("up", 2), ("up", 3), ("up", None), ("up", 2)], 0, ""),
    ],
)
def test_an_invariant_that_is_false_after_an_event_is_a_divergence(
    model: str, events: list[tuple[str, int | None]], number: int, invariant: str
) -> None:
    """If it is so in every state that explains the event, beyond the horizon, too; of those selected."""
    validator, found = explained(recorded(*events), model)
    if not number:
        assert found.blocked is None
        assert found.consumed == len(events)
        return
    assert found.blocked is not None
    assert (found.blocked.number, found.blocked.invariant) == (number, invariant)
    text = render("one", len(events), explanation_of(validator, recorded(*events), found.blocked))
    assert text.startswith(
        f"one: the invariant `{invariant}` is false after event {number} of {len(events)}\n"
    )
    assert "a state of the spec after the event:\n  x = 4\n" in text


def test_a_way_may_be_a_lone_call() -> None:
    """As an event may be: `Ways((Call(..), Call(..)))` are two alternatives."""
    _, found = explained(recorded(("up", 1), ("either", 3), ("either", None)))
    assert found.blocked is None
    assert found.consumed == 3


@pytest.mark.parametrize(
    "gives", [None, "up", [Call("up")], (None,), Ways((("up",),)), Ways(([Call("up")],)), 3]
)  # type: ignore[arg-type]
def test_what_is_no_call_is_reported_in_words(gives: Any) -> None:
    """With the event, and the value that its method gave."""
    recording = recorded(("up", 1))
    tracing = CounterTracing(instantiate_steps(check("counter.spec", COUNTER), "all", {}).program, recording)
    with pytest.raises(Unreadable, match=r"`wrong` \(.*\) cannot be read: it gives .*, and not a `Call`"):
        tracing.meaning({"at": "a", "event": "wrong", "gives": gives})
    tracing.meaning({"at": "a", "event": "wrong", "gives": Repeated(Call("up"), 1, 2)})


LINES = [
    {"at": "c1", "seq": 1, "event": "acquired", "token": 1},
    {"at": "service", "seq": 1, "event": "waiting"},
    {"at": "c2", "seq": 1, "event": "granted", "token": 2},
    {"at": "c2", "seq": 2, "event": "wrote"},
    {"at": "c3", "seq": 1, "event": "granted", "token": 3},
]


@pytest.mark.parametrize(
    ("order", "number", "move"),
    [
        ([2, 0, 1, 3, 4], 1, (1, 3)),  # too early: it comes after two others
        ([0, 2, 1, 3, 4], 2, (2, 3)),
        ([1, 0, 2, 3, 4], 1, (1, 2)),
        ([0, 1, 4, 2, 3], 3, (3, 4)),
        ([0, 1, 3, 2, 4], 3, None),  # of one writer: its own order is no question
    ],
)
def test_another_order_of_writers_is_named(
    order: list[int], number: int, move: tuple[int, int] | None
) -> None:
    """If moving one line across lines of other writers explains all so far."""
    # Not where this module is imported: other tests import a `tracing` of another folder.
    locks = load_tracing(ROOT / "docs" / "lock_service" / "tracing.py")
    recording = Recording("one", {"format": "lock-service/1", "clients": 3}, tuple(LINES[n] for n in order))
    spec = check(str(ROOT / "docs" / "lock_service" / "lock_service.spec"))
    validator = Validator(instantiate_steps(spec, "two", {"Client": "3"}))
    found = validator.explain(locks(validator.program, recording), recording)
    assert found.blocked is not None
    assert found.blocked.number == number
    by = found.by or validator
    contradiction = contradiction_of(by, locks(by.program, recording), recording, number)
    assert (None if contradiction is None else contradiction.order) == move


def test_an_order_is_named_where_the_tracing_refuses_a_line() -> None:
    """A tracing that follows messages refuses one that is received before it is sent."""
    validator = Validator(instantiate_steps(check("counter.spec", COUNTER), "all", {}))

    class Messages(CounterTracing):
        sent = False

        @event("send")
        def send(self, e: Event) -> Call:
            self.sent = True
            return Call("up")

        @event("receive")
        def receive(self, e: Event) -> tuple[()]:
            if not self.sent:
                raise ImpossibleEvent("it was not sent")
            return ()

    lines = ({"at": "b", "event": "receive"}, {"at": "a", "event": "send"})
    recording = Recording("one", {"format": "counter/1"}, lines)
    found = contradiction_of(validator, Messages(validator.program, recording), recording, 1)
    assert found is not None
    assert (found.lines, found.order) == ((), (1, 2))
