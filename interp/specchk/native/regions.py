"""Regions of the step graph over the states of a finished search, found by all workers.

States keep the numbers that the search gave them.  A state has 8 bytes (its place, its component), a state
of the region 4 more (the order in which they were found), and an edge of the region 4; conditions are found
again where they matter, by expanding the states of components again.  A behaviour to a state is found
backwards, as in the search.  Of several states the smallest packed one is chosen: numbers depend on how
workers shared the search, and answers must not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from specchk.ir.program import Clause, Form, Program
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.properties import NoAnswer
from specchk.meaning.values import State
from specchk.native.compiler import RegionSource
from specchk.native.explain import Explainer
from specchk.native.kernel.component_kernel import ALONE
from specchk.native.kernel.fair_components import AGAIN, FAIR
from specchk.native.kernel.labels import has_judged_predicates, judged_predicates
from specchk.native.kernel.numbered_steps import NO_PREDICATE
from specchk.native.lanes import Lanes, Segment
from specchk.native.listed import StepsInStore
from specchk.native.machine.frames import Lane, Owing, Thread
from specchk.native.machine.layout import WORD
from specchk.native.machine.memory import Region
from specchk.native.machine.runs import Run
from specchk.native.store import Store
from specchk.native.tiers import load_kernel
from specchk.search.liveness.components import Conditions
from specchk.search.liveness.lassos import LoopStart, Taken, shortest_loop
from specchk.search.liveness.owed import Owed
from specchk.search.liveness.regions import Behaviour, ListedSteps, Look, NoTruth
from specchk.search.replay import ReplayFailed

MOST_STATES, MOST_EDGES = 1 << 31, (1 << 32) - 1
FIRST_EDGE = 8  # lower places have other meanings


def are_numbered(fair: FairSteps) -> bool:
    """Whether compiled code can find regions; otherwise the reference stepper lists all steps."""
    # A set of conditions is one word of a successor.
    is_narrow = len(fair.conditions) <= WORD
    return is_narrow and not fair.lists_horizon and has_judged_predicates(fair.program)


class StepsOfSearch:
    """The step graph of a search that has ended; valid until `release`, also of the store."""

    def __init__(
        self, fair: FairSteps, roomy: Program, store: Store, explain: Explainer, levels: list[list[Run]],
        look: Look, *, compact: bool, is_long: bool,
    ) -> None:  # fmt: skip
        # An edge has 31 bits for its target, beside the mark of a state's last one.
        if store.used >= MOST_STATES:
            raise MemoryError("more states than their numbers have room for")
        self.fair, self.levels = fair, levels
        self.store, self.explain = store, explain
        self.conditions = Conditions(fair.weak, fair.strong)
        self.is_cut = store.total(Thread.CUTS) + store.total(Thread.OUTSIDE) > 0
        self.predicates = {prop: at for at, prop in enumerate(judged_predicates(fair.program))}
        self.marks = 0  # a byte for each state: whether something is owed there at the horizon
        self._look = look
        self._states = store.total(Thread.NEW)
        kernel = load_kernel(RegionSource(roomy, store.layout), is_long=is_long)
        if compact:
            store.make_exact(kernel)
        self.lanes = Lanes(store, kernel, roomy, self.pause)
        # Before any region: states are expanded without one, too.
        self.lanes.region[Owing.ALL] = fair.all
        self._region: RegionOfStates | None = None
        self._steps: StepsInStore | None = None
        self._listed: ListedSteps | None = None
        self._levels = sorted((first, level) for level, runs in enumerate(levels) for first, _ in runs)

    @property
    def memory_bytes(self) -> int:
        """The memory of the region and of the lists, without that of the workers."""
        region = self._region.memory_bytes if self._region is not None else 0
        listed = self._steps.memory_bytes if self._steps is not None else 0
        return 4 * sum(self.lanes.queued()) + (self.marks.bit_length() + 7) // 8 + region + listed

    @property
    def is_whole(self) -> bool:
        """Whether every step within the horizons and constraints leads to a kept state."""
        return not self.lanes.any(Lane.LOST)

    def pause(self) -> None:
        """Check the budget."""
        self._look(self._states, self.lanes.region[Owing.NEXT_EDGE], sum(self.lanes.queued()))

    def region(self, clause: Clause | None) -> RegionOfStates:
        """The region of a clause, or of all states for None; it replaces the previous one."""
        self._forget()
        self._region = RegionOfStates(self, clause)
        self._region.find()
        return self._region

    def ever_enabled(self) -> int:
        """The conditions enabled in at least one state; states are expanded until all are found."""
        for runs in self.levels:
            if self.lanes.any(Lane.EVER) == self.fair.all:
                break
            self.lanes.of_runs("survey", runs)
        return self.lanes.any(Lane.EVER)

    def listed(self) -> ListedSteps:
        """The graph as lists, for the obligations of another program."""
        if self._listed is None:
            self._steps = StepsInStore(self.fair, self.store, self.lanes, self.levels[0])
            self._listed = ListedSteps(self.fair, self._steps, self._look)
        return self._listed

    def owed_at_horizon(self) -> int:
        """The number of states counted by `note_horizon`, each counted once."""
        marked = bytearray(self.marks.to_bytes(self.store.used, "little"))
        if self._listed is not None and self._steps is not None:
            for number in self._listed.at_horizon:
                marked[self._steps.order[number]] = 1
        return marked.count(1)

    def state(self, number: int) -> State:
        """A state by its number."""
        return self.store.layout.unpack(self.store.words_of(number))

    def level(self, number: int) -> int:
        """The level of a state."""
        return self._levels[bisect_right(self._levels, (number, len(self.levels))) - 1][1]

    def _forget(self) -> None:
        if self._region is not None:
            self._region.release()
            self._region = None

    def release(self) -> None:
        """Free all memory."""
        self._forget()
        self.lanes.release()
        self.store.release()


class RegionOfStates:
    """A region by its states' numbers; `depths` are the levels of equally long shortest behaviours."""

    def __init__(self, source: StepsOfSearch, clause: Clause | None) -> None:
        self.source = source
        self.form = clause.form if clause is not None else None
        self.owed = Owed(clause, len(source.fair.program.variables)) if clause is not None else None
        self.depths: list[list[Segment]] = []
        self.is_triggered = self.is_owed = self.is_cut = False
        self._rest: tuple[int, int] | None = None
        used = source.store.used
        # Pages are allocated on first use: few for a small region, and as many for edges as there are.
        sizes = {Owing.PLACES: 4 * used, Owing.EDGES: 4 * MOST_EDGES}
        if source.is_cut:
            sizes[Owing.REST_MARKS] = used
        self._arrays = {word: Region(size) for word, size in sizes.items()}
        self._begin(clause)

    def _begin(self, clause: Clause | None) -> None:
        source, block = self.source, self.source.lanes.region
        source.lanes.begin()
        trigger = goal = NO_PREDICATE
        if clause is not None:
            goal = source.predicates[clause.goal]
            trigger = source.predicates[clause.trigger] if clause.trigger is not None else NO_PREDICATE
        weak, strong = source.conditions.weak, source.conditions.strong
        for word, value in (
            (Owing.NEXT_EDGE, FIRST_EDGE), (Owing.MOST_EDGES, MOST_EDGES), (Owing.TRIGGER, trigger),
            (Owing.GOAL, goal), (Owing.ENDLESS, int(self.form in (None, Form.EVENTUALLY_ALWAYS))),
            (Owing.WEAK, weak), (Owing.STRONG, strong), (Owing.ALL, weak | strong), (Owing.TAKEN_ONLY, 0),
            (Owing.REST_MARKS, 0), *((word, array.address) for word, array in self._arrays.items()),
        ):  # fmt: skip
            block[word] = value

    @property
    def memory_bytes(self) -> int:
        """The maximal memory of its arrays; for growing ones, their contents."""
        block, arrays, used = self.source.lanes.region, self._arrays, self.source.store.used
        found = 4 * block[Owing.NEXT_EDGE] + 4 * used  # edges, places
        if Owing.REST_MARKS in arrays:
            found += 3 * used  # copies of them are joined with those of other regions
        if Owing.INDEX in arrays:
            # A walk may be so deep that each state of the region has a frame; each may also wait, or survive.
            reached = sum(end - first for segments in self.depths for _, first, end in segments)
            found += 4 * used + 16 * reached + 4 * block[Owing.MEMBER_COUNT] + 5 * block[Owing.COMPONENTS]
        return found

    def find(self) -> None:
        """Find the states, edges and nearest rest of the region; `NoTruth` if a predicate is undefined."""
        lanes, levels = self.source.lanes, self.source.levels
        # All levels before the first expansion: an undefined predicate is reported wherever it is, and
        # without a trigger there is nothing to expand.
        only_first = self.form in (None, Form.EVENTUALLY)
        for level, runs in enumerate(levels[:1] if only_first else levels):
            lanes.of_runs("begins", runs)
            self._check_answers(level)
        self.is_triggered, self.is_owed = lanes.any(Lane.IS_TRIGGERED) > 0, lanes.any(Lane.IS_OWED) > 0
        since = lanes.queued()
        while self.is_triggered:
            depth = len(self.depths)
            if depth < len(levels):
                lanes.of_runs("gather", levels[depth])
            waiting, since = lanes.waiting(since), lanes.queued()
            # A depth without states is not the end as long as a later level may have triggers.
            if not waiting and depth >= len(levels):
                break
            self.depths.append(waiting)
            lanes.of_segments("spread", waiting)
            self._check_answers(depth + 1)
            rest = lanes.smallest(Lane.REST)
            # Depths come in their order, so the first rest is a nearest one.
            if self._rest is None and rest is not None:
                self._rest = rest, depth
        self.is_cut = lanes.any(Lane.EVER_CUT) > 0

    def _check_answers(self, depth: int) -> None:
        number = self.source.lanes.smallest(Lane.UNDEFINED)
        if number is None:
            return
        assert self.owed is not None
        path = self.path(number, depth)
        try:
            self.owed.triggers(path[-1])
            self.owed.reaches(path[-1])
        except NoAnswer as unclear:
            raise NoTruth(path, unclear.blame) from unclear
        raise ReplayFailed("a predicate is not undefined where the search found it so")

    def path(self, number: int, depth: int) -> list[State]:
        """A shortest behaviour to a state: to the beginning of the obligation, then on without the goal."""
        source, behind = self.source, list[int]()
        while not self._begins_in(number, depth):
            behind.append(number)
            depth -= 1
            source.lanes.of_segments("leading", self.depths[depth], number)
            before = source.lanes.smallest(Lane.BEST)
            if before is None:
                raise ReplayFailed("a state of the region has no predecessor")
            number = before
        return [*self._prefix(number, depth), *map(source.state, reversed(behind))]

    def _prefix(self, number: int, level: int) -> list[State]:
        """A shortest behaviour to a state of a level, whatever the obligation."""
        source = self.source
        return list(source.explain.trace(source.store.words_of(number), source.levels[:level]).states)

    def _begins_in(self, number: int, depth: int) -> bool:
        if self.source.level(number) != depth:
            return False
        if self.form is Form.LEADS_TO and self.depths and depth:
            assert self.owed is not None
            return self.owed.triggers(self.source.state(number))
        return self.form is not Form.EVENTUALLY or depth == 0

    def counterexample(self) -> Behaviour | None:
        """The nearest rest, or otherwise the shortest lasso."""
        if self._rest is not None:
            return Behaviour(tuple(self.path(*self._rest)), ())
        loop = shortest_loop(LoopStates(self, self._fair()), self.source.conditions, self.source.pause)
        if loop is None:
            return None
        steps = tuple((self.source.state(number), mask) for number, mask in loop.steps)
        number, distance = loop.start.number, loop.start.distance
        if loop.start.is_bad or self.form is not Form.LEADS_TO:
            path = self.path(number, distance)
        else:
            path = self._prefix(number, distance)
        return Behaviour(tuple(path), steps, loop.is_shortest)

    def is_violated(self) -> bool:
        """Whether there is a counterexample."""
        return self._rest is not None or bool(self._fair())

    def note_horizon(self) -> None:
        """Count the states in which only steps that are cut off prevent a behaviour from staying."""
        used, fair = self.source.store.used, self._fair(taken_only=True)
        marks = bytearray(self._arrays[Owing.REST_MARKS].view(0, used))
        if fair:
            component = self.components()
            for segments in self.depths:
                self.source.pause()
                for number in self.source.lanes.numbers(segments):
                    if component[number] in fair:
                        marks[number] = 1
        # As one number: `|` of as many bytes as there are states is one operation.
        self.source.marks |= int.from_bytes(marks, "little")

    def components(self) -> memoryview:
        """The component of each state."""
        return self._arrays[Owing.INDEX].view(0, 4 * self.source.store.used).cast("I")

    def is_bad(self, number: int) -> bool:
        """Whether any loop through this state is a counterexample, whatever the obligation before it."""
        if self.owed is not None and self.form is Form.LEADS_TO:
            return self.owed.triggers(self.source.state(number))
        if self.owed is not None and self.form is Form.EVENTUALLY_ALWAYS:
            return not self.owed.reaches(self.source.state(number))
        return True

    def _fair(self, *, taken_only: bool = False) -> set[int]:
        """The components with a fair loop; with `taken_only`, steps that are cut off enable nothing."""
        lanes, block, used = self.source.lanes, self.source.lanes.region, self.source.store.used
        self._take({Owing.INDEX: 4 * used, Owing.MEMBERS: 4 * used, Owing.BOUNDS: 2 * used + 8,
                    Owing.JUDGEMENTS: used, Owing.FRAMES: 8 * used,
                    Owing.STACK: 4 * used})  # fmt: skip
        block[Owing.TAKEN_ONLY], block[Owing.NEXT_ID] = int(taken_only), ALONE - 1
        # The deepest first: what they reach is mostly known then, and walks are short.
        order = [segment for segments in reversed(self.depths) for segment in segments]
        kept = lanes.queued()
        fair: set[int] = set()
        while order:
            block[Owing.MEMBER_COUNT] = block[Owing.COMPONENTS] = 0
            lanes.decompose(order)
            if block[Owing.NEXT_ID] <= used:  # else an order of visit could equal one
                raise MemoryError("more components than their numbers have room for")
            lanes.of_components("judge")
            again = self._add_fair(fair)
            # States that survived the previous round are finished; the queues' first part is the region
            # itself.
            for lane, count in enumerate(kept):
                lanes.blocks[lane][Lane.QUEUED] = count
            if not again:
                break
            lanes.of_components("survive")
            order = lanes.waiting(kept)
        for lane, count in enumerate(kept):
            lanes.blocks[lane][Lane.QUEUED] = count
        return fair

    def _add_fair(self, fair: set[int]) -> bool:
        """Add the fair ones of the checked components; returns whether some must be decomposed again."""
        count, component, arrays = self.source.lanes.region[Owing.COMPONENTS], self.components(), self._arrays
        verdicts = bytes(arrays[Owing.JUDGEMENTS].view(0, count))
        bounds = arrays[Owing.BOUNDS].view(0, 4 * count).cast("I")
        members = arrays[Owing.MEMBERS].view(0, 4 * self.source.store.used).cast("I")
        fair.update(component[members[bounds[at]]] for at, verdict in enumerate(verdicts) if verdict == FAIR)
        return AGAIN in verdicts

    def _take(self, sizes: dict[Owing, int]) -> None:
        """New arrays of zeroes; most are short or read in order, components at random."""
        for word, size in sizes.items():
            if word in self._arrays:
                self._arrays.pop(word).release()
            self._arrays[word] = Region(size) if word is Owing.INDEX else Region.of_small_pages(size)
            self.source.lanes.region[word] = self._arrays[word].address

    def release(self) -> None:
        """Free all memory."""
        for array in self._arrays.values():
            array.release()


