"""Notes on the slices of a search: its levels, and the tables beyond those needed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from specchk.spark.states.slices import Slice


class TableCount(Struct):
    """The number of tables with which slices were computed, and of slices whose table lacked levels."""

    slices: int = 0
    caught_up: int = 0
    _tables: dict[tuple[int, int], int] = field(default_factory=dict)
    _needed: dict[int, int] = field(default_factory=dict)

    def add(self, slices: Sequence[Slice]) -> None:
        """Count the slices of a level."""
        for about in slices:
            self.slices += 1
            self.caught_up += about.caught_up > 0
            # A table that its partition has left behind counts with its last contents.
            self._tables[about.place, about.partition] = about.table
            self._needed[about.partition] = about.table

    @property
    def ratio(self) -> float:
        """The number of states in all tables per known state."""
        return sum(self._tables.values()) / max(1, sum(self._needed.values()))

    def note(self, slices: Sequence[Slice], level: int, seconds: float) -> str:
        """A report on the last slices, the number of tables so far, and the seconds of the level."""
        size, outside = sum(about.inside for about in slices), sum(about.outside for about in slices)
        again = sum(about.tally.generated for about in slices) - size - outside
        sent = sum(about.received_bytes for about in slices) / (1 << 20)
        skew = max(about.inside for about in slices) * len(slices) / max(1, size)
        found = f"{size} new, {again} again, {sent:.1f} MB shuffled, skew {skew:.2f}"
        rebuilt = f"{self.caught_up} of {self.slices} slices with a table rebuilt, tables {self.ratio:.2f}x"
        return f"level {level}: {found}, {rebuilt}, {seconds:.2f} s"
