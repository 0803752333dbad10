"""What is done with a zone: its properties are asked, and its successors made.

An `Expander` works on zones alone, so that any process can do it: what it finds are candidates (a
property may fail here) and successor zones, and how often it did what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from specchk.core.symmetry import Symmetry
from specchk.core.undefined import Undefined
from specchk.core.values import State
from specchk.ir.program import Program, Property
from specchk.symbolic.concrete import Taken
from specchk.symbolic.moves import Move, Moves, Test
from specchk.symbolic.paths import Matrix, Path
from specchk.symbolic.zones import Covered, Parts, Reach, Shapes, Zone

START: Matrix = ((0,),)
Question = tuple[tuple[Property, Test], str, bool]  # a property, the kind of finding, the answer that is one


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be so in a zone: `kind` as in `Violation`, or `reached`.

    `step`: the step after the zone that does it, for step invariants, states outside a constraint
    and steps without meaning.
    """

    kind: str
    name: str
    step: Taken | None = None


@dataclass(slots=True)
class Counts:
    """How often what was done."""

    points: int
    coverage: list[int] = field(init=False)
    generated: int = 0
    covered: int = 0
    forks: int = 0
    known: int = 0
    cuts: int = 0

    def __post_init__(self) -> None:
        self.coverage = [0] * self.points

    def add(self, other: Counts) -> None:
        """Add what another one counted."""
        self.coverage = [a + b for a, b in zip(self.coverage, other.coverage, strict=True)]
        self.generated += other.generated
        self.covered += other.covered
        self.forks += other.forks
        self.known += other.known
        self.cuts += other.cuts


@dataclass(slots=True)
class Part:
    """What came of some zones of a level, by the position of the zone.

    `states` are candidates in the zones themselves, `steps` in steps out of them (or the lack of any).
    """

    counts: Counts
    states: list[tuple[int, Candidate]] = field(default_factory=list)
    steps: list[tuple[int, Candidate]] = field(default_factory=list)
    successors: list[tuple[int, Zone, Taken]] = field(default_factory=list)
    outside: bool = False