class LoopStates:
    """The states of fair components, for the search for a loop: visited states are expanded again."""

    def __init__(self, region: RegionOfStates, fair: set[int]) -> None:
        self.region = region
        self.fair = fair
        self._component = region.components()
        self._known: dict[int, tuple[list[Taken], int]] = {}

    def starts(self) -> Iterator[LoopStart]:
        """All possible starts of a loop, the nearest first."""
        region, known = self.region, set[int]()
        is_bad = region.form is not Form.EVENTUALLY_ALWAYS
        for depth, segments in enumerate(region.depths if self.fair else ()):
            region.source.pause()
            owed = self._sorted(region.source.lanes.numbers(segments))
            known.update(owed)
            yield from (LoopStart(depth, number, is_bad) for number in owed)
            if region.form is Form.LEADS_TO and depth < len(region.source.levels):
                runs = region.source.levels[depth]
                all_ = (state for first, count in runs for state in range(first, first + count))
                yield from (LoopStart(depth, n, False) for n in self._sorted(all_) if n not in known)

    def _sorted(self, numbers: Iterable[int]) -> list[int]:
        here = [number for number in numbers if self._component[number] in self.fair]
        return sorted(here, key=self.region.source.store.words_of)

    def _expanded(self, number: int) -> tuple[list[Taken], int]:
        if number not in self._known:
            source, own = self.region.source, self._component[number]
            steps, enabled = source.lanes.follow(number)
            inner = {step for step in steps if self._component[step[0]] == own}
            ordered = sorted(inner, key=lambda step: (source.store.words_of(step[0]), step[1]))
            self._known[number] = ordered, enabled
        return self._known[number]

    def steps(self, number: int) -> list[Taken]:
        """The steps of a state that stay in its component."""
        return self._expanded(number)[0]

    def enabled(self, number: int) -> int:
        """The conditions enabled in a state."""
        return self._expanded(number)[1]

    def is_bad(self, number: int) -> bool:
        """Whether any loop through this state is a counterexample."""
        return self.region.is_bad(number)
