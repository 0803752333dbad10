"""Control parts: the effect of the spec's code on the states of one shape, as decision trees.

A `Control` has a tree for each instance of an action and for each property.  Most instances cannot be
taken in a control part whatever the offsets are, and most properties hold; those are found out once, and
a zone of that shape does not ask them again.

The leaves say what came of a run (`PredicateValue`, `Effect`, `Idle`), and what it adds to the coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, chain, compress
from typing import Any, TypeVar

from specchk.ir.footprint import of_action, of_property
from specchk.ir.program import Program, Property
from specchk.meaning.moves import Moves, Test, answered, outline
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import START, Defined, Matrix, definitions
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.symmetry import Symmetry
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.trees import Classes, Recorder, Tree, TreeWalker, unknown
from specchk.symbolic.zones.zones import Shape, Shapes, SplitState, Zone

T = TypeVar("T")
Arguments = tuple[Any, ...]
Delta = tuple[tuple[int, int], ...]  # what a run adds to the count of which coverage points


@dataclass(frozen=True, slots=True)
class Question:
    """A property of states: its kind of finding, the answer that is one, and its trees' code."""

    kind: str
    name: str
    wanted: bool
    test: Test
    slots: tuple[int, ...]  # the positions of the variables that it reads, in order

    @property
    def last(self) -> str:
        """The finding after which nothing is left to find, as the search records it."""
        # A witness is evaluated in every state: where it has no value is a violation, reached or not.
        return f"{'undefined' if self.kind == 'reached' else self.kind} {self.name}"


def _question(prop: Property, test: Test) -> Question:
    is_witness = prop.kind == "reachable"
    slots = tuple(sorted(of_property(prop).reads))
    return Question("reached" if is_witness else prop.kind, prop.name, is_witness, test, slots)


@dataclass(slots=True)
class Leaf:
    """The result of a run: `delta` and `cuts` are its counts, `hits` the number of zones that reach it."""

    delta: Delta
    cuts: int
    hits: int = field(init=False, default=0)
    number: int = field(init=False, default=-1)  # among the leaves of compiled trees


@dataclass(slots=True)
class Idle(Leaf):
    """Nothing was done: a guard is false."""


@dataclass(slots=True)
class PredicateValue(Leaf):
    """The value of a predicate, or the reason why it has none; then `name` is that of a constraint."""

    value: bool | Undefined
    name: str = ""


@dataclass(slots=True)
class Effect(Leaf):
    """A step: its offsets after it, as symbols of the state before and distances from them.

    `images` are those of its renamings that may be the least: all have one shape.  `after` is None where
    the step has no meaning.
    """

    taken: Taken
    after: State | None
    images: tuple[tuple[tuple[int, int], ...], ...]
    known: Matrix = START  # of the symbols that there are after the step: which are defined, and how
    still: Idle | None = None
    steps: list[tuple[Question, Tree]] = field(default_factory=list)
    inside: Tree | None = None
    outside: list[tuple[Question, Tree]] = field(default_factory=list)
    code: Any = None  # of its images, and the plan of its steps' trees (`compiled`)
    plan: Any = None

    def zone(self, classes: Classes, rows: Matrix, abstraction: Abstraction) -> Zone:
        """The zone after the step, from the known facts about the symbols."""
        shape = self.taken.shape
        assert shape is not None
        first, *others = [[(classes[s][0], classes[s][1] + d) for s, d in image] for image in self.images]
        zone = abstraction.zone(shape, first, rows)
        for other in others:
            # Several renamings may have the least shape; which of them is least depends on the offsets,
            # hence on the zone.
            zone = min(zone, abstraction.zone(shape, other, rows), key=_order)
        return zone


def _order(zone: Zone) -> tuple[Any, Any]:
    return zone.classes, zone.bounds


