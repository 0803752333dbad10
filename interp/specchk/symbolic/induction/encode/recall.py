"""Cached encodings, for states that share trees.

An encoding depends only on the trees that it reads.  So these are noted, and if another state has the same
trees, the encoding is reused.  The place that is read next depends on the trees read before, so known
encodings form a tree of decisions by what is read.

A quantifier over listed constants reads a part of the state for each item.  If one part differs, the others
are not encoded again: each item is kept, and its reads are reads of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.ir import nodes
from specchk.ir.program import Property
from specchk.symbolic.induction.encode.bools import Truth, conj, conjuncts, disj, negation
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.program import State, System
from specchk.symbolic.induction.encode.scope import ReadPlace, ReadState, StepScope, WatchedState
from specchk.symbolic.induction.encode.steps import ActionInstance, ActionPath, Arguments, arguments, instance
from specchk.symbolic.induction.encode.trees import SetOf, Tree, lift

T = TypeVar("T")
Locals = Mapping[int, Tree]


class _Result(Struct, Generic[T], frozen=True):
    """An encoding, the places it read, and their trees, kept so that their identities are not reused."""

    value: T
    places: tuple[ReadPlace, ...]
    trees: tuple[Tree, ...]


class _Read(Struct, Generic[T], frozen=True):
    """The place that is read next, and the continuation for each tree there, by identity."""

    slot: int
    position: int | None
    ways: dict[int, _Read[T] | _Result[T]] = {}


class Recall(Generic[T]):
    """Cached results, by the trees that were read for them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Read[T] | _Result[T]] = {}

    def get(
        self, key: Hashable, state: State, after: State, run: Callable[[WatchedState, WatchedState], T]
    ) -> _Result[T]:
        """The result of a run for a state and the state after it."""
        trees = (*state, *after) if after else state
        known = self._known.get(key)
        while isinstance(known, _Read):
            tree = trees[known.slot]
            known = known.ways.get(id(tree if known.position is None else tree[known.position]))
        if known is not None:
            return known
        read: dict[ReadPlace, None] = {}
        value = run(WatchedState(state, read), WatchedState(after, read, len(state)))
        return self._note(key, trees, read, value)

    def _note(self, key: Hashable, trees: Sequence[Tree], read: Iterable[ReadPlace], value: T) -> _Result[T]:
        places = tuple(read)
        parts = [trees[slot] if position is None else trees[slot][position] for slot, position in places]
        ways: dict[Hashable, _Read[T] | _Result[T]] = self._known
        here: Hashable = key
        for (slot, position), part in zip(places, parts, strict=True):
            step = ways.setdefault(here, _Read(slot, position))
            assert isinstance(step, _Read)
            assert (step.slot, step.position) == (slot, position), "two runs that read the same differ"
            ways, here = step.ways, id(part)  # type: ignore[assignment]
        assert here not in ways
        result = ways[here] = _Result(value, places, tuple(parts))
        return result


class _Items(Struct, frozen=True):
    """Conditions in order, all (`every`) or one of which must hold: expressions, each with bound names."""

    every: bool
    parts: tuple[tuple[nodes.Expr, Locals], ...]


class _Predicate(Struct, frozen=True):
    """The condition under which a predicate is undefined, and its truth elsewhere."""

    faults: tuple[Truth, ...]
    truth: Truth


class _EncodedProperty(Struct, frozen=True):
    """The conditions that a property is undefined, and that it is defined and true."""

    unclear: Truth
    kept: Truth


