"""The states and steps of a search that has ended, for each kind of engine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, islice, pairwise
from typing import Any, Protocol

import pyarrow as pa

from specchk.export.columns import values_of
from specchk.export.names import names_of, require_distinct
from specchk.export.packed import PackedWriter, Written
from specchk.export.parts import Draft, TableWriter
from specchk.export.schemas import EDGES, states_schema
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, show
from specchk.native.engine import NativeEngine
from specchk.native.machine.runs import Run
from specchk.native.tiers import load_edges
from specchk.search.reference import ReferenceEngine

ROWS = 1 << 14  # states of the reference engine that are columns at once


class SpaceSource(Protocol):
    """Writes the states and steps of an ended search, and names states of its traces."""

    def write(self, draft: Draft) -> Written:
        """Write `states` and `edges`."""

    def names(self, states: list[State]) -> list[int | None]:
        """The ids of the kept representatives of some states; None for one that is not in `states`."""


class NativeSource:
    """A native engine whose store was not released."""

    def __init__(self, engine: NativeEngine) -> None:
        self.engine = engine
        self.kernel = load_edges(
            engine.roomy, engine.store.layout, engine.source.renamings, is_long=engine.is_long
        )

    def write(self, draft: Draft) -> Written:
        """See `SpaceSource`."""
        runs = list(self._runs())
        writers = len(self.engine.store.workers)
        # Pieces in turn: all writers have some of each level, and the same ones in each run of the program.
        pieces = [list(islice(runs, start, None, writers)) for start in range(writers)]
        written = Written()
        # Threads are enough: the kernel and Arrow release the interpreter lock.
        with ThreadPoolExecutor(writers) as pool:
            for part in pool.map(lambda writer: self._write(draft, writer, pieces[writer]), range(writers)):
                written.add(part)
        require_distinct(self.kernel, written.names)
        return written

    def _write(self, draft: Draft, number: int, runs: list[tuple[int, Run, bool]]) -> Written:
        store = self.engine.store
        writer = PackedWriter(self.engine.program, store.layout, self.kernel, draft, number)
        try:
            for level, (first, count), expanded in runs:
                writer.add(level, store.states.address + first * store.state_bytes, count, expanded=expanded)
            return writer.close()
        finally:
            writer.release()

    def _runs(self) -> Iterator[tuple[int, Run, bool]]:
        """All states, by level: runs of at most a block, and whether they were expanded."""
        engine = self.engine
        # An interruption leaves runs with the workers.
        last = engine.following + engine.store.end_runs()
        rest = engine.store.unexpanded() if engine.levels else []
        for level, runs in enumerate(engine.levels, 1):
            for run in runs:
                for part, expanded in _split(run, rest if level == len(engine.levels) else []):
                    yield level, part, expanded
        for run in last:
            yield len(engine.levels) + 1, run, False

    def names(self, states: list[State]) -> list[int | None]:
        """See `SpaceSource`."""
        return names_of(states, self.engine.program, self.engine.store.layout, self.kernel)


def _split(run: Run, rest: list[Run]) -> Iterator[tuple[Run, bool]]:
    """The parts of a run, each with whether it is outside the other runs."""
    first, end = run[0], sum(run)
    inside = [(max(first, start), min(end, start + count)) for start, count in rest]
    cuts = sorted({first, end, *(at for low, high in inside if low < high for at in (low, high))})
    for low, high in pairwise(cuts):
        yield (low, high - low), not any(a <= low and high <= b for a, b in inside)


class ReferenceSource:
    """A reference engine; a state's name is its number."""

    def __init__(self, engine: ReferenceEngine) -> None:
        self.engine = engine
        self.numbers = {state: number for number, state in enumerate(engine.parents)}

    def write(self, draft: Draft) -> Written:
        """See `SpaceSource`."""
        engine, written = self.engine, Written()
        schema = states_schema(engine.program)
        states = TableWriter(draft, "states", schema)
        edges = TableWriter(draft, "edges", EDGES)
        stepper = Stepper(engine.program)
        for level, expanded, block in self._blocks():
            numbers = [self.numbers[state] for state in block]
            columns = values_of(block, [variable.type for variable in engine.program.variables])
            about = [
                pa.array(numbers),
                pa.array([level] * len(block), pa.int32()),
                pa.array([expanded] * len(block)),
            ]
            states.add(pa.Table.from_arrays([*about, *columns], schema=schema))
            written.states[level] += len(block)
            if expanded:
                written.expanded[level] += len(block)
                steps = [step for state in block for step in self._steps(stepper, state)]
                written.edges[level] += len(steps)
                edges.add(pa.Table.from_pylist(steps, schema=EDGES))
        written.parts += states.close() + edges.close()
        return written

    def _blocks(self) -> Iterator[tuple[int, bool, list[State]]]:
        """The states in the order of discovery, split where the level or the expansion ends."""
        engine = self.engine
        every = iter(engine.parents)
        ends = [*accumulate(engine.search.levels), len(engine.parents)]  # last: states after the whole levels
        at = 0
        for level, end in enumerate(ends, 1):
            for stop in sorted({min(max(engine.expanded, at), end), end}):
                while at < stop:
                    block = list(islice(every, min(ROWS, stop - at)))
                    yield level, at < engine.expanded, block
                    at += len(block)

    def _steps(self, stepper: Stepper, state: State) -> Iterator[dict[str, Any]]:
        program = self.engine.program
        try:
            successors = stepper.successors(state)
        except Faulty:
            return
        for index, args, after in successors:
            action = program.actions[index]
            shown = [show(arg, param.type) for arg, param in zip(args, action.params, strict=True)]
            target = self._number(after)
            yield {"source": self.numbers[state], "target": target, "action": action.name, "args": shown}

    def _number(self, state: State) -> int | None:
        """The number of the kept representative of a state."""
        symmetry = self.engine.symmetry
        return self.numbers.get(state if symmetry is None else symmetry.canonical(state))

    def names(self, states: list[State]) -> list[int | None]:
        """See `SpaceSource`."""
        return [self._number(state) for state in states]