class Expander:
    """Asks and expands zones of a program."""

    def __init__(
        self, program: Program, reach: Reach | None, symmetry: Symmetry | None, *, horizons: bool
    ) -> None:
        self.program = program
        self.symmetry = symmetry
        self.reach = reach
        self.path = Path()
        self.moves = Moves(program, self.path, horizons=horizons)
        self.shapes = Shapes(program)
        properties = self.moves.properties
        self._questions: list[Question] = [(prop, prop[0].kind, False) for prop in properties.invariants]
        self._questions += [(prop, "reached", True) for prop in properties.witnesses]
        self._from: Parts = []  # the state that is being expanded, taken apart

    def initial(self, state: State) -> Iterator[Zone]:
        """The zones of an initial state."""
        yield self._least(state, self.shapes.zone(self.shapes.split(state), START, self.reach), START)

    def _least(self, state: State, zone: Zone, rows: Matrix) -> Zone:
        """The representative of a zone, that of `state`: the least of its renamings."""
        if self.symmetry is None:
            return zone
        others = (
            self.shapes.zone(self.shapes.split(o), rows, self.reach) for o in self.symmetry.images(state)
        )
        return min([zone, *others], key=attrgetter("shape", "classes", "bounds"))

    def expand(
        self, zones: Iterable[tuple[int, Zone]], covered: Covered | None, asked: frozenset[str]
    ) -> Part:
        """Ask and expand; successors that lie within zones of `covered` are left out.  None: only ask."""
        moves, path = self.moves, self.path
        part = Part(Counts(len(self.program.points)))
        forks, known, cuts = path.forks, path.known, moves.horizon_cuts
        moves.counts[:] = [0] * len(moves.counts)
        here = covered.here() if covered is not None else None
        for index, zone in zones:
            state = self.shapes.state(zone, path)
            self._from = self.shapes.parts(state)
            part.states += [(index, one) for one in self._asked(state, zone, asked)]
            if here is not None:
                self._successors(index, zone, state, here, part)
        part.counts.coverage = list(moves.counts)
        part.counts.forks, part.counts.known = path.forks - forks, path.known - known
        part.counts.cuts = moves.horizon_cuts - cuts
        return part

    def _asked(self, state: State, zone: Zone, asked: frozenset[str]) -> Iterator[Candidate]:
        """The properties of states that may fail here, and the witnesses that may be here."""
        env = self.moves.properties.environment(state)
        open_ = [one for one in self._questions if f"{one[1]} {one[0][0].name}" not in asked]
        for (prop, kind, wanted), plain in zip(open_, self._at_once(open_, env, zone.bounds), strict=True):
            answers = self.moves.ways(prop, env, zone.bounds) if plain is None else (plain,)
            for answer in answers:
                if isinstance(answer, Undefined):
                    yield Candidate("undefined", prop[0].name)
                elif answer is wanted:
                    yield Candidate(kind, prop[0].name)
                    break

    def _at_once(
        self, questions: Sequence[Question], env: list[Any], rows: Matrix
    ) -> Iterator[bool | Undefined | None]:
        """The answers that need no fork, None where one does: so it is with nearly all."""
        path = self.path
        for (_, test), _, _ in questions:
            path.begin(rows, [])
            forks = path.forks
            try:
                answer: bool | Undefined = bool(test(env))
            except Undefined as undefined:
                answer = undefined
            yield answer if path.forks == forks else None

    def _successors(self, index: int, zone: Zone, state: State, here: Covered, part: Part) -> None:
        moves, is_busy, cuts = self.moves, False, self.moves.horizon_cuts
        for move in moves.moves(state, zone.bounds, moves.instances):
            if move.after is None:
                taken = Taken(move.action, move.args, None)
                name = self.program.actions[move.action].name
                part.steps.append((index, Candidate("undefined", name, taken)))
                continue
            is_busy = is_busy or not move.assumed
            part.counts.generated += 1
            self._arrive(index, state, move, here, part)
        if not is_busy and moves.horizon_cuts == cuts:
            self._resting(index, zone, state, part)

    def _arrive(self, index: int, state: State, move: Move, here: Covered, part: Part) -> None:
        """A state after a step: its step invariants, the constraints, and its zone."""
        after = move.after
        assert after is not None
        split = self.shapes.split_after(after, state, self._from)
        zone = self._least(after, self.shapes.zone(split, move.rows, self.reach), move.rows)
        taken = Taken(move.action, move.args, zone.shape)
        properties = self.moves.properties
        if properties.steps:
            env = properties.environment(state, after)
            for prop in properties.steps:
                for answer in self.moves.ways(prop, env, move.rows):
                    if answer is not True:
                        kind = prop[0].kind if answer is False else "undefined"
                        part.steps.append((index, Candidate(kind, prop[0].name, taken)))
                        break
        for inside, rows in self._inside(after, move.rows):
            if inside:
                own = (
                    zone
                    if rows is None
                    else self._least(after, self.shapes.zone(split, rows, self.reach), rows)
                )
                if here.add(own):
                    part.successors.append((index, own, taken))
                else:
                    part.counts.covered += 1
            else:
                part.outside = True
                self._outside(index, after, rows or move.rows, taken, part)

    def _inside(self, after: State, rows: Matrix) -> Iterator[tuple[bool, Matrix | None]]:
        """Whether a state is within all constraints, for each part of it that is or is not."""
        properties = self.moves.properties
        if not self.program.constraints:
            yield True, None
            return
        env = properties.environment(after)
        ways = self.moves.ask(lambda: properties.inside(env), rows)
        yield from [(answer, self.path.rows) for answer in ways]

    def _outside(self, index: int, after: State, rows: Matrix, taken: Taken, part: Part) -> None:
        """A state outside a constraint is checked, but not gone on from."""
        env = self.moves.properties.environment(after)
        for prop in self.moves.properties.invariants:
            for answer in self.moves.ways(prop, env, rows):
                if answer is not True:
                    kind = prop[0].kind if answer is False else "undefined"
                    part.steps.append((index, Candidate(kind, prop[0].name, taken)))
                    break

    def _resting(self, index: int, zone: Zone, state: State, part: Part) -> None:
        """Nothing is always enabled here: whether there are states in which nothing is, and may not be."""
        for rests in self.moves.rests(state, zone.bounds):
            if rests and not self._may_rest(state, self.path.rows):
                part.steps.append((index, Candidate("deadlock", "deadlock")))
                return

    def _may_rest(self, state: State, rows: Matrix) -> bool:
        env = self.moves.properties.environment(state)
        return all(self.moves.ask(lambda: self.moves.properties.may_deadlock(env), rows))
