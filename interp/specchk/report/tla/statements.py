"""Actions in TLA+: conjunctions in which each path gives every variable a new value.

Statements become conjuncts in their order, and the assignments of a path come last: behind all conditions on
which they may rely to have a value.  An `either` or `if` is a conjunct of its own if what follows it neither
assigns the same variables nor decides whether an assignment in it is made; else what follows is repeated in
each of its branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from specchk.ir import nodes
from specchk.ir.totality import is_total
from specchk.ir.types import Map, Record, Seq
from specchk.ir.walk import assignments, statements
from specchk.report.tla.expressions import Expressions, Scope
from specchk.report.tla.layout import (
    Tight,
    Tla,
    atom,
    bracketed,
    clause,
    compared,
    indexed,
    junction,
    let,
    quantified,
)
from specchk.report.tla.names import cleaned
from specchk.report.tla.operators import except_, position

Pending = tuple[nodes.Assign, ...]


class Relations:
    """Blocks of statements over a module's variables."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.types = expressions.types

    def action(self, body: nodes.Block, scope: Scope) -> Tla:
        """The relation between the states before and after the action."""
        owed = frozenset(range(len(self.expressions.variables)))
        return self._path(body, scope, (), owed)

    def _path(self, body: nodes.Block, scope: Scope, pending: Pending, owed: frozenset[int]) -> Tla:
        """A block: afterwards the variables `owed` have their new values."""
        parts: list[Tla] = []
        for number, stmt in enumerate(body):
            rest = body[number + 1 :]
            match stmt:
                case nodes.Guard():
                    parts += self.expressions.condition(stmt.condition, scope)
                case nodes.Assign():
                    pending = (*pending, stmt)
                case nodes.Either() | nodes.When():
                    if self._is_apart(stmt, rest, pending):
                        own = frozenset(assign.slot for assign in assignments((stmt,)))
                        parts.append(self._branches(stmt, (), scope, (), own))
                        owed -= own
                        continue
                    return _all([*parts, self._branches(stmt, rest, scope, pending, owed)])
                case _:
                    return _all([*parts, *self._binding(stmt, rest, scope, pending, owed)])
        return _all([*parts, *self._assigned(pending, scope, owed)])

    def _binding(
        self, stmt: nodes.Bind | nodes.Unwrap | nodes.Choice, rest: nodes.Block, scope: Scope,
        pending: Pending, owed: frozenset[int],
    ) -> list[Tla]:  # fmt: skip
        """A statement that binds a name in all that follows it."""
        name, inner = self.expressions.bind(stmt.local, scope)
        if isinstance(stmt, nodes.Choice):
            domain = self.expressions.domain(stmt.domain, scope)
            body = self._path((*stmt.body, *rest), inner, pending, owed)
            return [quantified(f"\\E {name} \\in ", domain, body)]
        value = self.expressions.expr(stmt.value, scope)
        body = self._path(rest, inner, pending, owed)
        if isinstance(stmt, nodes.Bind):
            return [let(name, value, body)]
        return [self.types.is_some(value), let(name, indexed(value, atom("1")), body)]

    def _branches(
        self, stmt: nodes.Either | nodes.When, rest: nodes.Block, scope: Scope, pending: Pending,
        owed: frozenset[int],
    ) -> Tla:  # fmt: skip
        if isinstance(stmt, nodes.Either):
            ways = [self._path((*branch, *rest), scope, pending, owed) for branch in stmt.branches]
            return junction("\\/", ways, "FALSE")
        then, orelse = [self._path((*part, *rest), scope, pending, owed) for part in (stmt.then, stmt.orelse)]
        test = self.expressions.expr(stmt.condition, scope)
        return clause([("IF ", test), ("THEN ", then), ("ELSE ", orelse)])

    @staticmethod
    def _is_apart(stmt: nodes.Either | nodes.When, rest: nodes.Block, pending: Pending) -> bool:
        """Whether the branches are independent of what comes before and after them."""
        own = assignments((stmt,))
        others = {assign.slot for assign in (*pending, *assignments(rest))}
        if any(assign.slot in others for assign in own):
            return False
        decides = any(not isinstance(other, nodes.Assign | nodes.Bind) for other in statements(rest))
        return not decides or all(_is_sure(assign) for assign in own)

    def _assigned(self, pending: Pending, scope: Scope, owed: frozenset[int]) -> list[Tla]:
        """The new values of the variables `owed`."""
        parts, same = [], []
        for slot in sorted(owed):
            name = self.expressions.variables[slot]
            mine = [assign for assign in pending if assign.slot == slot]
            if not mine:
                same.append(name)
                continue
            parts.append(compared(atom(name + "'"), "=", self._new(name, mine, scope)))
        if len(same) == 1:
            parts.append(Tla((f"UNCHANGED {same[0]}",), Tight.NOT))
        elif same:
            parts.append(bracketed("UNCHANGED <<", [atom(name) for name in same], ">>").at(Tight.NOT))
        return parts

    def _new(self, name: str, mine: Sequence[nodes.Assign], scope: Scope) -> Tla:
        if not mine[-1].path:
            return self.expressions.expr(mine[-1].value, scope)
        return except_(
            atom(name), [(self._place(one, scope), self.expressions.expr(one.value, scope)) for one in mine]
        )

    def _place(self, assign: nodes.Assign, scope: Scope) -> Tla:
        text = atom("!")
        for step in assign.path:
            match step.container:
                case Record() as kind:
                    assert step.field is not None
                    text = (
                        indexed(text, atom(str(step.field + 1)))
                        if kind.is_tuple
                        else atom(f"{text.lines[0]}.{cleaned(kind.fields[step.field][0])}")
                    )
                case Map() | Seq() as of:
                    assert step.key is not None
                    key = self.expressions.expr(step.key, scope)
                    text = indexed(text, position(key) if isinstance(of, Seq) else key)
        return text


def _all(parts: Sequence[Tla]) -> Tla:
    return junction("/\\", parts, "TRUE")


def _is_sure(assign: nodes.Assign) -> bool:
    """Whether the new value exists wherever the assignment is."""
    value = assign.value.body if isinstance(assign.value, nodes.Narrow) else assign.value
    return is_total(value) and all(step.key is None or is_total(step.key) for step in assign.path)
