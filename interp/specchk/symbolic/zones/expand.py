"""Expansion of a zone: its properties are checked, and its successors computed.

An `Expander` needs only zones, so that any process can run it: its results are candidates (a property may
fail here), successor zones, and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import islice

from msgspec import Struct

from specchk.ir.program import Program, allows_any_end
from specchk.meaning.paths import START, Matrix
from specchk.meaning.regions import outside
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.symmetry import Symmetry
from specchk.symbolic.kernels.walking import BUSY, END
from specchk.symbolic.recording.trees import Classes, Tree, TreeWalker
from specchk.symbolic.zones.compiled import CompiledTrees
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.controls import Control, Controls
from specchk.symbolic.zones.images import Start
from specchk.symbolic.zones.leaves import Checks, Effect, Idle, Leaf, PredicateValue, Question
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.zones import Zone

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


class _Visit(Struct):
    """A zone that is expanded, by its number, and what receives the results."""

    index: int
    control: Control
    part: Expansion
    arrive: Arrive | None

    def note(self, kind: str, name: str, step: Taken | None = None) -> None:
        """Note a finding in a step out of the zone, or that there is no step."""
        self.part.steps.append((self.index, Candidate(kind, name, step)))

    def send(self, zone: Zone, taken: Taken) -> None:
        """Pass on a successor, and count it."""
        assert self.arrive is not None
        if self.arrive(self.index, zone, taken):
            self.part.arrived += 1
        else:
            self.part.counts.covered += 1


class Expander:
    """Checks and expands zones of a program."""

    def __init__(
        self, program: Program, abstraction: Abstraction, symmetry: Symmetry | None, *, horizons: bool
    ) -> None:
        self.program = program
        self.abstraction = abstraction
        self.solver = abstraction.solver
        self.controls = Controls(program, symmetry, abstraction, horizons=horizons)
        self.walker = TreeWalker(self.controls.recorder, self.solver)
        self.may_stop_wrongly = not allows_any_end(program)
        self._hit: list[Leaf] = []
        self._compiled = CompiledTrees(self.controls.recorder)

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
            visit = _Visit(index, self.controls.of(zone.shape, zone.size), part, arrive)
            control = visit.control
            if arrive is not None and control.still is not None and self._is_quick(zone, visit, decided):
                continue
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
                self._successors(visit, classes, rows)
                if control.still is None:
                    # After the first zone: `Tree.only` shows the leaf of a tree without questions, so that it
                    # is the same for every zone of the shape.  Without this, a spec with many instances has
                    # 48 times as many runs.
                    self.controls.prune(control)
        self._add_counts(part.counts)
        return part

    def _is_quick(self, zone: Zone, visit: _Visit, decided: frozenset[str]) -> bool:
        """Check and expand a zone by kernels; returns False, without effect, if that is left to Python."""
        trees, control, part = self._compiled, visit.control, visit.part
        if self.abstraction.precision and self.abstraction.of(zone.shape).size:
            return False
        ends = trees.walked(zone, control, decided)
        if ends is None or (self.may_stop_wrongly and not trees.walk.job[BUSY]):
            return False
        assert control.still is not None
        self._count(control.still)
        trees.count(trees.walk, self.walker)
        met: set[int] = set()
        for at in range(0, len(ends), END):
            leaf = trees.code.of[ends[at + 1]]
            if type(leaf) is Effect:
                part.counts.generated += 1
                a, b, c, d = ends[at + 2 : at + 6]
                self._arrive_quickly(visit, leaf, (a, b, c, d))
            elif type(leaf) is PredicateValue:
                # As in `_failures`: each reason for being undefined, and one failure.
                question = control.questions[ends[at]][0]
                kind = "undefined" if isinstance(leaf.value, Undefined) else question.kind
                if kind != "undefined":
                    if ends[at] in met:
                        continue
                    met.add(ends[at])
                if f"{kind} {question.name}" not in decided:
                    part.states.append((visit.index, Candidate(kind, question.name)))
        return True

    def _arrive_quickly(self, visit: _Visit, effect: Effect, start: Start) -> None:
        """As `_arrive`, for part of a zone in the memory of a walk."""
        trees = self._compiled
        if effect.still is None:
            self.controls.complete(visit.control, effect, self.walker, trees.walk.known(start))
        found = trees.stepped(effect, start) if effect.inside is None else None
        zone = None
        if found is not None and effect.taken.shape not in self.abstraction.precision:
            zone = trees.images.zone(effect, start, self.abstraction.reach)
        if found is None or zone is None:
            self._arrive(visit, effect, *trees.walk.known(start))
            return
        assert effect.still is not None
        self._count(effect.still)
        if effect.steps:
            trees.count(trees.steps, self.walker)
        for at in range(0, len(found), END):
            question, leaf = effect.steps[found[at]][0], trees.code.of[found[at + 1]]
            assert isinstance(leaf, PredicateValue)
            kind = "undefined" if isinstance(leaf.value, Undefined) else question.kind
            visit.note(kind, question.name, effect.taken)
        visit.send(zone, effect.taken)

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
        # Counted by leaf and multiplied here, instead of adding every leaf's coverage for every zone.
        by_leaf = [(leaf, leaf.hits) for leaf in self._hit]
        by_leaf += self._compiled.code.take_hits()
        for leaf, hits in by_leaf:
            counts.cuts += leaf.cuts * hits
            for point, count in leaf.delta:
                counts.coverage[point] += count * hits
        for leaf in self._hit:
            leaf.hits = 0
        self._hit.clear()

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

    def _successors(self, visit: _Visit, classes: Classes, rows: Matrix) -> None:
        # All of them before the first successor: whether a state has successors at all depends on every
        # action.
        ends = [end for tree in visit.control.instances for end in self.walker.walk(tree, classes, rows)]
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
                    visit.note("undefined", self.program.actions[leaf.taken.action].name, leaf.taken)
                faulty.append(assumed_rows)
        for leaf, known, assumed_rows, _ in ends:
            if type(leaf) is Effect and leaf.after is not None:
                # A state in which some action is undefined has no steps (`meaning.step`), so this part is cut
                # away.
                for remaining in self._without(faulty, assumed_rows, size):
                    visit.part.counts.generated += 1
                    self._arrive(visit, leaf, known, remaining)
        # The rest of the zone, without the parts that have steps: subtraction of matrices is exact over the
        # integers.
        if self.may_stop_wrongly and not is_busy:
            for resting in self._without(busy, rows, size):
                self._resting(visit, classes, resting)

    def _without(self, taken: list[Matrix], rows: Matrix, size: int) -> list[Matrix]:
        """The parts of a matrix that are in none of the others; `size` symbols are those of the zone."""
        return reduce(lambda parts, one: outside(parts, one, size, self.solver), taken, [rows])

    def _arrive(self, visit: _Visit, effect: Effect, classes: Classes, rows: Matrix) -> None:
        """Check the step invariants and constraints for a state after a step, and add its zone."""
        if effect.still is None:
            # Not while the step is recorded: the recorder is in the middle of that run then, and cannot
            # record another.
            self.controls.complete(visit.control, effect, self.walker, (classes, rows))
        assert effect.still is not None
        self._count(effect.still)
        self._note_failures(visit, effect, effect.steps, classes, rows)
        if effect.inside is None:
            visit.send(effect.zone(classes, rows, self.abstraction), effect.taken)
            return
        # A zone may lie across the border of a constraint: it is cut there, and only the part inside is
        # expanded.
        for inside, known, assumed_rows, _ in self.walker.walk(effect.inside, classes, rows):
            self._count(inside)
            if isinstance(inside.value, Undefined):
                visit.note("undefined", inside.name, effect.taken)
            elif inside.value:
                visit.send(effect.zone(known, assumed_rows, self.abstraction), effect.taken)
                continue
            visit.part.outside = True  # such a state is checked, but not expanded
            self._note_failures(visit, effect, effect.outside, known, assumed_rows)

    def _note_failures(
        self, visit: _Visit, effect: Effect, checks: Checks, classes: Classes, rows: Matrix
    ) -> None:
        """Note the first failure of each property after a step."""
        for question, tree in checks:
            for kind in islice(self._failures(question, tree, classes, rows), 1):
                visit.note(kind, question.name, effect.taken)

    def _resting(self, visit: _Visit, classes: Classes, rows: Matrix) -> None:
        """Check whether there are states here, without steps, that are deadlocks."""
        for answer, *_ in self.walker.walk(visit.control.stops, classes, rows):
            self._count(answer)
            if isinstance(answer.value, Undefined):
                visit.note("undefined", "deadlock")
            elif answer.value:
                visit.note("deadlock", "deadlock")
                return