@dataclass(slots=True)
class Control:
    """The trees of one shape; `still` is what those count in which no zone finds anything.

    `stops`: whether a state of the shape is a deadlock if nothing can be done there.
    """

    parts: SplitState
    size: int
    questions: list[tuple[Question, Tree]]
    instances: list[Tree]
    idle: Idle  # what instances count that have no tree, since they did nothing in an equal part
    stops: Tree
    still: Idle | None = None
    plan: Any = None  # of its trees (`compiled`)

    def prune(self) -> None:
        """Keep only the checks that some zone of this shape needs; each tree was walked once."""
        still = [self.idle, *[tree.only for tree in self.instances if _is_idle(tree)]]
        still += [tree.only for question, tree in self.questions if _is_settled(question, tree)]
        self.still = _all_of(still)
        self.instances = [tree for tree in self.instances if not _is_idle(tree)]
        self.questions = [one for one in self.questions if not _is_settled(*one)]


def _all_of(leaves: Sequence[Leaf]) -> Idle:
    """A leaf that counts what these count."""
    points: dict[int, int] = {}
    for leaf in leaves:
        for point, count in leaf.delta:
            points[point] = points.get(point, 0) + count
    return Idle(tuple(points.items()), sum([leaf.cuts for leaf in leaves]))


def _is_idle(tree: Tree) -> bool:
    """Whether an instance does nothing in any zone; one that a horizon ends is no deadlock's."""
    return type(tree.only) is Idle and not tree.only.cuts


def _is_settled(question: Question, tree: Tree) -> bool:
    return isinstance(tree.only, PredicateValue) and tree.only.value is (not question.wanted)


