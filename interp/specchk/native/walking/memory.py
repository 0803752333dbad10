"""The memory of random walks: workers' blocks, results of a round's walks, and the states seen.

Distinct states are counted in a table of their hashes, up to `COUNTED` of them: a simulation may run for
days, and its memory must not keep growing.  Two states that share a hash of 64 bits are counted once;
in a full table the probability that any two do is below 2^-19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.native.machine.frames import most_successors, records_of
from specchk.native.machine.layout import StateLayout, mask
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words
from specchk.native.store import WorkerBlock, wait
from specchk.native.walking.frames import END_BITS, REACHED_WORDS, WalkControl, WalkEnd, WalkThread

COUNTED = 1 << 23
FIRST_SLOTS = 1 << 16
LOAD = 0.5


class WalkWorker(WorkerBlock):
    """One worker that walks."""

    def __init__(self, program: Program, layout: StateLayout) -> None:
        self._actions, points = len(program.actions), len(program.points)
        self._taken = Words(2 * self._actions + 1)
        self._records = Words(REACHED_WORDS * len(records_of(program)))
        # A region gets pages when they are used: most states have few successors.
        successors = Region(8 * (most_successors(program) + 1) * layout.words)
        super().__init__(points, WalkThread.COUNTS + points, {
            WalkThread.HERE: Words(layout.words), WalkThread.ACTIONS: self._taken,
            WalkThread.REACHED: self._records, WalkThread.SUCCESSORS: successors,
        })  # fmt: skip

    @property
    def taken(self) -> tuple[int, ...]:
        """The number of steps of each action."""
        return self._taken.read(0, self._actions)

    @property
    def longest(self) -> int:
        """The number of steps of its longest walk, including the current one."""
        present = self[WalkThread.STEP] if self[WalkThread.IS_WALKING] else 0
        return max(self[WalkThread.LONGEST], present)

    def reached(self, record: int) -> tuple[int, int] | None:
        """The first walk and step in which a witness was true."""
        is_reached, walk, step = self._records.read(REACHED_WORDS * record, REACHED_WORDS)
        return (walk, step) if is_reached else None


class WalkMemory:
    """All memory used by the kernel of walks."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, initial: Sequence[State], workers: int
    ) -> None:
        self.layout = layout
        self.kernel = kernel
        self.workers = [WalkWorker(program, layout) for _ in range(workers)]
        self._guide = WalkWorker(program, layout)  # of walks that are taken again
        self.control = Words(WalkControl.SIZE)
        self._starts = Words.of(layout.packed(initial))
        self._weights = Words(len(program.actions))
        self._ends = Words(1)
        self._pool = ThreadPoolExecutor(workers)
        self._table = Region(8)
        self._slots = 1
        self.control[WalkControl.STARTS] = self._starts.address
        self.control[WalkControl.START_COUNT] = len(initial)
        self._new_table(FIRST_SLOTS)

    def set_walks(self, key: int, depth: int) -> None:
        """Set the seed and the maximal length of the walks."""
        # A word has 64 bits, and no walk takes so many steps.
        self.control[WalkControl.KEY], self.control[WalkControl.DEPTH] = key, min(depth, mask(63))

    def set_weights(self, weights: Sequence[int]) -> None:
        """Prefer some actions from now on, in every second walk."""
        self._weights.fill(list(weights))
        self.control[WalkControl.WEIGHTS] = self._weights.address

    def set_round(self, first: int, count: int) -> None:
        """Set the walks that `work` takes."""
        self._ends = Words(count * (self.layout.words + 1))
        _aim(self.control, first, count, self._ends)

    @property
    def is_round_done(self) -> bool:
        """Whether no walk of the round is left."""
        over = self.control[WalkControl.CURSOR] > self.control[WalkControl.LAST]
        return over and not any(worker[WalkThread.IS_WALKING] for worker in self.workers)

    def work(self, looking: Callable[[], bool]) -> None:
        """Run the workers until the round is done or they stop."""
        # Now, while no worker runs: a larger table is filled from the smaller one.
        self._share_table()
        self.control[WalkControl.STOP] = 0
        wait([self._pool.submit(self._run, worker) for worker in self.workers], looking, self.control)

    def _run(self, worker: WalkWorker) -> None:
        self.kernel.call["walk"](self.control.address, worker.block.address)

    @property
    def seen(self) -> int:
        """The number of distinct states seen, at most `COUNTED`."""
        return min(self.total(WalkThread.NEW), COUNTED)

    def _share_table(self) -> None:
        """Give each worker a share of the room in the table, enlarging it if necessary."""
        used = self.total(WalkThread.NEW)
        while self._slots * LOAD < COUNTED and used > self._slots * LOAD * 3 / 4:
            self._new_table(4 * self._slots)
        # Quotas instead of a common count: workers meet in the table only, and none can fill it up.
        share = 0 if used >= COUNTED else int(self._slots * LOAD - used) // len(self.workers) + 1
        for worker in self.workers:
            worker.block[WalkThread.QUOTA] = worker[WalkThread.NEW] + share if share else 0

    def _new_table(self, slots: int) -> None:
        old, old_slots = self._table, self._slots
        self._table, self._slots = Region(8 * slots), slots
        self.control[WalkControl.TABLE], self.control[WalkControl.MASK] = self._table.address, slots - 1
        self.kernel.call["refill"](self.control.address, old.address, old_slots)
        old.release()

    def ends(self) -> Iterator[tuple[int, WalkEnd, int]]:
        """The finished walks of the round: number, kind of end, and number of steps."""
        first, size = self.control[WalkControl.FIRST], self.layout.words + 1
        count = self.control[WalkControl.LAST] - first + 1
        for walk, code in enumerate(self._ends.read(0, count * size, size), first):
            if code:
                yield walk, WalkEnd(code & ((1 << END_BITS) - 1)), code >> END_BITS

    def last_state(self, walk: int) -> State:
        """The last state of a walk of the round."""
        size = self.layout.words + 1
        first = (walk - self.control[WalkControl.FIRST]) * size + 1
        return self.layout.unpack(self._ends.read(first, self.layout.words))

    def path(self, walk: int, steps: int) -> list[State]:
        """The states of a walk up to a step, found by repeating the walk."""
        words = self.layout.words
        # With a worker and a control block of its own, so that the counts of the walks do not change.
        control, guide = Words(WalkControl.SIZE), self._guide
        control.fill(list(self.control.read(0, WalkControl.SIZE)))
        ends, states = Words(words + 1), Region(8 * words * (steps + 1))
        try:
            _aim(control, walk, 1, ends)
            control[WalkControl.STOP] = 0
            control[WalkControl.DEPTH] = steps
            guide.block[WalkThread.PATH] = states.address
            self.kernel.call["walk"](control.address, guide.block.address)
            data = states.view(0, states.size).cast("Q")
            return [self.layout.unpack(tuple(data[words * i : words * (i + 1)])) for i in range(steps + 1)]
        finally:
            states.release()

    @property
    def taken(self) -> tuple[int, ...]:
        """The number of steps of each action."""
        return tuple(map(sum, zip(*(worker.taken for worker in self.workers), strict=True)))

    @property
    def longest(self) -> int:
        """The number of steps of the longest walk, including unfinished ones."""
        return max(worker.longest for worker in self.workers)

    def total(self, word: WalkThread) -> int:
        """The sum over all workers."""
        return sum(worker[word] for worker in self.workers)

    def release(self) -> None:
        """Free all memory."""
        self._pool.shutdown()
        self._table.release()
        for worker in (*self.workers, self._guide):
            worker.release()


def _aim(control: Words, first: int, count: int, ends: Words) -> None:
    """Set the walks that the kernel is to take."""
    for word, value in ((WalkControl.FIRST, first), (WalkControl.CURSOR, first),
                        (WalkControl.LAST, first + count - 1), (WalkControl.ENDS, ends.address)):  # fmt: skip
        control[word] = value