class RecallingSystem(System):
    """As `System`, for many states with common trees; its instances have names that start with `t.`."""

    _rows: list[tuple[int, Arguments]] = field(default_factory=list)
    _instances: Recall[ActionInstance] = field(default_factory=Recall)
    _properties: Recall[_EncodedProperty] = field(default_factory=Recall)
    _parts: Recall[_Predicate] = field(default_factory=Recall)
    _items: dict[int, _Items] = field(default_factory=dict)

    def __post_init__(self) -> None:
        actions = enumerate(self.program.actions)
        self._rows = [
            (index, row) for index, action in actions for row in arguments(self.program, action, "t.")
        ]

    def instances(self, state: State, tag: str = "t.") -> list[ActionInstance]:
        """Every action with its arguments, from a state."""
        instances = []
        for number, (index, row) in enumerate(self._rows):
            made = self._instances.get(
                number,
                state,
                (),
                lambda read, _: instance(self.program, index, row, read, "t."),  # noqa: B023
            ).value
            instances.append(_rebased(made, state) if made.outcomes else made)
        return instances

    def kept(self, prop: Property, state: State, after: State | None = None) -> Truth:
        """The condition that a property is defined and true of a state, or of a step."""
        return self._decision(prop, state, after or ()).kept

    def unclear(self, prop: Property, state: ReadState) -> Truth:
        """The condition that a property is undefined in a state."""
        assert isinstance(state, tuple)
        return self._decision(prop, state, ()).unclear

    def _decision(self, prop: Property, state: State, after: State) -> _EncodedProperty:
        def made(read: WatchedState, later: WatchedState) -> _EncodedProperty:
            whole = self._whole(prop, state, after, read.read)
            parts = [part for fault in whole.faults for part in conjuncts(negation(fault))]
            return _EncodedProperty(disj(whole.faults), conj([*parts, *conjuncts(whole.truth)]))

        return self._properties.get(id(prop), state, after, made).value

    def _whole(self, prop: Property, state: State, after: State, read: dict[ReadPlace, None]) -> _Predicate:
        """A property composed of its parts; as in the evaluator, those after a deciding one do not count."""
        if id(prop) not in self._items:
            every = not isinstance(prop.body, nodes.Quantifier) or prop.body.every
            self._items[id(prop)] = _Items(every, tuple(_bodies(prop.body, every, {})))
        items = self._items[id(prop)]
        faults, truths, path = list[Truth](), list[Truth](), list[Truth]()
        for number, (body, known) in enumerate(items.parts):
            result = self._parts.get((id(prop), number), state, after, partial(_predicate, body, known))
            read.update(dict.fromkeys(result.places))
            part = result.value
            faults += [conj([*path, fault]) for fault in part.faults]
            truths.append(part.truth)
            if part.truth is (not items.every):
                break
            if part.truth is not items.every:
                path.append(part.truth if items.every else negation(part.truth))
        return _Predicate(tuple(faults), conj(truths) if items.every else disj(truths))


def _bodies(expr: nodes.Expr, every: bool, known: Locals) -> Iterator[tuple[nodes.Expr, Locals]]:
    """The bodies of nested quantifiers of one kind over constants, for each of their items."""
    match expr:
        case nodes.Quantifier(domain=nodes.Const(ends_at_horizon=False) as domain) if expr.every is every:
            listing = lift(domain.value, domain.type)
            assert isinstance(listing, SetOf)
            for item, _ in listing.items:
                yield from _bodies(expr.body, every, {**known, expr.local.slot: item})
        case _:
            yield expr, known


def _predicate(body: nodes.Expr, known: Locals, state: WatchedState, after: WatchedState) -> _Predicate:
    scope = StepScope(state, after if after.trees else state, dict(known))
    truth = encode(body, scope)
    return _Predicate(tuple(scope.faults), truth)


def _rebased(made: ActionInstance, state: State) -> ActionInstance:
    """An instance whose outcomes have another state's trees in unassigned places."""
    # By assigned places, not by unchanged ones: a value that the first state had by chance is assigned in
    # others, too.
    outcomes = []
    for outcome in made.outcomes:
        after = list(state)
        for slot, positions in outcome.assigned.items():
            new = outcome.after[slot]
            if positions is not None:
                entries = list(state[slot])
                for position in positions:
                    entries[position] = new[position]
                new = tuple(entries)
            after[slot] = new
        outcomes.append(
            ActionPath(outcome.action, outcome.args, outcome.guard, tuple(after), outcome.assigned)
        )
    return replace(made, outcomes=tuple(outcomes))
