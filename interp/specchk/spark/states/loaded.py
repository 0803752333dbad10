"""The states of a ledger in the driver's memory, for checking temporal properties.

All slices become one store of the native engine, and `native.regions` continues there, with its verdicts and
lassos, which depend neither on the numbers of states nor on who found them.  Steps are computed again, not
read from tasks: finding the state at the end of a step that was read would take the driver as long.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from specchk.meaning.behaviours.fairness import FairSteps
from specchk.native.explain import Explainer
from specchk.native.machine.layout import layout_of
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.runs import Run
from specchk.native.regions import StepsOfSearch
from specchk.native.store import Store
from specchk.native.tiers import LONG
from specchk.processes import cores
from specchk.search.budget import resident_bytes
from specchk.search.engine import Totals
from specchk.search.liveness.regions import Look
from specchk.spark.states.memory import free_bytes
from specchk.spark.states.slices import Slices

REGION_BYTES = 12  # of a state, beside itself and the table: its place, its component, where it waits


class Crowded(Exception):
    """The driver has no room for the states; the text gives the bytes."""


class LedgerStates(Struct, frozen=True):
    """The levels of a search that has ended, with their numbers of states."""

    slices: Slices
    partitions: int
    sizes: Sequence[int]
    totals: Totals

    def steps(self, fair: FairSteps, kernel: Loaded, look: Look, limit: int | None) -> StepsOfSearch:
        """The step graph; `kernel` is that of the exchanging engine.

        `Crowded` above a limit of memory in bytes, or above what is free; `SpoiledSlice`.
        """
        program, totals = fair.program, self.totals
        store = Store(program, layout_of(program), kernel, cores())
        try:
            self._require_room(store, limit)
            levels = [self._loaded(store, level, look) for level in range(len(self.sizes))]
            # The last one: no state is skipped, since a model with `ignore` is refused.
            counted = (totals.generated, totals.cuts, totals.distinct, int(totals.outside), 0)
            used = sum(self.sizes)
            store.restore(used, [(0, used)], counted, totals.coverage)
            explain = Explainer(program, store.layout, store.predecessor, None)
            is_long = totals.generated >= LONG
            return StepsOfSearch(fair, program, store, explain, levels, look, compact=False, is_long=is_long)
        except BaseException:
            store.release()
            raise

    def _require_room(self, store: Store, limit: int | None) -> None:
        """Raise `Crowded` if the states do not fit, before hours of work are lost to a killed process."""
        states = sum(self.sizes)
        needed = states * (store.state_bytes + REGION_BYTES) + 8 * store.slots_for(states)
        graph = f"the step graph of {states} states needs {needed} bytes in the driver"
        if limit is not None and resident_bytes() + needed > limit:
            raise Crowded(f"{graph}, more than the limit of {limit} bytes of memory (--max-memory) leaves")
        free = free_bytes()
        if 0 < free < needed:  # 0: the system does not report it
            raise Crowded(f"{graph}, and {free} are free")

    def _loaded(self, store: Store, level: int, look: Look) -> list[Run]:
        """Read the states of a level after those of the levels before it."""
        begin = first = sum(self.sizes[:level])
        for partition in range(self.partitions):
            look(first, 0, 0)
            with self.slices.open(level, partition) as opened:
                about, size = opened.about, store.state_bytes
                # The states outside the constraints come after the others, and are overwritten by the next
                # slice: no step graph has them.
                opened.fill(store.states.view(first * size, (about.inside + about.outside) * size))
                first += about.inside
        return [(begin, first - begin)]