class Controls:
    """The control parts of a program, and the code that their trees record."""

    def __init__(
        self, program: Program, symmetry: Symmetry | None, abstraction: Abstraction, *, horizons: bool
    ) -> None:
        self.program = program
        self.symmetry = symmetry
        self.abstraction = abstraction
        self.recorder = Recorder(abstraction.solver)
        self.moves = Moves(program, self.recorder, horizons=horizons)
        self.shapes = Shapes(program)
        self._points = range(len(program.points))
        self.known: dict[Shape, Control] = {}
        self._shapes: dict[Shape, Shape] = {}
        self._reads = [sorted(of_action(action).reads) for action in program.actions]
        # By action, and its part of the shape: by arguments.
        self._idle: dict[tuple[int, Shape], dict[Arguments, Idle]] = {}
        self._arguments: list[list[Arguments]] = [[] for _ in program.actions]
        for index, args in self.moves.instances:
            self._arguments[index].append(args)
        self._answers: dict[tuple[int, Shape], Tree] = {}
        self._kept_answers: dict[tuple[int, Shape], Tree] = {}
        properties = self.moves.properties
        self.invariants = [_question(*one) for one in properties.invariants]
        self.steps = [_question(*one) for one in properties.steps]
        self.questions = [*self.invariants, *[_question(*one) for one in properties.witnesses]]

    def of(self, shape: Shape, size: int) -> Control:
        """The control part of a shape with `size` offsets."""
        control = self.known.get(shape)
        if control is None:
            control = self.known[shape] = self._new(shape, size)
        return control

    def _new(self, shape: Shape, size: int) -> Control:
        # Symbol 0 is the number 0.
        predicates = self.abstraction.of(shape)
        offsets = size - predicates.size
        start = unknown(size, predicates.definitions(offsets))
        state = self.shapes.join(shape, [Term(self.recorder, place + 1) for place in range(offsets)])
        env = self.moves.properties.environment(state)
        questions = self._trees(self.questions, env, start) if predicates.size else self._shared(shape)
        parts = self.shapes.parts(state, self._images(state))
        return Control(
            parts, size, questions, *self._instances(shape, parts, start),
            Tree(start, partial(self._stops, env)),
        )  # fmt: skip

    def _instances(self, shape: Shape, parts: SplitState, start: Matrix) -> tuple[list[Tree], Idle]:
        """The trees of instances; the counts of those that did nothing where their action reads the same."""
        trees: list[Tree] = []
        idle: list[Idle] = []
        for number, reads in enumerate(self._reads):
            # Of all instances of an action at once: a shape is a large key.
            known = self._idle.setdefault((number, tuple([shape[slot] for slot in reads])), {})
            for args in self._arguments[number]:
                leaf = known.get(args)
                if leaf is None or leaf.cuts:
                    tree = Tree(start, partial(self._step, parts, number, args, known))
                    tree.top.after[0] = leaf
                    trees.append(tree)
                else:
                    idle.append(leaf)
        return trees, _all_of(idle)

    def _shared(self, shape: Shape) -> list[tuple[Question, Tree]]:
        """The trees of all questions, for each one tree for all shapes that are equal in what it reads."""
        sizes = self.shapes.sizes(shape)
        starts = [0, *accumulate(sizes)]
        places = [range(starts[slot] + 1, starts[slot + 1] + 1) for slot in range(len(shape))]
        pairs = []
        for number, question in enumerate(self.questions):
            slots = question.slots
            part = tuple([shape[slot] for slot in slots])
            tree = self._answers.get((number, part))
            if tree is None:
                tree = self._answers[number, part] = self._of_part(question, shape, sizes)
            pairs.append((question, tree.at((0, *chain.from_iterable([places[slot] for slot in slots])))))
        return pairs

    def _of_part(self, question: Question, shape: Shape, sizes: Sequence[int]) -> Tree:
        offsets = sum([sizes[slot] for slot in question.slots])
        # What is not read is None, so that a read of it would fail.
        part = tuple([shape[slot] if slot in question.slots else None for slot in range(len(shape))])
        state = self.shapes.join_part(part, [Term(self.recorder, place + 1) for place in range(offsets)])
        env = self.moves.properties.environment(state)
        return Tree(unknown(offsets), partial(self._answer, question.test, env))

    def _trees(self, questions: list[Question], env: list[Any], start: Matrix) -> list[tuple[Question, Tree]]:
        return [(one, Tree(start, partial(self._answer, one.test, env))) for one in questions]

    def _counted(self, run: Callable[[], T]) -> tuple[T, Delta, int]:
        """The result of a run, and its counts."""
        counts, moves = self.moves.counts, self.moves
        moves.horizon_cuts = 0
        result = run()
        delta = tuple([(point, counts[point]) for point in compress(self._points, counts)])
        for point, _ in delta:
            # Back to zero for the next run: what is kept are differences, to be multiplied by the number of
            # zones.
            counts[point] = 0
        return result, delta, moves.horizon_cuts

    def drop_counts(self) -> None:
        """Forget what a run counted that did not end."""
        self.moves.counts[:] = [0] * len(self.moves.counts)

    def _answer(self, test: Test, env: list[Any]) -> PredicateValue:
        value, delta, cuts = self._counted(lambda: answered(test, env))
        return PredicateValue(delta, cuts, value)

    def _step(self, parts: SplitState, index: int, args: Arguments, known: dict[Arguments, Idle]) -> Leaf:
        # Coverage of a run is that of the leaf: it depends on the answers alone, not on the zone.
        taken, delta, cuts = self._counted(lambda: self.moves.once(parts.state, index, args))
        if taken is None:
            idle = Idle(delta, cuts)
            if self.recorder.is_at_top:
                known[args] = idle
            return idle
        given, after = taken
        named = outline(given)
        if isinstance(after, Undefined):
            return Effect(delta, cuts, Taken(index, named, None), None, ())
        return self.effect(Leaf(delta, cuts), index, named, after, parts)

    def effect(
        self, leaf: Leaf, index: int, args: tuple[Any, ...], after: State, parts: SplitState | None = None
    ) -> Effect:
        """The step, or the start, that ends in a state; `parts` are those of the state before it."""
        if parts is None:
            splits = [self.shapes.split(one) for one in (after, *self._images(after))]
        else:
            # A step changes few variables: the others are renamed and taken apart once for a control part.
            splits = [self.shapes.split_like(after, parts)]
            splits += map(self.shapes.split_like, self._images(after, parts), parts.images)
        # By shape first: offsets are open, and comparing them would be a question.
        least = min([shape for shape, _ in splits])
        images = [tuple([_place(o) for o in offsets]) for shape, offsets in splits if shape == least]
        # One object for each shape: millions of zones hold it, and equal ones are compared by identity
        # first.
        shape = self._shapes.setdefault(least, least)
        taken = Taken(index, args, shape)
        rows = self.recorder.rows
        known = unknown(len(rows) - 1, definitions(rows))
        return Effect(leaf.delta, leaf.cuts, taken, after, tuple(dict.fromkeys(images)), known)

    def _images(self, state: State, like: SplitState | None = None) -> Iterable[State]:
        if self.symmetry is None:
            return ()
        if like is None:
            return self.symmetry.images(state)
        return self.symmetry.images_like(state, like.state, [image.state for image in like.images])

    def _inside(self, env: list[Any]) -> PredicateValue:
        """Whether a state is inside of all constraints, or which one has no value."""

        def ask() -> tuple[bool | Undefined, str]:
            try:
                return self.moves.properties.inside(env), ""
            except NoAnswer as unclear:
                return Undefined(unclear.blame.span, unclear.blame.text), unclear.name

        (value, name), delta, cuts = self._counted(ask)
        return PredicateValue(delta, cuts, value, name)

    def _stops(self, env: list[Any]) -> PredicateValue:
        """Whether a state is a deadlock if nothing can be done there, or why `deadlock ok` has no value."""
        may_deadlock = self.moves.properties.may_deadlock
        return self._answer(lambda here: not may_deadlock(here), env)

    def _checks_of(self, control: Control, effect: Effect, env: list[Any]) -> list[tuple[Question, Tree]]:
        """The trees of all step invariants; shared where a step changes nothing that one reads."""
        before, after = control.parts.state, effect.after
        assert after is not None
        checks = []
        for number, question in enumerate(self.steps):
            # With definitions a symbol of the control part may be a sum of others.
            if type(effect.known) is Defined or any(
                before[slot] is not after[slot] for slot in question.slots
            ):
                tree = Tree(effect.known, partial(self._answer, question.test, env))
            else:
                tree = self._kept(number, question, control.parts)
            checks.append((question, tree))
        return checks

    def _kept(self, number: int, question: Question, parts: SplitState) -> Tree:
        slots = question.slots
        part = tuple([parts.splits[slot][0] for slot in slots])
        tree = self._kept_answers.get((number, part))
        if tree is None:
            whole = tuple([p if slot in slots else None for slot, (p, _) in enumerate(parts.splits)])
            offsets = sum([len(parts.splits[slot][1]) for slot in slots])
            state = self.shapes.join_part(whole, [Term(self.recorder, place + 1) for place in range(offsets)])
            env = self.moves.properties.environment(state, state)
            tree = Tree(unknown(offsets), partial(self._answer, question.test, env))
            self._kept_answers[number, part] = tree
        # The symbols of a control part are its offsets in their order.
        return tree.at((0, *[term.symbol for slot in slots for term in parts.splits[slot][1]]))

    def complete(
        self, control: Control, effect: Effect, walker: TreeWalker, known: tuple[Classes, Matrix]
    ) -> None:
        """Give a step from a state the trees of its checks: step invariants and constraints.

        `known` is of the first zone that takes the step; what needs no question is settled with it.
        """
        assert effect.after is not None
        classes, rows = known
        start = effect.known  # of the offsets of the control part, and of what the step has chosen
        env = self.moves.properties.environment(control.parts.state, effect.after)
        steps = self._checks_of(control, effect, env)
        for _, tree in steps:
            walker.walk_once(tree, classes, rows)
        effect.still = _all_of([tree.only for question, tree in steps if _is_settled(question, tree)])
        effect.steps = [one for one in steps if not _is_settled(*one)]
        if self.program.constraints:
            after = self.moves.properties.environment(effect.after)
            effect.inside = Tree(start, partial(self._inside, after))
            effect.outside = self._trees(self.invariants, after, start)


def _place(offset: Any) -> tuple[int, int]:
    return (offset.symbol, offset.plus) if isinstance(offset, Term) else (0, offset)
