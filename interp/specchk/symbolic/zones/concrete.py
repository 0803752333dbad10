"""Real states for violations found in zones: the smallest offsets along a path.

A path of zones gives the actions that were taken, and the shapes between them.  The same steps are taken
again from the initial state, forgetting nothing: offsets are numbers, or open where the spec lets one be any
(`any n in Offset`).  At the end the facts about the open ones are a closed matrix, whose least solution gives
the smallest offsets (each x is its own lower bound); the states along the path become numbers, and the
reference engine takes the steps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Any

from msgspec import Struct, field

from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Program
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.moves import Moves, answered
from specchk.meaning.open_numbers import OpenNumber, Term
from specchk.meaning.paths import START, ForkPath, Matrix, definitions
from specchk.meaning.properties import NoAnswer
from specchk.meaning.regions import outside
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.replay import ReplayFailed, quiet_steps_to, rebuild
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Trace
from specchk.symbolic.recording.solver import LinearSolver
from specchk.symbolic.replay import Replay, ReplayPath, raised_to
from specchk.symbolic.zones.words import condition, sums
from specchk.symbolic.zones.zones import Shape, Shapes


class Taken(Struct, frozen=True, order=True):
    """A step on a path of zones: the action, its arguments (None if open), and the shape after it.

    For an initial zone, the number of the initial state.  Without a shape the step is undefined.
    """

    action: int
    args: tuple[Any, ...]
    shape: Shape | None


class Goal(Struct, frozen=True):
    """A condition at the end of a path, or on one more step after it."""

    kind: str
    name: str
    step: Taken | None


class Real(Struct, frozen=True):
    """A behaviour of real states, and the reason why the property fails at its end.

    `condition`: the constraints on the offsets of all states at the end of the same steps that meet the goal.
    """

    trace: Trace
    blame: Blame | None
    condition: tuple[str, ...]


class _Point(Struct, frozen=True):
    states: tuple[State, ...]
    rows: Matrix


MOST_POINTS = 20_000  # kept for other paths; then all are forgotten
REPLAYS = 8  # kept for other paths


class _Way(Struct):
    """The ends of all paths along some steps, computed on demand.

    Paths of one search have long beginnings in common: `after` has the paths that continue this one.
    """

    source: Iterator[_Point]
    points: list[_Point] = field(default_factory=list)
    after: dict[Taken, _Way] = field(default_factory=dict)

    def ends(self) -> Iterator[_Point]:
        """All ends, the known ones first."""
        number = 0
        while True:
            if number == len(self.points):
                following = next(self.source, None)
                if following is None:
                    return
                self.points.append(following)
            yield self.points[number]
            number += 1


class Concretiser:
    """Finds real states along paths of zones of a program."""

    def __init__(
        self, program: Program, symmetry: Symmetry | None, *, horizons: bool,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self.program = program
        self.is_over = is_over  # whether the time is up
        self.symmetry = symmetry
        self.solver = LinearSolver()
        self.path = ForkPath(self.solver)
        self.moves = Moves(program, self.path, horizons=horizons)
        self.beyond = Moves(program, self.path) if horizons and steps_list_horizon(program) else None
        self.shapes = Shapes(program)
        self.faulty: set[int] = set()  # actions that are undefined in some states of the zones
        self._programs: dict[int, Program] = {}
        # Most paths need the same one, with the least numbers; and each compiles the actions.
        self._replay = lru_cache(REPLAYS)(self._new_replay)
        self._starts: dict[Taken, _Way] = {}
        self._faults = 0  # when these were computed
        self._points = 0

    def find(self, chain: Sequence[Taken], goal: Goal) -> Real | None:
        """A behaviour along the chain with the goal at its end; None if there is none, or time is up."""
        steps = list(chain)
        if goal.step is not None and goal.step.shape is not None:
            steps.append(goal.step)
        for point in self._along(steps):
            if self.is_over():
                return None
            for rows in self._goal(point, goal):
                values = self.solver.least(rows)
                if values is not None:
                    return self._real(point, rows, values, goal)
        return None

    def _images(self, state: State, shape: Shape | None) -> list[State]:
        """The renamings of a state, including itself, that have a given shape."""
        images = [state, *(self.symmetry.images(state) if self.symmetry is not None else ())]
        return [image for image in images if self.shapes.split(image)[0] == shape]

    def _along(self, steps: Sequence[Taken]) -> Iterator[_Point]:
        """The ends of all paths along the steps, the first of which is an initial state."""
        # With more undefined actions, fewer states remain.
        if self._faults != len(self.faulty) or self._points > MOST_POINTS:
            self._starts.clear()
            self._faults, self._points = len(self.faulty), 0
        way = self._starts.setdefault(steps[0], _Way(self._first(steps[0])))
        for step in steps[1:]:
            following = way.after.get(step)
            if following is None:
                following = way.after[step] = _Way(self._continued(way, step))
            way = following
        return way.ends()

    def _first(self, taken: Taken) -> Iterator[_Point]:
        state = initial_states(self.program)[taken.action]
        # With symmetry a zone is of a renamed state, so at each step all renamings of the shape are tried.
        yield from [_Point((image,), START) for image in self._images(state, taken.shape)]

    def _continued(self, way: _Way, wanted: Taken) -> Iterator[_Point]:
        """The ends after one more step, without duplicates, since equal ones continue equally."""
        known = set[Any]()
        instance = [(wanted.action, wanted.args)]
        for point in way.ends():
            # Perhaps no end is ever reached, after thousands of paths to the step before.
            if self.is_over():
                return
            state = point.states[-1]
            moves = [
                move for rows in self._defined(point) for move in self.moves.moves(state, rows, instance)
            ]
            for move in moves:
                if isinstance(move.after, Undefined):
                    continue
                for after in self._images(move.after, wanted.shape):
                    if self.symmetry is not None:
                        # A state may be its own image, and two paths may meet: each would double the rest.
                        rows = tuple(map(tuple, move.rows)), definitions(move.rows)
                        key = self._forms(state), self._forms(after), rows
                        if key in known:
                            continue
                        known.add(key)
                    self._points += 1
                    yield _Point((*point.states, after), move.rows)

    def _forms(self, state: State) -> tuple[Any, ...]:
        """The offsets of a state, if they can be compared without a fork."""
        return tuple([o.form if isinstance(o, OpenNumber) else o for o in self.shapes.split(state)[1]])

    def _defined(self, point: _Point, *, before: int | None = None) -> list[Matrix]:
        """The parts of a point in which every step, of actions `before` one, is defined.

        No step is taken from other states, and their first undefined action is to blame.
        """
        faulty = {action for action in self.faulty if before is None or action < before}
        among = [instance for instance in self.moves.instances if instance[0] in faulty]
        moves = self.moves.moves(point.states[-1], point.rows, among)
        # Only actions that were seen to be undefined in some zone are tried, since this is computed at every
        # step of a path.
        faults = [move.rows for move in moves if isinstance(move.after, Undefined)]
        size, solver = len(point.rows), self.solver
        return reduce(lambda parts, fault: outside(parts, fault, size, solver), faults, [point.rows])

    def _goal(self, point: _Point, goal: Goal) -> Iterator[Matrix]:
        """The facts known where the goal is met."""
        properties, moves, state = self.moves.properties, self.moves, point.states[-1]
        if goal.name == "deadlock":
            yield from self._ended(state, point.rows, goal)
            return
        if goal.step is not None and goal.step.shape is None:
            for rows in self._defined(point, before=goal.step.action):
                for move in moves.moves(state, rows, [(goal.step.action, goal.step.args)]):
                    if isinstance(move.after, Undefined):
                        yield move.rows
            return
        if any(prop.name == goal.name for prop in self.program.constraints):
            for unclear in moves.answers(partial(self._unclear, state), point.rows):
                if unclear == goal.name:
                    yield self.path.rows
            return
        before = point.states[-2] if len(point.states) > 1 else state
        for props, env in (
            ([*properties.invariants, *properties.witnesses], properties.environment(state)),
            (properties.steps, properties.environment(before, state)),
        ):
            for prop in props:
                if prop[0].name == goal.name:
                    for answer in moves.ways(prop, env, point.rows):
                        if _is_met(answer, goal.kind):
                            yield self.path.rows

    def _ended(self, state: State, rows: Matrix, goal: Goal) -> Iterator[Matrix]:
        """As `_goal`, for states in which no step is possible."""
        properties = self.moves.properties
        allowed = partial(answered, properties.may_deadlock, properties.environment(state))
        for idle in self._idle(state, rows):
            for fine in self.moves.answers(allowed, idle):
                if _is_met(fine, goal.kind):
                    yield self.path.rows

    def _idle(self, state: State, rows: Matrix) -> list[Matrix]:
        """The facts known where no step is possible, even beyond horizons."""
        within = self.moves.idle(state, rows)
        if self.beyond is None:
            return within
        # Listed numbers end at the horizon, so if nothing is possible within it, a number beyond it may still
        # enable a step.
        return [part for known in within for part in self.beyond.idle(state, known)]

    def _unclear(self, state: State) -> str | None:
        """The undefined constraint of a state."""
        try:
            self.moves.properties.inside(self.moves.properties.environment(state))
        except NoAnswer as unclear:
            return unclear.name
        return None

    def _real(self, point: _Point, rows: Matrix, values: Sequence[int], goal: Goal) -> Real:
        """The states of the least solution, and the result of the reference engine on them."""
        split = self.shapes.split(point.states[-1])
        ends = condition(self.program, self.shapes.zone(split, rows, None))
        ends += sums(self.program, split, rows)
        states = [self._numbers(state, values) for state in point.states]
        path = ReplayPath(tuple(states), tuple(values))
        # Somewhat more than the path needs, so that few programs are made.
        replay = self._replay(1 << path.most.bit_length(), path.numbers)
        trace = self._trace(replay, states, goal)
        if goal.kind == "reached":
            if not replay.reaches(trace.last, goal.name):
                raise ReplayFailed(f"`{goal.name}` is not true where the zones say so")
            return Real(trace, None, ends)
        failed = replay.left(trace.last) if goal.name == "deadlock" else replay.failed(trace)
        for kind, name, blame in failed:
            if (kind, name) == (goal.kind, goal.name):
                return Real(trace, blame, ends)
        raise ReplayFailed(f"`{goal.name}` does not fail where the zones say so")

    def _trace(self, replay: Replay, states: Sequence[State], goal: Goal) -> Trace:
        """The behaviour along the states; under symmetry, along renamed states."""
        if self.symmetry is None:
            # Without symmetry the states are the spec's own, and only the steps between them are missing.
            return replay.trace(states)
        # Not the renamings of the raised program: where more may be undefined, fewer are found.
        symmetry = Symmetry(replay.program, self.symmetry.renamings)
        if goal.step is None or goal.step.shape is None:
            return rebuild(replay.program, replay.stepper, states, symmetry)
        base = rebuild(replay.program, replay.stepper, states[:-1], symmetry)
        for step in quiet_steps_to(replay.program, replay.stepper, base.last, states[-1], symmetry):
            trace = Trace(base.initial, (*base.steps, step))
            if any(name == goal.name for _, name, _ in replay.failed(trace)):
                return trace
        raise ReplayFailed(f"no step at the end of the path breaks `{goal.name}`")

    def _new_replay(self, high: int, numbers: tuple[int, ...]) -> Replay:
        if high not in self._programs:
            self._programs[high] = raised_to(self.program, high, choosing=False)
        return Replay(self._programs[high], numbers)

    def _numbers(self, state: State, values: Sequence[int]) -> State:
        shape, offsets = self.shapes.split(state)
        numbers = [values[o.symbol] + o.plus if isinstance(o, Term) else o for o in offsets]
        return self.shapes.join(shape, numbers)


def _is_met(answer: bool | Undefined, kind: str) -> bool:
    if kind == "undefined":
        return isinstance(answer, Undefined)
    return answer is (kind == "reached")
