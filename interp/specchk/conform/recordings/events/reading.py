"""Events as values of the spec: the possible instances of each, and its fields.

Some are read ahead: in turns with steps of the spec reading takes nearly twice as long, since the code of
neither stays in the processor's caches.

Not here: the meaning of an event (`contract.tracing`), and whether a state permits it (`validate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from specchk.conform.contract.recording import Event
from specchk.conform.contract.tracing import ImpossibleEvent, Meaning, Tracing
from specchk.conform.recordings.events.called import CalledInstances, SpecWays
from specchk.conform.recordings.events.fields import Fields, WantedValues

READ_AHEAD = 512  # events


class ReadEvent(NamedTuple):
    """A meaning, also as values of the spec; `refusal` if the spec lacks an action or argument of it.

    `lasts` is whether a tracing that reads on cannot change a value of the meaning.
    """

    meaning: Meaning
    ways: SpecWays
    may_be_no_step: bool
    shown: WantedValues | None
    lasts: bool
    refusal: ImpossibleEvent | None = None


class EventReader:
    """Reads events for one program."""

    def __init__(self, instances: CalledInstances, fields: Fields) -> None:
        self.instances, self.fields = instances, fields

    def read(self, meaning: Meaning) -> ReadEvent:
        """A meaning as values of the spec; raises `SpecError` for a field that is not a valid expression."""
        instances, fields = self.instances, self.fields
        changing = instances.changing + fields.changing
        try:
            ways, may_be_no_step = instances.of_ways(meaning.ways)
        except ImpossibleEvent as error:
            return ReadEvent(meaning, (), False, None, False, error)
        shown = fields.wanted(meaning.seen) if meaning.seen else None
        lasts = changing == instances.changing + fields.changing
        return ReadEvent(meaning, ways, may_be_no_step, shown, lasts)

    def ahead(self, tracing: Tracing, events: Sequence[Event]) -> Iterator[ReadEvent]:
        """Each event, read ahead; an exception of the tracing is raised at its event."""
        ahead: list[ReadEvent] = []
        try:
            for event in events:
                read = self.read(tracing.meaning(event))
                ahead.append(read)
                if not read.lasts or len(ahead) == READ_AHEAD:
                    yield from ahead
                    ahead.clear()
        except Exception:
            yield from ahead  # the events before it are explained first
            raise
        yield from ahead
