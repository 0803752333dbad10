"""The variables that properties read and actions assign repeatedly, and the reachable parts of a program."""

from __future__ import annotations

from functools import lru_cache, reduce

from msgspec.structs import replace

from specchk.ir.nodes import Assign, Block, Const, Cover, Either, Expr, Guard, Var, When
from specchk.ir.program import Action, Program, Property, Same
from specchk.ir.types import Type, has_horizon, has_horizon_keys
from specchk.ir.typing import part_at
from specchk.ir.walk import assignments, expressions, inside, roots, statements


def read_by(prop: Property) -> frozenset[int]:
    """The positions of the variables that a property reads, before or after a step."""
    return frozenset(node.slot for node in inside(prop.body) if isinstance(node, Var))


def assigned_often(body: Block) -> frozenset[int]:
    """The variables with more than one assignment in a block.

    Statically and roughly: two assignments on different ways are counted as well, which costs a claim at
    run time and changes no meaning.
    """
    slots = [stmt.slot for stmt in assignments(body)]
    return frozenset(slot for slot in slots if slots.count(slot) > 1)


def live_points(program: Program) -> frozenset[int]:
    """The coverage points that can be reached: constants rule some branches out."""
    return _live_points(Same(program))


@lru_cache(maxsize=4)
def _live_points(same: Same) -> frozenset[int]:
    program = same.program
    off = switched_off(program)
    # By the rest of the program: the count of a definition's branch is one point for all actions that use it.
    live = replace(program, actions=tuple(action for action in program.actions if action.name not in off))
    found = {node.point for node in expressions(live) if isinstance(node, Cover)}
    for action in live.actions:
        found.add(action.point)
        found.update(*(s.points for s in statements(action.body) if isinstance(s, Either | When)))
    return frozenset(found)


def switched_off(program: Program) -> tuple[str, ...]:
    """The actions that the constants (and the ranges they set) never enable, in declaration order."""
    return tuple(action.name for action in program.actions if _never(action.body))


def _never(body: Block) -> bool:
    """Whether a guard of the block is plainly false after simplification."""
    # Guards of the block itself: a false one inside an `either` or a `when` closes only that path.
    guards = [stmt.condition for stmt in body if isinstance(stmt, Guard)]
    return any(isinstance(condition, Const) and not condition.value for condition in guards)


def lists_horizon(program: Program) -> bool:
    """Whether all values of a type with a horizon are used anywhere: its end is then a bound."""
    listed = has_keys_to_horizon(program) or starts_list_horizon(program) or steps_list_horizon(program)
    return listed or any(map(_ends_at_horizon, expressions(program)))


def has_keys_to_horizon(program: Program) -> bool:
    """Whether a variable or a constant is, or contains, a map with the numbers up to a horizon as keys."""
    kinds = [*[one.type for one in program.variables], *[one.type for one in program.constants]]
    return any(map(has_horizon_keys, kinds))


def starts_list_horizon(program: Program) -> bool:
    """Whether initial values use all values of a type with a horizon."""
    starts = zip(program.variables, program.starts, strict=True)
    open_ = any(s.value is None and s.choices is None and has_horizon(v.type) for v, s in starts)
    given = [one for s in program.starts for one in (s.value, s.choices) if one is not None]
    return open_ or any(map(expression_lists_horizon, [*given, *[init.body for init in program.inits]]))


def steps_list_horizon(program: Program) -> bool:
    """Whether actions use all values of a type with a horizon: steps may continue beyond its end."""
    params = [param.type for action in program.actions for param in action.params]
    return any(map(has_horizon, params)) or any(map(statements_list_horizon, program.actions))


def statements_list_horizon(action: Action) -> bool:
    """Whether an action with given arguments uses all values of a type with a horizon."""
    return any(map(expression_lists_horizon, roots(action.body)))


def expression_lists_horizon(expr: Expr) -> bool:
    """Whether an expression uses all values of a type with a horizon."""
    return any(map(_ends_at_horizon, inside(expr)))


def _ends_at_horizon(expr: Expr) -> bool:
    return (isinstance(expr, Const) and expr.ends_at_horizon) or has_horizon_keys(expr.type)


def stored_type(program: Program, stmt: Assign) -> Type:
    """The type of the place that an assignment writes."""
    return reduce(part_at, stmt.path, program.variables[stmt.slot].type)
