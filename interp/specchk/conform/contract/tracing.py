"""The interface that a user implements so that recordings are explained by a spec.

    class BankTracing(Tracing):
        spec, model = "bank.spec", "small"        # the spec's path, from this file's folder
        silent = ("interest",)                    # actions that leave no event

        @event("moved")
        def moved(self, e):                       # the actions that the event is
            return Call("transfer", (e["from"], e["to"]))

        def after(self, e):                       # what the event shows of the state after it
            return [Seen("balance", f'balance[{e["from"]}]', e["after"])]

An event is one action; or several in a row (a tuple of calls); or one of several alternatives (`Ways`), if
the recording does not determine which.  A line that may be several equal steps, whose number is not in the
recording, is `Repeated`, within bounds.  An argument that the event does not have is `ANY`.  A seen
value is an expression of the spec and its plain value; what is not logged is unknown and not compared.

A tracing is created for each recording, so it may have memory: an event that is impossible because of
earlier ones raises `ImpossibleEvent`.

Not here: the search (`validate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, overload

from msgspec import Struct

from specchk.conform.contract.failures import LEAVING, described, is_implementations
from specchk.conform.contract.recording import Event, Recording, Unreadable, decode, read_bytes
from specchk.conform.contract.values import LASTING, words
from specchk.ir.program import Program

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "_specchk_reads"


class Any_:  # noqa: N801 - the type of one value
    """The type of `ANY`."""

    def __repr__(self) -> str:
        return "?"


ANY = Any_()
LASTING_ARGS = LASTING | {Any_}


class ImpossibleEvent(Exception):
    """Raised by a tracing: an earlier event rules this one out; the text gives the reason."""


class BeyondBounds(ImpossibleEvent):
    """An event with an argument above a horizon: a model with larger bounds may explain it."""


class Call(Struct, frozen=True):
    """An action of the spec with plain arguments, any of which may be `ANY`."""

    action: str
    args: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.args, tuple | list):
            raise TypeError(
                f"the arguments of `{self.action}` are {self.args!r}, and not a tuple: ({self.args!r},)"
            )

    def __str__(self) -> str:
        return f"{self.action}({', '.join(map(words, self.args))})"


class Repeated(Struct, frozen=True):
    """A call that an event may represent repeatedly: at least `least`, at most `most` times."""

    call: Call
    least: int
    most: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or self.most < 1:
            raise ValueError(f"{self.call} cannot be repeated {self.least} to {self.most} times")

    def __str__(self) -> str:
        return f"{self.call} {self.least} to {self.most} times"


TracedStep = Call | Repeated


class Seen(NamedTuple):
    """A field of the recording: an expression of the spec, and its recorded plain value.

    A named tuple, since an event has some fifteen of them and a campaign a million.
    """

    field: str
    expression: str
    value: Any


class SeenTogether(Sequence[Seen]):
    """Fields shown by an event, as pairs of a name and an expression, and their values.

    A tracing may give it in place of a list of `Seen`, which takes longer: most events show the same fields.
    """

    __slots__ = ("fields", "values")

    def __init__(self, fields: tuple[tuple[str, str], ...], values: Sequence[Any]) -> None:
        self.fields, self.values = fields, values

    @classmethod
    def of(cls, seen: Iterable[Seen]) -> Self:
        """The same fields as a list of `Seen`."""
        every = tuple(seen)
        return cls(tuple([(name, text) for name, text, _ in every]), [value for _, _, value in every])

    def __len__(self) -> int:
        return len(self.fields)

    @overload
    def __getitem__(self, at: int) -> Seen: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Seen]: ...
    def __getitem__(self, at: int | slice) -> Seen | Sequence[Seen]:
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self)))]
        return Seen(*self.fields[at], self.values[at])


class Ways(NamedTuple):
    """The possible readings of an event: each is a sequence of steps, empty for no step."""

    ways: tuple[tuple[TracedStep, ...], ...]


class Meaning(NamedTuple):
    """The meaning of an event in terms of the spec."""

    ways: tuple[tuple[TracedStep, ...], ...]
    seen: Sequence[Seen]
    near: Sequence[Call] | None = None  # the silent steps that may come right before; None for all


def may_be_no_step(ways: Iterable[Sequence[TracedStep]]) -> bool:
    """Whether an explanation of an event may take no step."""
    return any(all(isinstance(step, Repeated) and not step.least for step in way) for way in ways)


def event(*names: str) -> Callable[[F], F]:
    """Mark the method that maps the events with these names to actions."""

    def mark(function: F) -> F:
        setattr(function, _MARK, names)
        return function

    return mark


class Tracing:
    """The base of all tracings; `program` is the spec with the constants that the recording needs.

    `reads` is the supported format of recordings; `silent` are the actions that leave no event,
    of which at most `most_silent` are taken in a row; `rare` are events that a campaign need not have, and
    `ignored` kinds of lines of a log that are no events (`LogTracing`), or patterns of them as in `failed *`,
    each with its reason.
    """

    spec: ClassVar[str] = ""
    model: ClassVar[str | None] = None
    reads: ClassVar[str] = ""
    silent: ClassVar[tuple[str, ...]] = ()
    most_silent: ClassVar[int] = 3
    rare: ClassVar[Mapping[str, str]] = {}
    ignored: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: Program, recording: Recording) -> None:
        self.program = program
        self.recording = recording
        # By name: methods of this tracing would refer to it, and it would last until the collector runs.
        self._methods = self.events()

    def again(self) -> Self:
        """A new tracing of the same recording, at its beginning."""
        return type(self)(self.program, self.recording)

    @classmethod
    def decoded(cls, name: str, files: Mapping[str, bytes]) -> Recording:
        """The recording in the bytes of its file, by the file's name; raises `Unreadable`."""
        (data,) = files.values()
        return decode(name, data)

    @classmethod
    def read(cls, path: Path) -> Recording:
        """The recording in a file; raises `Unreadable`."""
        return cls.decoded(path.name, {path.name: read_bytes(path)})

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """The overrides, as for `--set`, that make the model large enough for the recording."""
        del recording
        return {}

    @classmethod
    def events(cls) -> dict[str, str]:
        """The supported events, each with its method."""
        methods = {}
        for base in reversed(cls.__mro__):
            # Base classes first, so that a method that is overridden reads the event.
            marked = {name: f for name, f in vars(base).items() if hasattr(f, _MARK)}
            methods.update({kind: name for name, f in marked.items() for kind in getattr(f, _MARK)})
        return methods

    def after(self, found: Event) -> Iterable[Seen]:
        """The part of the state after an event that is recorded."""
        del found
        return ()

    def place(self, found: Event) -> str:
        """An event in a report: its line, and the method that reads it."""
        line, method = found.get("place", self.recording.name), self._methods.get(found["event"], "")
        return f"{line}: the event `{found['event']}` (`{type(self).__name__}.{method}`)"

    def near(self, found: Event) -> Sequence[Call] | None:
        """The silent steps that an event may need just before it; None for all instances of all actions."""
        del found
        return None

    def meaning(self, found: Event) -> Meaning:
        """The meaning of an event in terms of the spec.

        Raises `ImpossibleEvent`, also for an event that has no method, and `Unreadable` for one of which its
        method cannot be computed.
        """
        method = self._methods.get(found["event"])
        if method is None:
            known = ", ".join(sorted(self._methods))
            raise ImpossibleEvent(f"no method reads the event `{found['event']}`; known events: {known}")
        try:
            reading = getattr(self, method)(found)
            seen = self.after(found)
            if seen.__class__ is not SeenTogether:
                seen = SeenTogether.of(seen)
            # Now, since a tracing may have read more where an event is taken again.
            near = self.near(found) if self.silent else None
        # The exceptions of a missing or odd field: the recording is wrong, or the tracing; neither may end a
        # campaign, and neither is a fault of the system.
        except LEAVING as error:
            if isinstance(error, ImpossibleEvent) or not is_implementations(error):
                raise
            kind, reason = described(error)
            raise Unreadable(f"{self.place(found)} cannot be read: {reason or kind}") from error
        # The short forms of the user's class become the long one here, and nowhere else.
        ways = reading.ways if isinstance(reading, Ways) else (reading,)
        # A tuple of such is left as it is, since a tracing may give the same one for many events.
        if not all(way.__class__ is tuple for way in ways):
            ways = tuple([way if isinstance(way, tuple) else (way,) for way in ways])
        for step in chain(*ways, near or ()):
            if not isinstance(step, Call | Repeated):
                words = f"it gives {step!r}, and not a `Call`, a tuple of calls or `Ways` of such"
                raise Unreadable(f"{self.place(found)} cannot be read: {words}")
        return Meaning(ways, seen, near)
