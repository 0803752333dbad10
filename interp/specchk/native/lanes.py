"""Workers on a region of the step graph: threads of compiled code, each with its own block (`Lane`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain
from operator import or_

from specchk.ir.program import Program
from specchk.native.machine.frames import BATCH, SOURCE_WORDS, Lane, Owing, SharedWord, Thread, check_room
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words
from specchk.native.machine.runs import Run, ends_of, pieces
from specchk.native.store import Store, Worker

PIECE = 2048  # states in a call
FEW = 2 * PIECE  # states that one thread takes in less time than it takes to call two
Segment = tuple[int, int, int]  # a lane, and the first and the end of some of the states that it postponed


class Lanes:
    """The workers; until `release`.  `looking` is called while they run; an exception in it ends them."""

    def __init__(self, store: Store, kernel: Loaded, program: Program, looking: Callable[[], object]) -> None:
        self.store = store
        self.kernel = kernel
        self.region = Words(Owing.SIZE)
        self.blocks: list[Words] = []
        self._workers: list[Worker] = []
        self._buffers: list[Region] = []
        self._looking = looking
        self._program = program
        for _ in store.workers:
            self._add(program)

    def _add(self, program: Program) -> None:
        store, block = self.store, Words(Lane.SIZE)
        worker = Worker(program, store.layout, store.room)
        self._workers.append(worker)
        self.blocks.append(block)
        # A successor has one word more than a state, and a queue also holds the states that survive a round.
        sizes = (
            (store.state_bytes + 8) * store.room, 16 * store.room, 8 * SOURCE_WORDS * (BATCH + 1),
            8 * (store.used + 1),
        )  # fmt: skip
        # Filled and read in order, and mostly short: huge pages would be most of a small region's memory.
        buffers = [Region.of_small_pages(size) for size in sizes]
        self._buffers += buffers
        worker.block[Thread.PENDING] = buffers[0].address
        for word, at in (
            (Lane.CONTROL, store.control.address), (Lane.THREAD, worker.block.address),
            (Lane.REGION, self.region.address), (Lane.TARGETS, buffers[1].address),
            (Lane.SOURCES, buffers[2].address), (Lane.QUEUE, buffers[3].address),
        ):  # fmt: skip
            block[word] = at

    def begin(self) -> None:
        """Clear the records of the previous region."""
        for block in self.blocks:
            for word in range(Lane.QUEUED, Lane.SIZE):
                # Conditions ever enabled and lost states are of the whole graph: all regions add to them.
                if word not in (Lane.EVER, Lane.LOST):
                    block[word] = 0

    def of_runs(self, kernel: str, runs: Sequence[Run]) -> None:
        """Call a kernel for ranges of state numbers."""
        self._each(kernel, pieces(ends_of(runs), PIECE))

    def of_segments(self, kernel: str, segments: Sequence[Segment], *more: int) -> None:
        """Call a kernel for postponed states."""
        work: list[tuple[int, ...]] = []
        for lane, first, end in segments:
            queue = self.blocks[lane][Lane.QUEUE]
            work += [(queue, *piece, *more) for piece in pieces([(first, end)], PIECE)]
        self._each(kernel, work)

    def of_components(self, kernel: str) -> None:
        """Call a kernel for all components."""
        # One component may have all states.
        are_small = self.region[Owing.MEMBER_COUNT] <= FEW
        work = pieces([(0, self.region[Owing.COMPONENTS])], max(1, PIECE // 8))
        self._each(kernel, work, are_small=are_small)

    def _each(self, kernel: str, work: Sequence[tuple[int, ...]], *, are_small: bool = True) -> None:
        call, waiting, control = self.kernel.call[kernel], iter(work), self.store.control
        control[SharedWord.STOP] = 0

        def run(block: Words) -> None:
            # One iterator for all threads: the interpreter's lock lets no two of them take one piece.
            for piece in waiting:
                if control[SharedWord.STOP]:
                    return
                call(block.address, *piece)

        # So few states are done before a second thread has begun.
        if len(work) <= 2 and are_small:
            run(self.blocks[0])
        else:
            self.store.run_all([partial(run, block) for block in self.blocks], self._looking)
        self._check()

    def decompose(self, segments: Sequence[Segment]) -> None:
        """Find the components of postponed states, in one thread."""
        # A depth-first walk cannot be divided: a component depends on all that was visited before it.
        self.store.control[SharedWord.STOP] = 0
        call, shared = self.kernel.call["components"], (self.store.control.address, self.region.address)
        lists = [(self.blocks[lane][Lane.QUEUE], first, end) for lane, first, end in segments]

        def work() -> None:
            for listed in lists:
                call(*shared, *listed)

        if sum(end - first for _, first, end in lists) <= FEW:
            work()
        else:
            self.store.run_all([work], self._looking)
        self._check()

    def _check(self) -> None:
        # Before anything is read: if a set or an edge had no room, nothing that was noted counts.
        check_room(
            self._program, sum(worker[Thread.OVERFLOW] for worker in self._workers), "a set of the step graph"
        )
        if self.region[Owing.NEXT_EDGE] > self.region[Owing.MOST_EDGES]:
            raise MemoryError("more edges than their numbers have room for")
        self._looking()

    def queued(self) -> list[int]:
        """The number of states that each worker has postponed."""
        return [block[Lane.QUEUED] for block in self.blocks]

    def waiting(self, since: Sequence[int]) -> list[Segment]:
        """The states postponed after the first `since` ones of each worker."""
        both = zip(since, self.queued(), strict=True)
        return [(lane, first, end) for lane, (first, end) in enumerate(both) if first < end]

    def numbers(self, segments: Sequence[Segment]) -> Iterator[int]:
        """The numbers of the postponed states."""
        queues = self._buffers[3::4]
        return chain.from_iterable(
            queues[lane].view(4 * first, 4 * (end - first)).cast("I") for lane, first, end in segments
        )

    def smallest(self, word: Lane) -> int | None:
        """The smallest noted state; its record is cleared."""
        # Each worker kept its smallest; the smallest of these does not depend on how they shared the states.
        noted = [block[word] - 1 for block in self.blocks if block[word]]
        for block in self.blocks:
            block[word] = 0
        return min(noted, key=self.store.words_of, default=None)

    def any(self, word: Lane) -> int:
        """The bits set by at least one worker."""
        return reduce(or_, (block[word] for block in self.blocks))

    def follow(self, number: int) -> tuple[list[tuple[int, int]], int]:
        """The steps that change a state, with the conditions met, and the conditions enabled in the state."""
        block = self.blocks[0]
        self.kernel.call["follow"](block.address, number)
        self._check()
        words = self._buffers[1].view(0, 16 * block[Lane.COUNT]).cast("Q")
        steps = [(after - 1, mask) for after, mask in zip(words[::2], words[1::2], strict=True) if after]
        return steps, block[Lane.TAKEN] | block[Lane.CUT]

    def release(self) -> None:
        """Free all memory."""
        for worker in self._workers:
            worker.release()
        for buffer in self._buffers:
            buffer.release()
