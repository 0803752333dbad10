"""Expansion of a zone: its properties are checked, and its successors computed.

An `Expander` needs only zones, so that any process can run it: its results are candidates (a property may
fail here), successor zones, and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import islice

from msgspec import Struct

from specchk.ir.nodes import Const
from specchk.ir.program import Program
from specchk.meaning.paths import START, Matrix
from specchk.meaning.regions import outside
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.symmetry import Symmetry
from specchk.symbolic.kernels.loading import compiled
from specchk.symbolic.kernels.walking import BUSY, END
from specchk.symbolic.recording.trees import Classes, Tree, TreeWalker
from specchk.symbolic.zones.compiled import CompiledTrees
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.controls import Control, Controls
from specchk.symbolic.zones.images import Joiner, Start
from specchk.symbolic.zones.leaves import Effect, Idle, Leaf, PredicateValue, Question
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.zones import Zone

COMPILE_AFTER = 200  # zones: loading kernels takes as long
Arrive = Callable[[int, Zone, Taken], bool]  # takes a successor of a zone; False drops it


class Candidate(Struct, frozen=True, order=True):
    """A possible finding in a zone: `kind` as in `Violation`, or `reached`.

    `step`: the step out of the zone that is the finding, for step invariants, states outside a constraint and
    undefined steps.
    """

    kind: str
    name: str
    step: Taken | None = None

    @property
    def is_in_step(self) -> bool:
        """Whether the finding is in a step out of the zone, or that there is no step."""
        return self.step is not None or self.name == "deadlock"


class Counts(Struct):
    """Counts of the work done; `coverage` is that of each point."""

    coverage: list[int]
    generated: int = 0
    covered: int = 0
    forks: int = 0
    known: int = 0
    cuts: int = 0
    checks: int = 0
    pruned: int = 0

    def add(self, other: Counts) -> None:
        """Add other counts."""
        self.coverage = [a + b for a, b in zip(self.coverage, other.coverage, strict=True)]
        for name in self.__struct_fields__[1:]:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Expansion(Struct):
    """The results of some zones of a level, by the position of the zone.

    `states` are candidates in the zones themselves, `steps` in steps out of them (or the lack of any);
    `arrived` is the number of successors that were not dropped at once.
    """

    counts: Counts
    states: list[tuple[int, Candidate]] = []
    steps: list[tuple[int, Candidate]] = []
    arrived: int = 0
    outside: bool = False


class Expander:
    """Checks and expands zones of a program."""

    def __init__(
        self, program: Program, abstraction: Abstraction, symmetry: Symmetry | None, *, horizons: bool,
        compile_after: int | None = COMPILE_AFTER,
    ) -> None:  # fmt: skip
        self.program = program
        self.abstraction = abstraction
        self.solver = abstraction.solver
        self.controls = Controls(program, symmetry, abstraction, horizons=horizons)
        self.walker = TreeWalker(self.controls.recorder, self.solver)
        fine = program.deadlock_ok
        self.may_stop_wrongly = not (fine is not None and isinstance(fine.body, Const) and fine.body.value)
        self._hit: list[Leaf] = []
        self.compile_after = compile_after
        self._compiled: CompiledTrees | None = None

    @property
    def compiled(self) -> CompiledTrees | None:
        """The kernels, once they are worth loading; None if they are not, or if nothing is forgotten."""
        if self._compiled is None and self.compile_after == 0 and self.abstraction.reach is not None:
            self._compiled = CompiledTrees(compiled(), self.controls.recorder)
        return self._compiled

    @property
    def joiner(self) -> Joiner | None:
        """The joiner of zones by kernels, once these are loaded."""
        return None if self._compiled is None else self._compiled.joiner

    def initial(self, state: State) -> Zone:
        """The zone of an initial state."""
        # Like a step from a state without offsets, so that an initial state is renamed and split like any
        # other.
        effect = self.controls.effect(Leaf((), 0), 0, (), state)
        return effect.zone([(0, 0)], START, self.abstraction)

    def expand(
        self, zones: Iterable[tuple[int, Zone]], arrive: Arrive | None, decided: frozenset[str]
    ) -> Expansion:
        """Check and expand a zone; without `arrive`, only check.  Questions in `decided` are decided."""
        part = Expansion(Counts([0] * len(self.program.points)))
        walker = self.walker
        walker.forks = walker.known = self.solver.checks = self.solver.pruned = 0
        for index, zone in zones:
            control = self.controls.of(zone.shape, zone.size)
            if (
                arrive is not None
                and control.still is not None
                and self._is_quick(index, zone, control, arrive, decided, part)
            ):
                continue
            if self.compile_after:
                self.compile_after -= 1
            classes = [(0, 0), *zone.classes]
            rows = self.abstraction.matrix(zone)
            if control.still is not None:
                # Pruned trees are not walked again, but count: coverage is that of a search that prunes
                # nothing.
                self._count(control.still)
            for question, tree in control.questions:
                # No further zone can add to a question whose last finding is known.
                if question.last in decided:
                    continue
                for kind in self._failures(question, tree, classes, rows):
                    if f"{kind} {question.name}" not in decided:
                        part.states.append((index, Candidate(kind, question.name)))
            if arrive is not None:
                if control.still is None:
                    self._count(control.idle)
                self._successors(index, control, classes, rows, arrive, part)
                if control.still is None:
                    # After the first zone: `Tree.only` shows the leaf of a tree without questions, so that it
                    # is the same for every zone of the shape.  Without this, a spec with many instances has
                    # 48 times as many runs.
                    self.controls.prune(control)
        self._add_counts(part.counts)
        return part

    def _is_quick(
        self, index: int, zone: Zone, control: Control, arrive: Arrive, decided: frozenset[str],
        part: Expansion,
    ) -> bool:  # fmt: skip
        """Check and expand a zone by kernels; returns False, without effect, if that is left to Python."""
        trees = self.compiled
        if trees is None or (self.abstraction.precision and self.abstraction.of(zone.shape).size):
            return False
        ends = trees.walked(zone, control, decided)
        if ends is None or (self.may_stop_wrongly and not trees.walk.job[BUSY]):
            return False
        assert control.still is not None
        self._count(control.still)
        trees.count(trees.walk, self.walker)
        self._note_findings(index, control, ends, decided, part)
        for at in range(0, len(ends), END):
            leaf = trees.code.of[ends[at + 1]]
            if type(leaf) is Effect:
                part.counts.generated += 1
                start = ends[at + 2], ends[at + 3], ends[at + 4], ends[at + 5]
                self._arrive_quickly(index, control, leaf, start, trees, arrive, part)
        return True

    def _note_findings(
        self, index: int, control: Control, ends: list[int], decided: frozenset[str], part: Expansion
    ) -> None:
        """As `_failures`, for the results of a walk."""
        assert self.compiled is not None
        met: set[int] = set()
        for at in range(0, len(ends), END):
            leaf = self.compiled.code.of[ends[at + 1]]
            if type(leaf) is PredicateValue:
                question = control.questions[ends[at]][0]
                kind = "undefined" if isinstance(leaf.value, Undefined) else question.kind
                if kind != "undefined" and ends[at] in met:
                    continue
                if kind != "undefined":
                    met.add(ends[at])
                if f"{kind} {question.name}" not in decided:
                    part.states.append((index, Candidate(kind, question.name)))

    def _arrive_quickly(
        self, index: int, control: Control, effect: Effect, start: Start, trees: CompiledTrees,
        arrive: Arrive, part: Expansion,
    ) -> None:  # fmt: skip
        """As `_arrive`, for part of a zone in the memory of a walk."""
        if effect.still is None:
            self.controls.complete(control, effect, self.walker, trees.walk.known(start))
        found = trees.stepped(effect, start) if effect.inside is None else None
        shape = effect.taken.shape
        zone = None
        if found is not None and not (self.abstraction.precision and shape in self.abstraction.precision):
            assert self.abstraction.reach is not None
            zone = trees.images.zone(effect, start, self.abstraction.reach)
        if found is None or zone is None:
            self._arrive(index, control, effect, *trees.walk.known(start), arrive, part)
            return
        assert effect.still is not None
        self._count(effect.still)
        if effect.steps:
            trees.count(trees.steps, self.walker)
        for at in range(0, len(found), END):
            question, leaf = effect.steps[found[at]][0], trees.code.of[found[at + 1]]
            assert isinstance(leaf, PredicateValue)
            kind = "undefined" if isinstance(leaf.value, Undefined) else question.kind
            part.steps.append((index, Candidate(kind, question.name, effect.taken)))
        if arrive(index, zone, effect.taken):
            part.arrived += 1
        else:
            part.counts.covered += 1

    def _count(self, leaf: Leaf) -> None:
        if not leaf.hits:
            self._hit.append(leaf)
        leaf.hits += 1

    def drop_counts(self) -> None:
        """Discard the counts of an expansion that did not end."""
        self._add_counts(Counts([0] * len(self.program.points)))
        self.controls.drop_counts()

    def _add_counts(self, counts: Counts) -> None:
        """Add the counts of the leaves that were reached."""
        counts.forks, counts.known = self.walker.forks, self.walker.known
        counts.checks, counts.pruned = self.solver.checks, self.solver.pruned
        for leaf in self._hit:
            counts.cuts += leaf.cuts * leaf.hits
            for point, count in leaf.delta:
                counts.coverage[point] += count * leaf.hits
            # Counted by leaf and multiplied here, instead of adding every leaf's coverage for every zone.
            leaf.hits = 0
        self._hit.clear()
        for leaf, hits in self._compiled.code.take_hits() if self._compiled is not None else ():
            counts.cuts += leaf.cuts * hits
            for point, count in leaf.delta:
                counts.coverage[point] += count * hits

    def _failures(self, question: Question, tree: Tree, classes: Classes, rows: Matrix) -> Iterator[str]:
        """The findings for a property in a zone: each reason for being undefined, and one failure."""
        is_met = False
        for answer, *_ in self.walker.walk(tree, classes, rows):
            self._count(answer)
            if isinstance(answer.value, Undefined):
                yield "undefined"
            elif answer.value is question.wanted and not is_met:
                is_met = True
                yield question.kind
                # One is enough: `concrete` looks for real states along the whole path, not in this part of
                # the zone only.  A witness may have no value in another part.
                if question.kind != "reached":
                    break

    def _first_failure(self, question: Question, tree: Tree, classes: Classes, rows: Matrix) -> Iterator[str]:
        yield from islice(self._failures(question, tree, classes, rows), 1)

    def _successors(
        self, index: int, control: Control, classes: Classes, rows: Matrix, arrive: Arrive, part: Expansion
    ) -> None:
        # All of them before the first successor: whether a state has successors at all depends on every
        # action.
        ends = [end for tree in control.instances for end in self.walker.walk(tree, classes, rows)]
        busy: list[Matrix] = []  # where a step is possible
        faulty: list[Matrix] = []  # where a step is undefined, so that none is taken
        size = len(rows)
        is_busy = False  # in the whole zone
        for leaf, _, assumed_rows, assumed in ends:
            self._count(leaf)
            if type(leaf) is Idle and not leaf.cuts:  # a horizon cuts off a step that the spec has
                continue
            # A step that needs no assumption is possible everywhere; this settles most zones.
            is_busy = is_busy or not assumed
            busy.append(assumed_rows)
            if type(leaf) is Effect and leaf.after is None:
                # The first undefined action is to blame.
                if self._without(faulty, assumed_rows, size):
                    name = self.program.actions[leaf.taken.action].name
                    part.steps.append((index, Candidate("undefined", name, leaf.taken)))
                faulty.append(assumed_rows)
        for leaf, known, assumed_rows, _ in ends:
            if type(leaf) is Effect and leaf.after is not None:
                # A state in which some action is undefined has no steps (`meaning.step`), so this part is cut
                # away.
                for remaining in self._without(faulty, assumed_rows, size):
                    part.counts.generated += 1
                    self._arrive(index, control, leaf, known, remaining, arrive, part)
        # The rest of the zone, without the parts that have steps: subtraction of matrices is exact over the
        # integers.
        if self.may_stop_wrongly and not is_busy:
            for resting in self._without(busy, rows, size):
                self._resting(index, control, classes, resting, part)

    def _without(self, taken: list[Matrix], rows: Matrix, size: int) -> list[Matrix]:
        """The parts of a matrix that are in none of the others; `size` symbols are those of the zone."""
        return reduce(lambda parts, one: outside(parts, one, size, self.solver), taken, [rows])

    def _arrive(
        self, index: int, control: Control, effect: Effect, classes: Classes, rows: Matrix,
        arrive: Arrive, part: Expansion,
    ) -> None:  # fmt: skip
        """Check the step invariants and constraints for a state after a step, and add its zone."""
        if effect.still is None:
            # Not while the step is recorded: the recorder is in the middle of that run then, and cannot
            # record another.
            self.controls.complete(control, effect, self.walker, (classes, rows))
        assert effect.still is not None
        self._count(effect.still)
        for question, tree in effect.steps:
            for kind in self._first_failure(question, tree, classes, rows):
                part.steps.append((index, Candidate(kind, question.name, effect.taken)))
        if effect.inside is None:
            self._found(index, effect, classes, rows, arrive, part)
            return
        # A zone may lie across the border of a constraint: it is cut there, and only the part inside is
        # expanded.
        for inside, known, assumed_rows, _ in self.walker.walk(effect.inside, classes, rows):
            self._count(inside)
            if isinstance(inside.value, Undefined):
                part.steps.append((index, Candidate("undefined", inside.name, effect.taken)))
            elif inside.value:
                self._found(index, effect, known, assumed_rows, arrive, part)
                continue
            part.outside = True  # such a state is checked, but not expanded
            for question, tree in effect.outside:
                for kind in self._first_failure(question, tree, known, assumed_rows):
                    part.steps.append((index, Candidate(kind, question.name, effect.taken)))

    def _found(
        self, index: int, effect: Effect, classes: Classes, rows: Matrix, arrive: Arrive, part: Expansion
    ) -> None:
        zone = effect.zone(classes, rows, self.abstraction)
        if arrive(index, zone, effect.taken):
            part.arrived += 1
        else:
            part.counts.covered += 1

    def _resting(self, index: int, control: Control, classes: Classes, rows: Matrix, part: Expansion) -> None:
        """Check whether there are states here, without steps, that are deadlocks."""
        for answer, *_ in self.walker.walk(control.stops, classes, rows):
            self._count(answer)
            if isinstance(answer.value, Undefined):
                part.steps.append((index, Candidate("undefined", "deadlock")))
            elif answer.value:
                part.steps.append((index, Candidate("deadlock", "deadlock")))
                return
