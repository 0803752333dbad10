"""The truth of atoms in a state, for each choice of their keys: evaluated, and encoded.

A table is a map of maps of truth values, one map a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from msgspec import Struct, field

from specchk.ir.footprint import read_by
from specchk.ir.nodes import Expr
from specchk.ir.program import Program, Property
from specchk.ir.types import Map, cardinality
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.values import State
from specchk.symbolic.induction.encode.bools import Truth, negation
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.scope import StepScope, of_state
from specchk.symbolic.induction.templates import Atom

Lowered = Callable[[str], tuple[Expr, int]]  # a text's expression, with the number of its locals
Keys = tuple[int, ...]


def invariant(name: str, lowered: tuple[Expr, int]) -> Property:
    """A lowered text as an invariant."""
    body, locals_ = lowered
    return Property("invariant", name, body, locals_, body.span)


class AtomTable(Struct, frozen=True):
    """The expressions for an atom's truth, and for its falsehood if that is not the complement; its reads.

    `sizes`: the numbers of values of its keys.
    """

    atom: Atom
    true: Property
    false: Property | None
    reads: frozenset[int]
    sizes: tuple[int, ...]

    def masks(self, states: Sequence[State], width: int) -> dict[bool, dict[Keys, int]]:
        """For true and false, for each choice of keys: a bit for each state, the first one lowest."""
        rows = list(product(*map(range, self.sizes)))
        true = self._bits(self.true, states, width, rows)
        if self.false is not None:
            return {True: true, False: self._bits(self.false, states, width, rows)}
        full = (1 << len(states)) - 1
        return {True: true, False: {row: full ^ bits for row, bits in true.items()}}

    def _bits(
        self, table: Property, states: Sequence[State], width: int, rows: list[Keys]
    ) -> dict[Keys, int]:
        answer = Evaluator(width).compile(table.body)
        bits = dict.fromkeys(rows, 0)
        for number, state in enumerate(states):
            truths = answer([*state, *state, *([0] * table.locals)])
            for row in rows:
                if _at(truths, row):
                    bits[row] |= 1 << number
        return bits


def tables(
    program: Program, atoms: Iterable[Atom], names: Sequence[str], lowered: Lowered
) -> dict[Atom, AtomTable]:
    """The tables of atoms, except those that may be undefined somewhere."""
    state = System(program).state(0)
    by_atom = {}
    for atom in atoms:
        true = invariant("table", lowered(atom.table(names)))
        false = invariant("table", lowered(atom.table(names, negated=True))) if atom.options else None
        if not any(_faults(table, of_state(state)) for table in (true, false) if table is not None):
            by_atom[atom] = AtomTable(atom, true, false, read_by(true), _sizes(true, len(atom.domains)))
    return by_atom


def _faults(table: Property, scope: StepScope) -> bool:
    encode(table.body, scope)
    return bool(scope.faults)


def _sizes(table: Property, keys: int) -> tuple[int, ...]:
    sizes, kind = [], table.body.type
    for _ in range(keys):
        assert isinstance(kind, Map)
        sizes.append(cardinality(kind.key))
        kind = kind.value
    return tuple(sizes)


def _at(table: Any, row: Sequence[int]) -> Any:
    for key in row:
        table = table[key]
    return table


class Truths(Struct):
    """The truth of atoms in an encoded state, computed on demand.

    `before`: the truths in the state before a step, which stay for atoms of unchanged variables.
    """

    tables: Mapping[Atom, AtomTable]
    state: Sequence[Any]
    before: Truths | None = None
    _known: dict[tuple[Atom, bool], Any] = field(default_factory=dict)

    def at(self, atom: Atom, row: Sequence[int], *, positive: bool) -> Truth:
        """Whether an atom is true, or false, for some keys."""
        table = self.tables[atom]
        if self.before is not None and not self.may_differ(atom):
            return self.before.at(atom, row, positive=positive)
        body = table.true if positive or table.false is None else table.false
        key = atom, body is table.true
        if key not in self._known:
            self._known[key] = encode(body.body, of_state(self.state))
        truth = _at(self._known[key], row)
        return truth if positive or table.false is not None else negation(truth)

    def may_differ(self, atom: Atom) -> bool:
        """Whether a step changes a variable that an atom reads."""
        assert self.before is not None
        pairs = [(self.state[slot], self.before.state[slot]) for slot in self.tables[atom].reads]
        return any(after is not before for after, before in pairs)
