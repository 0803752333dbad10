"""From actions to outcomes: the rules of `meaning.step`, with the undecided parts left open.

An outcome is one way through an action with its arguments: under its guard, the variables after the
step are trees over the state before it.  `either` and `any` make several outcomes, `when` makes one
by merging both branches; so a step is `some outcome's guard holds and the state after is its state`.
Offsets that are chosen (`any n in low..high`, a parameter of a `nat upto`) are fresh numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, assert_never

import z3
from msgspec import Struct, field
from msgspec.structs import replace

from specchk.ir import nodes
from specchk.ir.program import Action, Program
from specchk.ir.range_checks import checked
from specchk.ir.types import Map, has_horizon
from specchk.symbolic.induction.encode.bools import Truth, both, conj, disj, negation
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.merge import equal, has, merge
from specchk.symbolic.induction.encode.numbers import equal_numbers, less
from specchk.symbolic.induction.encode.ops import decided_position, key_guards
from specchk.symbolic.induction.encode.scope import (
    Entries,
    ReadState,
    StepScope,
    entry,
    placed,
    written,
)
from specchk.symbolic.induction.encode.states import OpenTrees, keys
from specchk.symbolic.induction.encode.trees import RangeOf, SeqOf, SetOf, Tree, lift

Place = tuple[Tree, ...]


class ActionPath(Struct, frozen=True):
    """A path through an action: its position, its arguments, its condition, and the state after it.

    `assigned` has the slots that it assigns, even those that keep their values; with the positions if it
    assigns only some entries of a map.
    """

    action: int
    args: tuple[Tree, ...]
    guard: Truth
    after: tuple[Tree, ...]
    assigned: Mapping[int, tuple[int, ...] | None]


class ActionInstance(Struct, frozen=True):
    """An action with its arguments: its effects, and the conditions under which it is undefined.

    `undefined`: that there is a fault.  `refused`: that no outcome is taken with the chosen numbers.
    `chosen`: the fresh numbers of arguments and of `any`; each value of theirs is a step of its own.
    """

    action: int
    args: tuple[Tree, ...]
    outcomes: tuple[ActionPath, ...]
    faults: tuple[Truth, ...]
    undefined: Truth
    refused: Truth
    chosen: tuple[Any, ...]

    @property
    def numbers(self) -> list[Any]:
        """The numbers among the chosen values."""
        return [made for made in self.chosen if z3.is_int(made)]

    @property
    def idle(self) -> Truth:
        """The condition that it can do nothing, whatever is chosen."""
        if isinstance(self.refused, bool) or not self.chosen:
            return self.refused
        # "Nothing can be chosen" must hold for all numbers: with a free number, the solver would choose one
        # that is refused, and call every state with an open choice a deadlock.
        return z3.ForAll(self.chosen, self.refused)


class _Frame(Struct, frozen=True):
    """A position on one path."""

    guards: tuple[Truth, ...] = ()
    locals: dict[int, Tree] = field(default_factory=dict)
    writes: dict[int, Tree | Entries] = field(default_factory=dict)
    claims: tuple[tuple[int, Truth, Place], ...] = ()  # variable, when, path
    faults: tuple[tuple[int, Truth], ...] = ()  # of assignments, each with the number of guards above it

    @property
    def due(self) -> list[Truth]:
        """The faults of assignments, which are none where a guard below them is false."""
        return [conj([*self.guards[above:], fault]) for above, fault in self.faults]

    def when(self, *guards: Truth) -> _Frame:
        """The frame continued under the guards."""
        return replace(self, guards=(*self.guards, *[g for g in guards if g is not True]))

    def knowing(self, slot: int, tree: Tree) -> _Frame:
        """The frame with a name bound."""
        return replace(self, locals={**self.locals, slot: tree})


class Arguments(Struct, frozen=True):
    """The arguments of an instance, and the facts about open ones, which are derived from `chosen`."""

    trees: tuple[Tree, ...]
    fact: Truth
    chosen: tuple[Any, ...]


def arguments(program: Program, action: Action, tag: str) -> list[Arguments]:
    """All arguments of an action; those that contain offsets are open, with names starting with `tag`."""
    domains: list[list[Tree]] = []
    fresh = OpenTrees()
    with placed(action.span):
        for position, param in enumerate(action.params):
            if has_horizon(param.type):
                domains.append([fresh.tree(param.type, f"{tag}{action.name}/{position}")])
            else:
                domains.append([lift(value, param.type) for value in keys(param.type)])
    fact, chosen = conj(fresh.facts), tuple(fresh.made)
    return [Arguments(row, fact, chosen) for row in product(*domains)]


def instance(
    program: Program, index: int, arguments: Arguments, state: ReadState, tag: str = ""
) -> ActionInstance:
    """The effect of an action with its arguments; names of fresh numbers start with `tag`."""
    return _Encoding(program, index, arguments, state, tag).result()


class _Encoding:
    def __init__(self, program: Program, index: int, given: Arguments, state: ReadState, tag: str) -> None:
        self.program = program
        self.index = index
        self.action = program.actions[index]
        self.given = given
        self.state = state
        self.tag = tag
        self.faults: list[Truth] = []
        self.chosen = [*given.chosen]

    def result(self) -> ActionInstance:
        args = self.given.trees
        names = {param.slot: arg for param, arg in zip(self.action.params, args, strict=True)}
        frames = self.block(
            checked(self.program, self.action.body), [_Frame(locals=names).when(self.given.fact)]
        )
        outcomes = []
        for frame in frames:
            guard = conj(frame.guards)
            if guard is not False:
                self.faults += [fault for fault in frame.due if fault is not False]
                # Unassigned variables keep their trees, so that their part of an invariant can be settled by
                # form.
                after = written(self.state, frame.writes)
                outcomes.append(ActionPath(self.index, args, guard, after, _assigned(frame)))
        undefined = disj(self.faults)
        refused = conj([negation(outcome.guard) for outcome in outcomes])
        return ActionInstance(
            self.index, args, tuple(outcomes), tuple(self.faults), undefined, refused, tuple(self.chosen)
        )

    def scoped(self, frame: _Frame) -> StepScope:
        """The scope in which the frame's expressions are encoded."""
        return StepScope(self.state, self.state, dict(frame.locals), list(frame.guards), self.faults)

    def eval(self, expr: nodes.Expr, frame: _Frame) -> Tree:
        return encode(expr, self.scoped(frame))

    def block(self, body: nodes.Block, frames: list[_Frame]) -> list[_Frame]:
        for stmt in body:
            frames = [after for frame in frames for after in self._statement(stmt, frame)]
            # Paths with a guard decided to be false are dropped before the next statement multiplies them.
            frames = [frame for frame in frames if not any(guard is False for guard in frame.guards)]
        return frames

    def _statement(self, stmt: nodes.Stmt, frame: _Frame) -> list[_Frame]:
        match stmt:
            case nodes.Guard():
                return [frame.when(self.eval(stmt.condition, frame))]
            case nodes.Bind():
                return [frame.knowing(stmt.local.slot, self.eval(stmt.value, frame))]
            case nodes.Unwrap():
                option = self.eval(stmt.value, frame)
                if option.present is False:
                    return []
                return [frame.knowing(stmt.local.slot, option.item).when(option.present)]
            case nodes.Assign():
                return [self._assign(stmt, frame)]
            case nodes.Choice():
                return self._choice(stmt, frame)
            case nodes.Either():
                return [after for branch in stmt.branches for after in self.block(branch, [frame])]
            case nodes.When():
                return self._when(stmt, frame)
            case _:
                assert_never(stmt)

    def _choice(self, stmt: nodes.Choice, frame: _Frame) -> list[_Frame]:
        starts = [
            frame.knowing(stmt.local.slot, item).when(guard) for item, guard in self._choices(stmt, frame)
        ]
        return [after for start in starts for after in self.block(stmt.body, [start])]

    def _choices(self, stmt: nodes.Choice, frame: _Frame) -> Iterable[tuple[Tree, Truth]]:
        """The possible choices and their conditions; one open value for a choice that contains offsets."""
        fresh = OpenTrees()
        # Different for each choice on each path: two choices must not share a number.
        args = ",".join(map(str, self.given.trees))
        name = f"{self.tag}{self.action.name}/any{len(self.chosen) + 1}/{args}"
        if isinstance(stmt.domain, nodes.Const) and stmt.domain.ends_at_horizon:
            with placed(stmt.domain.span):
                item = fresh.tree(stmt.local.type, name)
            self.chosen += fresh.made
            return [(item, conj(fresh.facts))]
        domain = self.eval(stmt.domain, frame)
        if isinstance(domain, RangeOf):
            self.chosen.append(z3.Int(name))
            return [(self.chosen[-1], has(domain, self.chosen[-1]))]
        assert isinstance(domain, SetOf)
        return domain.items

    def _when(self, stmt: nodes.When, frame: _Frame) -> list[_Frame]:
        condition = self.eval(stmt.condition, frame)
        if isinstance(condition, bool):
            return self.block(stmt.then if condition else stmt.orelse, [frame])
        then = self.block(stmt.then, [frame.when(condition)])
        orelse = self.block(stmt.orelse, [frame.when(negation(condition))])
        # One path each, as nearly always: merged, so that ten `when` in a row give one outcome and not 1024.
        if len(then) == 1 and len(orelse) == 1:
            with placed(stmt.condition.span):
                return [self._merged(condition, frame, then[0], orelse[0])]
        return [*then, *orelse]

    def _merged(self, condition: Truth, frame: _Frame, a: _Frame, b: _Frame) -> _Frame:
        """Both branches as one path, so that the code after `when` is encoded once."""
        known = len(frame.guards)
        guard = disj((conj(a.guards[known:]), conj(b.guards[known:])))
        if len(a.guards) == known + 1 and len(b.guards) == known + 1:
            guard = True  # the condition or its negation
        writes = dict(frame.writes)
        for slot in sorted({*a.writes, *b.writes}):
            some = [frame.writes[slot] for frame in (a, b) if slot in frame.writes]
            if all(isinstance(new, Entries) for new in some):
                changed = sorted({position for new in some for position in new.table})
                writes[slot] = Entries({
                    k: merge(condition, self._entry(a, slot, k), self._entry(b, slot, k)) for k in changed
                })  # fmt: skip
            else:
                writes[slot] = merge(condition, self._now(a, slot), self._now(b, slot))
        old = len(frame.claims)
        claims = (
            *frame.claims,
            *[(slot, both(condition, when), path) for slot, when, path in a.claims[old:]],
            *[(slot, both(negation(condition), when), path) for slot, when, path in b.claims[old:]],
        )
        merged = replace(frame, writes=writes, claims=claims).when(guard)
        below = len(merged.guards)
        due = [fault for branch in (a, b) for fault in branch.due[len(frame.faults) :]]
        return replace(merged, faults=(*frame.faults, *[(below, fault) for fault in due]))

    def _assign(self, stmt: nodes.Assign, frame: _Frame) -> _Frame:
        scope = replace(self.scoped(frame), faults=[])
        path = tuple([step.field if step.key is None else encode(step.key, scope) for step in stmt.path])
        value = encode(stmt.value, scope)
        with placed(stmt.span):
            self._claim(stmt, path, frame, scope)
            new = self._written(stmt, path, frame, value, scope) if path else value
        claims = (*frame.claims, (stmt.slot, True, path))
        faults = (*frame.faults, *[(len(frame.guards), fault) for fault in scope.faults])
        return replace(frame, writes={**frame.writes, stmt.slot: new}, claims=claims, faults=faults)

    def _written(
        self, stmt: nodes.Assign, path: Place, frame: _Frame, value: Tree, scope: StepScope
    ) -> Tree | Entries:
        """A variable, or its entries, after part of it was assigned."""
        slot, kind = stmt.slot, stmt.path[0].container
        position = decided_position(kind.key, path[0]) if isinstance(kind, Map) else None
        if position is None:
            return _replaced(self._now(frame, slot), stmt, path, 0, value, scope)
        new = _replaced(self._entry(frame, slot, position), stmt, path, 1, value, scope)
        known = frame.writes.get(slot, Entries({}))
        if isinstance(known, Entries):
            return Entries({**known.table, position: new})
        return Entries({position: new}).over(known)

    def _now(self, frame: _Frame, slot: int) -> Tree:
        # Not `get` with a default: that would read a variable even if no part of it is kept.
        if slot not in frame.writes:
            return self.state[slot]
        new = frame.writes[slot]
        return new.over(self.state[slot]) if isinstance(new, Entries) else new

    def _entry(self, frame: _Frame, slot: int, position: int) -> Tree:
        new = frame.writes.get(slot, Entries({}))
        if not isinstance(new, Entries):
            return new[position]
        # As in `_now`: written entries are not read.
        return new.table[position] if position in new.table else entry(self.state, slot, position)

    def _claim(self, stmt: nodes.Assign, path: Place, frame: _Frame, scope: StepScope) -> None:
        """A fault if this place, or one around or in it, is already assigned."""
        for slot, when, other in frame.claims:
            if slot == stmt.slot:
                again = conj([equal(a, b) for a, b in zip(path, other, strict=False)])
                scope.fail(both(when, again))


