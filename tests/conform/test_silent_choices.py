"""Silent steps that depend on earlier events, follow a wrong choice, or are too many to search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import Event, Recording, renumbered
from specchk.conform.contract.tracing import Call, Tracing, Ways, event
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

FORKS = """spec forks
var left : 0..1 = 0
var right : 0..2 = 0
var gone : bool = false
var away : bool = false
action go_left():
    require left == 0 and right == 0
    left' = 1
action go_right():
    require left == 0 and right == 0
    right' = 1
action hidden(n: 0..3):
    require right == 1 and n == 1
    right' = 2
action leave():
    require left == 1 or right == 2
    gone' = true
action finish():
    require gone and right == 2
    away' = true
model only:
    expect holds
"""
TRACKS = """spec tracks
var track : 0..2 = 0
var energy : 0..3 = 0
var count : 0..50 = 0
action choose_a():
    require track == 0
    track' = 1
action choose_b():
    require track == 0
    track' = 2
action hidden():
    require track == 2 and energy < 3
    energy' = energy + 1
action work():
    require track == 1 or energy == 3
    energy' = 0
    count' = count + 1
action finish():
    require track == 2 and energy == 3
    energy' = 0
model only:
    expect holds
"""
IDLE = """spec idle
var a : 0..40 = 0
var b : 0..40 = 0
var c : 0..40 = 0
var done : bool = false
action tick_a():
    require a < 40
    a' = a + 1
action tick_b():
    require b < 40
    b' = b + 1
action tick_c():
    require c < 40
    c' = c + 1
action go():
    done' = true
model only:
    expect holds
"""


class RememberingTracing(Tracing):
    """The events read so far determine the next possible silent step."""

    silent: ClassVar[tuple[str, ...]] = ("hidden",)
    number = 0

    @event("chose")
    def chose(self, found: Event) -> Ways:
        self.number = 1
        return Ways(((Call("go_left"),), (Call("go_right"),)))

    @event("left")
    def left(self, found: Event) -> Call:
        return Call("leave")

    @event("finish")
    def finish(self, found: Event) -> Call:
        self.number = 3
        return Call("finish")

    def near(self, found: Event) -> Sequence[Call]:
        return (Call("hidden", (self.number,)),)


class TracksTracing(Tracing):
    """The chosen track is not recorded."""

    silent: ClassVar[tuple[str, ...]] = ("hidden",)

    @event("chose")
    def chose(self, found: Event) -> Ways:
        return Ways(((Call("choose_a"),), (Call("choose_b"),)))

    @event("work")
    def work(self, found: Event) -> Call:
        return Call("work")

    @event("finish")
    def finish(self, found: Event) -> Call:
        return Call("finish")


class TicksTracing(Tracing):
    """Ticks are not recorded."""

    silent: ClassVar[tuple[str, ...]] = ("tick_a", "tick_b", "tick_c")

    @event("beat")
    def beat(self, found: Event) -> Ways:
        return Ways(((),))

    @event("go")
    def go(self, found: Event) -> Call:
        return Call("go")


def explained(spec: str, cls: type[Tracing], events: Iterable[str]) -> Explained:
    validator = Validator(instantiate(check("here.spec", spec)))
    recording = Recording("r", {}, renumbered({"at": 0, "event": name} for name in events))
    return validator.explain(cls(validator.program, recording), recording)


def test_silent_steps_are_those_that_were_near_when_the_event_was_read():
    """A tracing has memory; a second search through the same events must not see later state."""
    found = explained(FORKS, RememberingTracing, ["chose", "left", "finish"])
    assert (found.blocked, found.gave_up, found.consumed) == (None, "", 3)


def test_silent_steps_behind_a_wrong_choice_are_counted():
    """The first track takes none and cannot finish; the second takes three before each event."""
    found = explained(TRACKS, TracksTracing, ["chose", *["work"] * 20, "finish"])
    assert (found.blocked, found.silent, found.acted) == (None, 63, 22)


def test_events_that_say_nothing_do_not_end_a_search():
    """A limit applies to the check whether silent steps alone explain them, which is then skipped alone."""
    found = explained(IDLE, TicksTracing, [*["beat"] * 12, "go"])
    assert (found.gave_up, found.blocked, found.consumed, found.is_idle) == ("", None, 13, False)
