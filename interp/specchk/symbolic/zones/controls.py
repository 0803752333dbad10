"""Control parts: the effect of the spec's code on the states of one shape, as decision trees.

A `Control` has a tree for each instance of an action and for each property.  Most instances cannot be taken
in a control part whatever the offsets are, and most properties hold; this is found out once, and not checked
again for other zones of that shape.

Not here: the leaves of trees (`leaves`), and what runs read (`recording.reads`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, chain, compress
from typing import Any, TypeVar

from msgspec import Struct, field

from specchk.ir.program import Program
from specchk.meaning.moves import Moves, Test, answered, outline
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import Defined, Matrix, definitions
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.symmetry import Symmetry
from specchk.symbolic.recording.reads import PartNumbers, Pick
from specchk.symbolic.recording.trees import Classes, Recorder, Tree, TreeWalker, unknown
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.leaves import Delta, Effect, Idle, Leaf, PredicateValue, Question, question_of
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.zones import HashedShape, Shape, Shapes, SplitState

T = TypeVar("T")
Arguments = tuple[Any, ...]


class _Instance(Struct, frozen=True):
    """An action with its arguments: its reads in a control part, and the cases where it did nothing."""

    action: int
    args: Arguments
    pick: Pick
    idle: dict[Any, Idle] = field(default_factory=dict)


class Control(Struct):
    """The trees of one shape; `still` has the counts of those in which no zone finds anything.

    `stops`: whether a state of the shape is a deadlock if nothing can be done there.
    """

    parts: SplitState
    size: int
    questions: list[tuple[Question, Tree]]
    instances: list[Tree]
    idle: Idle  # counts of the instances without a tree, which did nothing in an equal part
    stops: Tree
    still: Idle | None = None
    plan: Any = None  # of its trees (`compiled`)


def _is_idle(tree: Tree) -> bool:
    """Whether an instance does nothing in any zone; one cut off by a horizon is not part of a deadlock."""
    return type(tree.only) is Idle and not tree.only.cuts


def _is_settled(question: Question, tree: Tree) -> bool:
    return isinstance(tree.only, PredicateValue) and tree.only.value is (not question.wanted)


class Controls:
    """The control parts of a program, and the code recorded in their trees."""

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
        self._shapes: dict[Shape, HashedShape] = {}
        self._numbers = PartNumbers(program)
        self._instances = [
            _Instance(index, args, self._numbers.instance(program.actions[index], args))
            for index, args in self.moves.instances
        ]
        self._answers: dict[tuple[int, Any], Tree] = {}
        self._kept_answers: dict[tuple[int, Shape], Tree] = {}
        properties = self.moves.properties
        self.invariants = [question_of(*one) for one in properties.invariants]
        self.steps = [question_of(*one) for one in properties.steps]
        self.questions = [*self.invariants, *[question_of(*one) for one in properties.witnesses]]
        self._asked = [(one, self._numbers.variables(one.slots)) for one in self.questions]
        self._symbols: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self._idles: dict[tuple[Delta, int], Idle] = {}

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
        parts = self.shapes.parts(state, self._images(state))
        numbers = self._numbers.of(shape)
        questions = (
            self._trees(self.questions, env, start) if predicates.size else self._shared(parts, numbers)
        )
        return Control(
            parts, size, questions, *self._of_instances(parts, numbers, start),
            Tree(start, partial(self._stops, env)),
        )  # fmt: skip

    def _of_instances(
        self, parts: SplitState, numbers: Sequence[int], start: Matrix
    ) -> tuple[list[Tree], Idle]:
        """The trees of instances; the counts of those that did nothing when they read the same values."""
        trees: list[Tree] = []
        idle: list[Idle] = []
        for instance in self._instances:
            read = instance.pick(numbers)
            leaf = instance.idle.get(read)
            if leaf is None or leaf.cuts:
                tree = Tree(start, partial(self._step, parts, instance, read))
                tree.top.after[0] = leaf
                trees.append(tree)
            else:
                idle.append(leaf)
        return trees, self._all_of(idle)

    def _shared(self, parts: SplitState, numbers: Sequence[int]) -> list[tuple[Question, Tree]]:
        """The trees of all questions; shapes share one if they are equal in the variables that it reads."""
        sizes = tuple([len(offsets) for _, offsets in parts.splits])
        symbols = self._symbols.get(sizes)
        if symbols is None:
            symbols = self._symbols[sizes] = [symbols_of(one.slots, sizes) for one in self.questions]
        pairs = []
        for number, (question, pick) in enumerate(self._asked):
            key = number, pick(numbers)
            tree = self._answers.get(key)
            if tree is None:
                tree = self._answers[key] = self._of_part(question, parts)
            pairs.append((question, tree.at(symbols[number])))
        return pairs

    def _of_part(self, question: Question, parts: SplitState) -> Tree:
        """The tree of a question for the variables that it reads, with symbols in order."""
        # Variables that are not read are None, so that a read would fail.
        part = tuple([p if slot in question.slots else None for slot, (p, _) in enumerate(parts.splits)])
        offsets = sum([len(parts.splits[slot][1]) for slot in question.slots])
        state = self.shapes.join(part, [Term(self.recorder, place + 1) for place in range(offsets)])
        env = self.moves.properties.environment(state)
        return Tree(unknown(offsets), partial(self._answer, question.test, env))

    def _trees(self, questions: list[Question], env: list[Any], start: Matrix) -> list[tuple[Question, Tree]]:
        return [(one, Tree(start, partial(self._answer, one.test, env))) for one in questions]

    def prune(self, control: Control) -> None:
        """Keep only the trees of a control part that some zone needs, once its first zone has walked each."""
        still = [tree.only for tree in control.instances if _is_idle(tree)]
        still += [tree.only for question, tree in control.questions if _is_settled(question, tree)]
        control.instances = [tree for tree in control.instances if not _is_idle(tree)]
        control.questions = [one for one in control.questions if not _is_settled(*one)]
        control.still = self._all_of([control.idle, *still])

    def _all_of(self, leaves: Sequence[Leaf]) -> Idle:
        """A leaf with the sum of these counts."""
        points: dict[int, int] = {}
        for leaf in leaves:
            for point, count in leaf.delta:
                points[point] = points.get(point, 0) + count
        return self._idle(tuple(points.items()), sum([leaf.cuts for leaf in leaves]))

    def _idle(self, delta: Delta, cuts: int) -> Idle:
        """The leaf where nothing is done; one for all with the same counts, since hits are per leaf."""
        return self._idles.setdefault((delta, cuts), Idle(delta, cuts))

    def _counted(self, run: Callable[[], T]) -> tuple[T, Delta, int]:
        """The result of a run, and its counts."""
        counts, moves = self.moves.counts, self.moves
        moves.horizon_cuts = 0
        result = run()
        delta = tuple([(point, counts[point]) for point in compress(self._points, counts)])
        for point, _ in delta:
            # Reset to zero for the next run: differences are kept, to be multiplied by the number of zones.
            counts[point] = 0
        return result, delta, moves.horizon_cuts

    def drop_counts(self) -> None:
        """Discard the counts of a run that did not end."""
        self.moves.counts[:] = [0] * len(self.moves.counts)

    def _answer(self, test: Test, env: list[Any]) -> PredicateValue:
        value, delta, cuts = self._counted(lambda: answered(test, env))
        return PredicateValue(delta, cuts, value)

    def _step(self, parts: SplitState, instance: _Instance, read: Any) -> Leaf:
        # The coverage of a run is that of its leaf: it depends only on the answers, not on the zone.
        index, args = instance.action, instance.args
        taken, delta, cuts = self._counted(lambda: self.moves.once(parts.state, index, args))
        if taken is None:
            idle = self._idle(delta, cuts)
            if self.recorder.is_at_top:
                instance.idle[read] = idle
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
            # A step changes few variables: the others are renamed and split once for a control part.
            splits = [self.shapes.split_like(after, parts)]
            splits += map(self.shapes.split_like, self._images(after, parts), parts.images)
        # By shape first: offsets are open, and comparing them would be a question.
        least = min([shape for shape, _ in splits])
        images = [tuple([_place(o) for o in offsets]) for shape, offsets in splits if shape == least]
        # One object for each shape: millions of zones hold it, and equal ones are compared by identity
        # first.
        shape = self._shapes.get(least)
        if shape is None:
            shape = self._shapes[least] = HashedShape(least)
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
        """Whether a state satisfies all constraints, or which constraint is undefined."""

        def evaluate() -> tuple[bool | Undefined, str]:
            try:
                return self.moves.properties.inside(env), ""
            except NoAnswer as unclear:
                return Undefined(unclear.blame.span, unclear.blame.text), unclear.name

        (value, name), delta, cuts = self._counted(evaluate)
        return PredicateValue(delta, cuts, value, name)

    def _stops(self, env: list[Any]) -> PredicateValue:
        """Whether a state without steps is a deadlock, or why `deadlock ok` is undefined."""
        may_deadlock = self.moves.properties.may_deadlock
        return self._answer(lambda here: not may_deadlock(here), env)

    def _checks_of(self, control: Control, effect: Effect, env: list[Any]) -> list[tuple[Question, Tree]]:
        """The trees of all step invariants; shared if a step changes nothing that one reads."""
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
            tree = self._kept_answers[number, part] = self._of_part(question, parts)
        # The symbols of a control part are its offsets in their order.
        return tree.at((0, *[term.symbol for slot in slots for term in parts.splits[slot][1]]))

    def complete(
        self, control: Control, effect: Effect, walker: TreeWalker, known: tuple[Classes, Matrix]
    ) -> None:
        """Add to a step from a state the trees of its checks: step invariants and constraints.

        `known`: of the first zone that takes the step, which settles the checks that need no question.
        """
        assert effect.after is not None
        classes, rows = known
        start = effect.known  # of the offsets of the control part, and of the numbers chosen by the step
        env = self.moves.properties.environment(control.parts.state, effect.after)
        steps = self._checks_of(control, effect, env)
        for _, tree in steps:
            walker.walk_once(tree, classes, rows)
        effect.still = self._all_of([tree.only for question, tree in steps if _is_settled(question, tree)])
        effect.steps = [one for one in steps if not _is_settled(*one)]
        if self.program.constraints:
            after = self.moves.properties.environment(effect.after)
            effect.inside = Tree(start, partial(self._inside, after))
            effect.outside = self._trees(self.invariants, after, start)


def symbols_of(slots: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The symbols of variables among those of a control part, 0 first, by the numbers of their offsets."""
    starts = list(accumulate(sizes, initial=1))
    return (0, *chain.from_iterable([range(starts[slot], starts[slot] + sizes[slot]) for slot in slots]))


def _place(offset: Any) -> tuple[int, int]:
    return (offset.symbol, offset.plus) if isinstance(offset, Term) else (0, offset)
