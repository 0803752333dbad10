"""The memory of a search: states, the table over them, and the workers' blocks.

States are numbered in one array that never moves; the table, whose code is `kernel.table_kernel`, is rebuilt
from it when it doubles.  A worker takes numbers in chunks, so a level is a list of runs `(first, count)`, and
what a worker has not used of its chunk is free until it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain

from msgspec import Struct

from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.native.machine import frames
from specchk.native.machine.frames import SharedWord, Thread
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded, resting
from specchk.native.machine.memory import Region, Words, address_space
from specchk.native.machine.runs import Run, ends_of, pieces, sampled, without
from specchk.native.machine.slots import LOAD, fast_until, first_slots, grown

TOTALS = (Thread.GENERATED, Thread.CUTS, Thread.NEW, Thread.OUTSIDE, Thread.SKIPPED)
# 4 TiB are reserved, hardly any is used: the array never moves, so its address is a constant of every loop.
ADDRESS_SPACE = 1 << 42
# Small enough that all have work at the end of a level, large enough that the cursor is not contended.
PIECE = 512  # states in a piece of work
# The longest delay of a limit, Control-C or progress; the workers themselves are not slowed down by it.
WAIT_S = 0.05


class NotedState(Struct, frozen=True):
    """A record filled in a level: its position, the state, and the state after."""

    record: int
    state: tuple[int, ...]
    after: tuple[int, ...]


class WorkerBlock:
    """A worker's block, with coverage counts at its end, and the buffers to which it points."""

    def __init__(self, points: int, size: int, buffers: Mapping[int, Words | Region]) -> None:
        self._points = points
        self.block = Words(size)
        self._buffers = buffers
        for word, buffer in buffers.items():
            self.block[word] = buffer.address

    def __getitem__(self, word: int) -> int:
        return self.block[word]

    @property
    def counts(self) -> tuple[int, ...]:
        """The coverage counts so far."""
        return self.block.read(Thread.COUNTS, self._points)

    def release(self) -> None:
        """Free the buffers."""
        for buffer in self._buffers.values():
            if isinstance(buffer, Region):
                buffer.release()


class Worker(WorkerBlock):
    """One worker of a search."""

    def __init__(self, program: Program, layout: StateLayout, room: int) -> None:
        self.words = layout.words
        self.records = frames.records_of(program)
        # The kernel requests a pause at MAX_RUNS / 2, but ends its batch first, of at most `room` states; if
        # every other one is outside a constraint, each of the rest is a run of its own.
        self._runs = Words(2 * (frames.MAX_RUNS + room))
        self._records = Words(len(self.records) * frames.record_words(self.words))
        points = len(program.points)
        # Room for the coverage twice: to take back that of one state, it is counted again.  Regions get pages
        # when they are used: of the room for a million successors, most states use a few lines.
        super().__init__(points, Thread.COUNTS + 2 * points, {
            Thread.RUN_LIST: self._runs, Thread.RECORDS: self._records,
            Thread.PENDING: Region(8 * room * self.words), Thread.HASHES: Region(8 * room),
        })  # fmt: skip

    def drain(self) -> list[Run]:
        """Remove and return the completed runs of new states."""
        # Read while no worker runs: the kernel writes pairs and count without any order between them.
        pairs = self._runs.read(0, 2 * self.block[Thread.RUNS])
        self.block[Thread.RUNS] = 0
        return list(zip(pairs[::2], pairs[1::2], strict=True))

    def end_run(self) -> list[Run]:
        """Remove and return all runs; the next state starts a new one."""
        runs, first, free = self.drain(), self.block[Thread.RUN], self.block[Thread.FREE]
        self.block[Thread.RUN] = free
        return [*runs, (first, free - first)] if free > first else runs

    def note(self, noted: NotedState) -> None:
        """Fill a record."""
        for index, word in enumerate((1, *noted.state, *noted.after)):
            self._records[noted.record * frames.record_words(self.words) + index] = word

    def forget(self) -> None:
        """Clear the records."""
        for index in range(len(self.records)):
            # The first word is 1 where a record is filled, so the others need not be cleared.
            self._records[index * frames.record_words(self.words)] = 0

    def found(self) -> Iterator[NotedState]:
        """The contents of the records."""
        size = frames.record_words(self.words)
        for index in range(len(self.records)):
            if self._records[index * size]:
                both = self._records.read(index * size + 1, 2 * self.words)
                yield NotedState(index, both[: self.words], both[self.words :])


