"""Symmetry: one representative for all states that differ only by a renaming of sort elements.

Sorts are scalars that a spec can only compare for equality, so renaming their elements maps
behaviours to behaviours - unless the spec can distinguish elements in another way.  There are four:
a constant can name one (only renamings that leave all constants unchanged count), `choose` over
values that contain elements picks the first, a fold iterates over them in order, and a
quantifier stops at the first item that decides, so that an item without a value counts only before
it (then that sort is left alone).  The
representative of a state is the least of its renamings in the order of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations, product
from math import factorial, prod
from types import MappingProxyType
from typing import Any

from specchk.ir.footprint import switched_off
from specchk.ir.guarded import unguarded
from specchk.ir.nodes import And, Choose, Cover, Expr, Implies, Or, Quantifier
from specchk.ir.program import Constant, Program, Same
from specchk.ir.types import Bag, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.typing import sorts_in
from specchk.ir.verify import parts, results
from specchk.ir.walk import expressions, inside, roots
from specchk.meaning.values import State, universe

Renaming = dict[str, tuple[int, ...]]  # sort -> new position of each element
Rename = Callable[[Any], Any]
# 7!: every successor is renamed so often, and the states become at most so many times fewer.
MAX_RENAMINGS = 5040
MAX_IMAGES = 100_000  # of values of a variable that are kept


def symmetry_of(program: Program) -> tuple[Symmetry | None, str]:
    """The symmetry to search with, or None, and its description in a report."""
    # Which state of several is the first depends on the order of steps, which renaming changes.
    if program.ignored:
        return None, "off (ignored variables)"
    # Renamed, a state has the same future, but not the same instances: fairness to one element of a sort and
    # to another would become one condition (tlaplus #59).
    if program.temporal:
        return None, "off (temporal properties)"
    symmetry = Symmetry(program)
    if symmetry.order == 1:
        return None, f"off ({symmetry.reason})" if symmetry.reason else "off"
    return symmetry, f"on ({symmetry.order} renamings{symmetry.reason and '; '}{symmetry.reason})"


def asymmetry(program: Program) -> str:
    """What restricts a program's renamings, with its place; empty if nothing does, or none would be used."""
    return "" if program.ignored or program.temporal else Symmetry(program).reason


class Symmetry:
    """The renamings of a program, or those given; `canonical` is a state's representative."""

    def __init__(self, program: Program, renamings: list[Renaming] | None = None) -> None:
        self.reason = ""
        self.renamings = self._renamings(program) if renamings is None else renamings
        kinds = [variable.type for variable in program.variables]
        self._renames = [[renamer(kind, r) for kind in kinds] for r in self.renamings[1:]]
        self._images: list[dict[Any, tuple[Any, ...]]] = [{} for _ in kinds]  # of values of each variable

    @property
    def order(self) -> int:
        """The number of renamings; 1 means no symmetry."""
        return len(self.renamings)

    def _renamings(self, program: Program) -> list[Renaming]:
        fixed = _distinguished(program)
        free = [sort for sort in program.sorts if sort.name not in fixed and len(sort.members) > 1]
        reasons = dict.fromkeys(fixed.values())
        self.reason = "; ".join(
            f"{reason} distinguishes the elements of {_names(s for s, why in fixed.items() if why == reason)}"
            for reason in reasons
        )
        count = prod(factorial(len(sort.members)) for sort in free)
        # The renamings that keep the constants are a group, so classes are its orbits and the least of an
        # orbit is the same from any of its states (Ip and Dill, Better verification
        # through symmetry, 1996).  The identity comes first: callers that need no copy skip it by its place.
        every = renamings_of(program, free)
        kept = [renaming for renaming in every if _keeps_constants(program, renaming)]
        if count > MAX_RENAMINGS:
            self.reason = f"{count} renamings of {_names(s.name for s in free)} are too many to enumerate"
        elif len(kept) == 1 and free:
            naming = next(
                c for c in _constants(program) if not all(_keeps(renaming, c) for renaming in every)
            )
            self.reason = f"the constant `{naming.name}` at {naming.span.where} names an element"
        return kept

    def canonical(self, state: State) -> State:
        """The representative of a state: the least image, found variable by variable."""
        least: list[Any] = []
        left: Sequence[int] = range(len(self.renamings))  # those whose image starts with the least values
        for slot, value in enumerate(state):
            images = self._images[slot].get(value)
            if images is None:
                images = self._note_images(slot, value)
            if len(left) == 1:
                least.append(images[left[0]])
                continue
            least.append(min([images[number] for number in left]))
            left = [number for number in left if images[number] == least[-1]]
        return tuple(least)

    def _note_images(self, slot: int, value: Any) -> tuple[Any, ...]:
        """A variable's value under each renaming; cached, since many states share a value."""
        cached = self._images[slot]
        if len(cached) * len(self.renamings) >= MAX_IMAGES:
            cached.clear()
        images = cached[value] = (value, *[renames[slot](value) for renames in self._renames])
        return images

    def images(self, state: State) -> Iterator[State]:
        """The images of a state under all renamings except the identity."""
        for renames in self._renames:
            yield tuple([rename(value) for rename, value in zip(renames, state, strict=True)])

    def images_like(self, state: State, before: State, images: Sequence[State]) -> Iterator[State]:
        """As `images`, for a state that shares some values with another one, whose images are known."""
        for renames, image in zip(self._renames, images, strict=True):
            slots = zip(renames, state, before, image, strict=True)
            yield tuple([renamed if value is was else rename(value) for rename, value, was, renamed in slots])


