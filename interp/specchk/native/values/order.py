"""The head of an action: its plain guards, and the order of parameters that excludes the most.

    action truncate(replica, epoch):
        let request = requests[epoch] else skip     # of 12 choices four are tried, and few of these
        require request.leader != some(replica)     # with each replica, where `epoch` is chosen first

Which order is best depends on how often guards hold, which is not known: each is assumed to exclude half.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from specchk.ir.nodes import And, Bind, Block, Expr, Guard, Local, Stmt, Unwrap
from specchk.ir.program import Action
from specchk.ir.types import cardinality
from specchk.native.values.totality import ExpressionFacts

Head = list[tuple[frozenset[int], Stmt]]  # statements, each with the parameters that it needs
MOST_ORDERED = 4  # parameters, of which there are 24 orders
_HOLDS = 0.5


def head_of(action: Action, facts: ExpressionFacts) -> tuple[Head, Block]:
    """The plain statements at the head of an action, and the rest."""
    needs: dict[int, frozenset[int]] = {p.slot: frozenset({p.slot}) for p in action.params}
    head: Head = []
    body = split(action.body)
    for position, stmt in enumerate(body):
        root = root_of(stmt)
        # Only what cannot fail or count may be evaluated earlier, or once for many: otherwise a fault would
        # be reported, or coverage counted, that the reference stepper does not have.  The first other
        # statement ends the head.
        if root is None or not facts.plain(root):
            return head, body[position:]
        used: frozenset[int] = frozenset().union(*(needs[slot] for slot in facts.free(root)))
        if isinstance(stmt, Unwrap):  # the name that it binds exists only behind its guard
            used = frozenset().union(used, *(n for n, s in head if isinstance(s, Unwrap)))
        if isinstance(stmt, Bind | Unwrap):
            needs[stmt.local.slot] = used
        head.append((used, stmt))
    return head, ()


def split(body: Block) -> Block:
    """The block with the conjuncts of guards as separate guards."""
    out: list[Stmt] = []
    for stmt in body:
        # As a separate guard, it moves out of loops over parameters that it does not mention (`best_order`).
        if isinstance(stmt, Guard) and isinstance(stmt.condition, And):
            out += split(tuple(Guard(part) for part in stmt.condition.parts))
        else:
            out.append(stmt)
    return tuple(out)


def root_of(stmt: Stmt) -> Expr | None:
    """The expression of a statement that only decides or names; None for any other."""
    match stmt:
        case Guard():
            return stmt.condition
        case Bind() | Unwrap():
            return stmt.value
    return None


def best_order(params: Sequence[Local], head: Head, facts: ExpressionFacts) -> list[Local]:
    """The parameters in the order in which the head is likely to be cheapest to decide."""
    if len(params) > MOST_ORDERED:
        return list(params)
    # The first of several best orders: the declared one, if that is among them.
    best = min(permutations(params), key=lambda order: _price(order, head, facts))
    return list(best)


def _price(order: Sequence[Local], head: Head, facts: ExpressionFacts) -> float:
    open_, rest, tried, price = {param.slot for param in order}, head, 1.0, 0.0
    for param in order:
        open_.remove(param.slot)
        tried *= cardinality(param.type)
        price += tried
        for used, stmt in rest:
            root = root_of(stmt)
            if used & open_ or root is None:
                continue
            price += tried * facts.cost(root)
            if not isinstance(stmt, Bind):
                tried *= _HOLDS
        rest = [(used, stmt) for used, stmt in rest if used & open_]
    return price