class Store:
    """The states, table and workers of one search."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, workers: int, limit: int | None = None,
        expected: int = 0,
    ) -> None:  # fmt: skip
        self._fast_until = fast_until(limit)
        self.layout = layout
        self.kernel = kernel
        if program.ignored:
            workers = 1  # of equivalent states the first is kept: with several workers that would be chance
        self.control = Words(SharedWord.SIZE)
        self.room = frames.most_successors(program) + frames.BATCH + 1
        self.workers = [Worker(program, layout, self.room) for _ in range(workers)]
        # Scouts expand levels again for traces, with blocks of their own: totals stay those of the search.
        self.scouts = [Worker(program, layout, self.room) for _ in range(workers)]
        self.states = Region(address_space(ADDRESS_SPACE))
        self.holes: list[Run] = []  # numbers that a resumed search leaves unused
        self.table: Region | None = None
        # Threads suffice: ctypes releases the interpreter's lock while a kernel runs; all share one table.
        self._pool = ThreadPoolExecutor(workers)
        self._work = Words(1)
        self.control[SharedWord.STATES] = self.states.address
        self._new_table(first_slots(self.slack, expected, limit))

    @property
    def slack(self) -> int:
        """The number of states that workers may add after a request to stop."""
        # A worker has at most one batch in hand, and the chunks around it.
        return len(self.workers) * (2 * frames.CHUNK + self.room)

    @property
    def state_bytes(self) -> int:
        """The number of bytes of one state."""
        return 8 * self.layout.words

    @property
    def used(self) -> int:
        """The number of state numbers assigned."""
        return self.control[SharedWord.NEXT]

    def _new_table(self, slots: int) -> None:
        if self.room_for(slots) > self.states.size:
            raise MemoryError("more states than their array has room for")
        if self.table is not None:
            # Released first: both tables at once would be the peak of the memory, and the states contain all
            # that is in the table.
            self.table.release()
        self.table = Region(8 * slots)
        self.slots = slots
        self.control[SharedWord.TABLE] = self.table.address
        self.control[SharedWord.MASK] = slots - 1
        self.control[SharedWord.LIMIT] = int(slots * LOAD)

    def room_for(self, slots: int) -> int:
        """The bytes of all states until a table must grow, and of those that workers add after STOP."""
        return (int(slots * LOAD) + self.slack) * self.state_bytes

    def slots_for(self, states: int) -> int:
        """Slots of a table for so many states, and all that the workers may add before they stop."""
        return grown(self.slots, states + self.slack, self._fast_until)

    def grow(self, slots: int) -> None:
        """Replace the table by one with more slots, filled from the states."""
        self._new_table(slots)
        # Numbers of no state are left out: their words, zeroes or those of a lost race, would be entered.
        ranges = self.taken()
        # Not below 16 384 states: a task has a price, and small tables are filled by one thread.
        share = max(1 << 14, self.used // len(self.workers) + 1)
        rehash = partial(self.kernel.call["rehash"], self.control.address)
        self._each_task([partial(rehash, first, end) for first, end in pieces(ranges, share)])

    def _each_task(self, tasks: Sequence[Callable[[], None]]) -> None:
        if len(tasks) == 1:
            tasks[0]()
            return
        for future in [self._pool.submit(task) for task in tasks]:
            future.result()

    def taken(self) -> list[Run]:
        """The numbers of all states as ranges (first, end)."""
        free = [
            (w[Thread.FREE], w[Thread.FREE_END]) for w in self.workers if w[Thread.FREE] < w[Thread.FREE_END]
        ]
        return without([(0, self.used)], sorted(free + self.holes))

    def restore(self, used: int, taken: Sequence[Run], totals: Sequence[int], counts: Sequence[int]) -> None:
        """Continue with states that are already in memory."""
        self.control[SharedWord.NEXT] = used
        # What was free when the checkpoint was written is lost for good: workers begin with chunks of their
        # own.
        self.holes += without([(0, used)], taken)
        # Only sums count, so the first worker gets them, whatever the number of workers was then.
        for word, value in zip(TOTALS, totals, strict=True):
            self.workers[0].block[word] = value
        for point, count in enumerate(counts):
            self.workers[0].block[Thread.COUNTS + point] = count
        self.grow(self.slots_for(self.used))

    def is_kept(self, states: Sequence[State]) -> bool:
        """Whether the table has all of some states, or their renamings; a missing one is added."""
        scout = self.scouts[0]
        free = scout[Thread.FREE]
        self.add(states, scout)
        return scout[Thread.FREE] == free

    def add(self, states: Sequence[State], worker: Worker | None = None) -> None:
        """Add initial states, at most `CHUNK` of them, by the first worker or by another one."""
        # The kernel makes the states canonical in place, so it gets copies.
        words, thread = Words.of(self.layout.packed(states)), (worker or self.workers[0]).block.address
        add, control = self.kernel.call["add"], self.control.address
        for index in range(len(states)):
            add(control, thread, words.address + index * self.state_bytes)

    def set_work(self, runs: Sequence[Run]) -> None:
        """Set the states that `work` is to expand."""
        work = pieces(ends_of(runs), PIECE)
        # Kept in the object, because the kernel has only its address.
        self._work = Words(2 * len(work) + 1)
        self._work.fill([word for first, end in work for word in (first, end - first)])
        self.control[SharedWord.WORK] = self._work.address
        self.control[SharedWord.WORK_END] = len(work)
        self.control[SharedWord.CURSOR] = 0

    @property
    def is_level_done(self) -> bool:
        """Whether the level is completely expanded."""
        # Both, since a worker that stopped may have a piece in hand after the list is used up.
        pieces = all(worker[Thread.PIECE] == worker[Thread.PIECE_END] for worker in self.workers)
        return pieces and self.control[SharedWord.CURSOR] >= self.control[SharedWord.WORK_END]

    def unexpanded(self) -> list[Run]:
        """The rest of the level; valid while no worker runs."""
        rest = [(w[Thread.PIECE], w[Thread.PIECE_END] - w[Thread.PIECE]) for w in self.workers]
        first, end = self.control[SharedWord.CURSOR], self.control[SharedWord.WORK_END]
        rest += [(self._work[2 * i], self._work[2 * i + 1]) for i in range(first, end)]
        return [run for run in rest if run[1]]

    def work(self, looking: Callable[[], bool]) -> None:
        """Run the workers until the level is done or they stop.

        `looking`, called now and then, returns whether they should.
        """
        self.control[SharedWord.STOP] = 0
        many = self.control[SharedWord.WORK_END] - self.control[SharedWord.CURSOR]
        active = [w for w in self.workers if w[Thread.PIECE] != w[Thread.PIECE_END]]
        # A level this small is over before a second thread has begun.
        is_small = many <= 2 and not active
        # One with a piece in hand first, since no other worker can take that piece.
        workers = sorted(self.workers, key=lambda worker: worker not in active)
        work, control = self.kernel.call["work"], self.control.address
        tasks = [partial(work, control, worker.block.address) for worker in workers]
        if is_small:
            tasks[0]()
        else:
            self.run_all(tasks, looking)
        # Each worker moved the cursor past the end once; `unexpanded` and a second call count from it.
        self.control[SharedWord.CURSOR] = min(
            self.control[SharedWord.CURSOR], self.control[SharedWord.WORK_END]
        )

    def predecessor(self, target: Sequence[int], runs: Sequence[Run]) -> tuple[int, ...] | None:
        """The smallest state of a level that has the target as a successor."""
        words = self.layout.words
        wanted = Words(words)
        wanted.fill(list(target))
        # One for each scout: each keeps its smallest, and the smallest of these does not depend on the
        # shares.
        best = [Words(words + 1) for _ in self.scouts]
        share = max(1 << 12, sum(count for _, count in runs) // len(self.scouts) + 1)
        parts, precede, control = pieces(ends_of(runs), share), self.kernel.call["precede"], self.control

        def scan(scout: int) -> None:
            thread, smallest = self.scouts[scout].block.address, best[scout].address
            for first, end in parts[scout :: len(self.scouts)]:
                precede(control.address, thread, first, end, wanted.address, smallest)

        self._each_task([partial(scan, number) for number in range(len(self.scouts))])
        return min((b.read(0, words) for b in best if b[words]), default=None)

    def resting(self, run: Run) -> Iterator[tuple[int, ...]]:
        """The states of a run that have no step although `deadlock ok` does not allow that."""
        first, count = run
        thread, at = self.scouts[0].block.address, self.states.address + first * self.state_bytes
        return resting(self.kernel, thread, self.layout.words, at, count)

    def end_runs(self) -> list[Run]:
        """Remove and return the runs of all workers."""
        return [run for worker in self.workers for run in worker.end_run()]

    def total(self, word: Thread) -> int:
        """The sum over all workers."""
        return sum(worker[word] for worker in self.workers)

    def smallest_found(self) -> dict[int, NotedState]:
        """The smallest state of each record noted by any worker."""
        return smallest(chain.from_iterable(worker.found() for worker in self.workers))

    def run_all(self, tasks: Sequence[Callable[[], None]], looking: Callable[[], object]) -> None:
        """Run tasks in parallel.

        STOP is set where `looking`, called now and then, is true or raises.
        """
        wait([self._pool.submit(task) for task in tasks], looking, self.control)

    def words_of(self, number: int) -> tuple[int, ...]:
        """The words of a packed state."""
        return tuple(self.states.view(number * self.state_bytes, self.state_bytes).cast("Q"))

    def sample(self, runs: Iterable[Run]) -> Iterator[tuple[int, ...]]:
        """A sample of the packed states of some runs; larger for more states."""
        return map(self.words_of, sampled(list(runs)))

    def make_exact(self, kernel: Loaded) -> None:
        """Fill the table of a compact search with numbers instead of hashes; then no state can be added."""
        searching, self.kernel = self.kernel, kernel
        self.grow(self.slots)
        self.kernel = searching

    def release(self) -> None:
        """Free all memory."""
        self._pool.shutdown()
        for part in (self.states, self.table, *self.workers, *self.scouts):
            if part is not None:
                part.release()


def smallest(found: Iterable[NotedState]) -> dict[int, NotedState]:
    """The smallest state of each record, and for it the smallest state after it."""
    return {
        noted.record: noted for noted in sorted(found, key=lambda one: (one.state, one.after), reverse=True)
    }


def wait(futures: list[Future[None]], looking: Callable[[], object], control: Words) -> None:
    """Wait for workers; they are requested to stop if `looking` returns true, or raises."""
    try:
        for future in futures:
            while True:
                with suppress(TimeoutError):
                    future.result(timeout=WAIT_S)
                    break
                if looking():
                    control[SharedWord.STOP] = 1
    except BaseException:
        control[SharedWord.STOP] = 1
        for future in futures:
            # While a worker still writes, nothing may be released, and no trace may be searched: the error
            # waits for all.
            future.exception()
        raise


def collision_warning(program: Program, states: int) -> str:
    """A warning of the probability that 64-bit hashes of two states were equal (birthday bound)."""
    chance = states * states / 2.0**65
    more = "; skipped steps include those to equal states" if program.ignored else ""
    return f"compact: two of {states} states share a 64-bit hash with probability below {chance:.1e}{more}"