def renamings_of(program: Program, free: Sequence[Sort]) -> list[Renaming]:
    """The renamings of some sorts, the identity first; the identity alone if there are too many."""
    identity: Renaming = {sort.name: tuple(range(len(sort.members))) for sort in program.sorts}
    if prod(factorial(len(sort.members)) for sort in free) > MAX_RENAMINGS:
        return [identity]
    every = product(*(permutations(range(len(sort.members))) for sort in free))
    return [{**identity, **{s.name: p for s, p in zip(free, chosen, strict=True)}} for chosen in every]


def _programs(program: Program) -> tuple[Program, ...]:
    return (program, *[refinement.abstract for refinement in program.refinements])


def _constants(program: Program) -> list[Constant]:
    return [constant for each in _programs(program) for constant in each.constants]


def _keeps_constants(program: Program, renaming: Renaming) -> bool:
    return all(_keeps(renaming, constant) for constant in _constants(program))


def _keeps(renaming: Renaming, constant: Constant) -> bool:
    return bool(renamer(constant.type, renaming)(constant.value) == constant.value)


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _distinguished(program: Program) -> dict[str, str]:
    """The sorts with elements that a program distinguishes, each with what does so first, and its place."""
    reasons: dict[str, str] = {}
    for expr in expressions(program):
        if isinstance(expr, Choose) and not expr.unique:
            reasons = dict.fromkeys(sorts_in(expr.local.type), f"`choose` at {expr.span.where}") | reasons
    for each in _programs(program):
        off = switched_off(each)
        for fold in each.folds:
            if fold.owner not in off:
                reasons.setdefault(fold.sort, f"`fold` at {fold.span.where}")
    for sort, part in decisive_sorts(Same(program)).items():
        reasons.setdefault(sort, f"a quantifier that may be undefined at {part.span.where}")
    return reasons