def _replaced(old: Tree, stmt: nodes.Assign, path: Place, depth: int, new: Tree, scope: StepScope) -> Tree:
    """The container with the place at the end of the path replaced."""
    if depth == len(path):
        return new
    step, key = stmt.path[depth], path[depth]

    def inside(part: Tree) -> Callable[[], Tree]:
        return lambda: _replaced(part, stmt, path, depth + 1, new, scope)

    if step.field is not None:
        return tuple([inside(part)() if k == step.field else part for k, part in enumerate(old)])
    assert step.key is not None
    if isinstance(step.container, Map):
        guards = key_guards(step.container.key, key, scope)
        return tuple([_put(guard, part, inside(part)) for guard, part in zip(guards, old, strict=True)])
    assert isinstance(old, SeqOf)
    scope.fail(disj((less(key, 0), negation(less(key, old.length)))))
    slots = [_put(equal_numbers(key, k), part, inside(part)) for k, part in enumerate(old.slots)]
    return SeqOf(old.length, tuple(slots))


def _assigned(frame: _Frame) -> dict[int, tuple[int, ...] | None]:
    rows = sorted(frame.writes.items(), key=lambda row: row[0])
    return {slot: tuple(sorted(new.table)) if isinstance(new, Entries) else None for slot, new in rows}


def _put(guard: Truth, old: Tree, new: Callable[[], Tree]) -> Tree:
    return old if guard is False else merge(guard, new(), old)