@lru_cache(maxsize=4)  # a search may be repeated with more room for its sets
def decisive_sorts(same: Same) -> Mapping[str, Expr]:
    """The sorts whose order may decide whether a quantifier of a step or a property is defined.

    Each with the expression that may have no value.
    """
    # Where an item is false or has no value, a `forall` that is an invariant is a violation in any order.  An
    # `exists` with a true item reaches its witness; that it has no value in a renamed state, where an item
    # without a value comes first, is no reason to search them all.
    partial = {id(part): part for part in unguarded(same.program)}
    sorts: dict[str, Expr] = {}
    for quantifier in _ended_early(same.program, invariant=True, witness=False) if partial else ():
        part = next((partial[id(part)] for part in inside(quantifier.body) if id(part) in partial), None)
        if part is not None:
            sorts = dict.fromkeys(sorts_in(quantifier.local.type), part) | sorts
    return MappingProxyType(sorts)


def counted_by_order(program: Program, renamings: Sequence[Renaming], *, violated: bool) -> frozenset[int]:
    """The coverage points whose counts may be 0 only because states were renamed.

    A quantifier ends at the first item that decides, so a point in its body may be reached in some states of
    a class only.  The items of an invariant's `forall` are all reached, unless it is violated.
    """
    moved = {
        name for renaming in renamings for name, places in renaming.items() if list(places) != sorted(places)
    }
    ended = _ended_early(program, invariant=None if violated else True, witness=None) if moved else ()
    bodies = [
        quantifier.body for quantifier in ended if not moved.isdisjoint(sorts_in(quantifier.local.type))
    ]
    return frozenset(node.point for body in bodies for node in inside(body) if isinstance(node, Cover))


def _ended_early(program: Program, *, invariant: bool | None, witness: bool | None) -> Iterator[Quantifier]:
    """The quantifiers over elements that may end before the last, where this is not the end of a search.

    `invariant`, `witness`: the values of these in all states that matter.
    """
    # Expressions, each with its value; None if it may have either.
    left: list[tuple[Expr, bool | None]]
    left = [(root, None) for action in program.actions for root in roots(action.body)]
    left += [(prop.body, invariant) for prop in (*program.invariants, *program.step_invariants)]
    left += [(prop.body, witness) for prop in program.witnesses]
    left += [(prop.body, None) for prop in (*program.constraints, program.deadlock_ok) if prop is not None]
    while left:
        expr, answer = left.pop()
        answers: tuple[Expr, ...] = ()
        match expr:
            case Quantifier():
                if expr.every is answer:
                    answers = (expr.body,)
                elif any(sorts_in(expr.local.type)):
                    yield expr
            case _ if answer is None:  # then it is of no part
                pass
            case And():
                answers = expr.parts if answer else expr.parts[-1:]  # all true, or the last one decides
            case Or():
                answers = expr.parts[-1:]
            case Implies():
                answers = (expr.right,)
            case _:
                answers = results(expr)
        decisive = {id(node) for node in answers}
        left.extend([(part, answer if id(part) in decisive else None) for part in parts(expr)])


def renamer(kind: Type, renaming: Renaming) -> Rename:
    """The function that renames the sort elements inside a value of a type."""
    if all(renaming[name] == tuple(range(len(renaming[name]))) for name in sorts_in(kind)):
        return _same
    match kind:
        case Sort():
            return renaming[kind.name].__getitem__
        case Option() | Seq():
            item = renamer(kind.item, renaming)
            return lambda value: tuple([item(part) for part in value])
        case Set() | Bag():
            item = renamer(kind.item, renaming)
            return lambda value: tuple(sorted([item(part) for part in value]))
        case Map():
            key, item = renamer(kind.key, renaming), renamer(kind.value, renaming)
            keys = sorted(universe(kind.key))
            new_keys = list(map(key, keys))
            source = list(map(new_keys.index, keys))  # the new map at k is the old one at what becomes k
            return lambda value: tuple([item(value[index]) for index in source])
        case Record():
            parts = [renamer(item, renaming) for _, item in kind.fields]
            return lambda value: tuple([part(v) for part, v in zip(parts, value, strict=True)])
        case Union():
            records = [renamer(record, renaming) for _, record in kind.variants]
            return lambda value: (value[0], records[value[0]](value[1]))
    return _same


def _same(value: Any) -> Any:
    return value
