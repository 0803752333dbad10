"""The encoded relation of a program, compared with the reference interpreter state by state.

The relation is encoded once, over an open state.  Pinned to a concrete state it has to have exactly
the successors, the undefined actions and the truth values that `core` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import z3

from specchk.ir.program import Program, Property
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.symbolic.induction.encode.bools import conj
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.merge import equal
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.scope import of_state
from specchk.symbolic.induction.encode.states import ModelReader, OpenTrees
from specchk.symbolic.induction.encode.steps import ActionInstance, ActionPath
from specchk.symbolic.induction.encode.trees import lift, plain

TAG = "chosen."


def within(value: Any, kind: Type) -> bool:
    """Whether a value is at or below all horizons of its type."""
    match kind:
        case Int():
            return value <= kind.high or not kind.horizon
        case Option() | Set() | Seq() | Bag():
            return all(within(item, kind.item) for item in value)
        case Map():
            return all(within(item, kind.value) for item in value)
        case Record():
            return all(within(item, part) for item, (_, part) in zip(value, kind.fields, strict=True))
        case Union():
            return within(value[1], kind.variants[value[0]][1])
    return True


def some_states(program: Program, limit: int, random: Random) -> list[Any]:
    """Reachable states, visited in random order."""
    stepper = Stepper(program)
    todo = list(initial_states(program))
    seen = set(todo)
    while todo and len(seen) < limit:
        try:
            found = stepper.successors(todo.pop(random.randrange(len(todo))))
        except Faulty:
            continue
        for _, _, after in found:
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return sorted(seen)


def asked(program: Program) -> tuple[Property, ...]:
    """The predicates of states."""
    return (*program.invariants, *program.witnesses, *program.constraints)


class Relation:
    """The encoding of a program, ready to be pinned."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stepper = Stepper(program)
        self.core = Properties(program, self.stepper)
        self.tests = [(p.name, self.core.evaluator.compile(p.body)) for p in asked(program)]
        fresh = OpenTrees()
        self.state = tuple(fresh.tree(v.type, v.name) for v in program.variables)
        self.instances = System(program).instances(self.state, TAG)
        self.properties = []
        for prop in asked(program):
            scope = of_state(self.state)
            self.properties.append((encode(prop.body, scope), scope.faults))
        self.solver = z3.Solver()
        self.solver.add(fresh.facts)
        self.open = {id(outcome): mentions(outcome.guard) for i in self.instances for outcome in i.outcomes}
        self.open |= {id(fault): mentions(fault) for i in self.instances for fault in i.faults}

    def differences(self, state: Any) -> list[str]:
        """The differences between the encoding and the reference interpreter in a state."""
        self.solver.push()
        kinds = [v.type for v in self.program.variables]
        pins = [equal(t, lift(v, kind)) for t, v, kind in zip(self.state, state, kinds, strict=True)]
        self.solver.add(*[pin for pin in (conj(pins),) if pin is not True])
        assert self.solver.check() == z3.sat, "a reachable state is not a value of its types"
        reading = ModelReader(self.solver.model())
        try:
            assert self._read(reading, self.state) == state, "a state does not come back"
            return [*self._predicates(reading, state), *self._steps(reading, state)]
        finally:
            self.solver.pop()

    def _read(self, reading: ModelReader, trees: Any) -> Any:
        pairs = zip(trees, self.program.variables, strict=True)
        return tuple(reading.value(tree, variable.type) for tree, variable in pairs)

    def _predicates(self, reading: ModelReader, state: Any) -> Iterator[str]:
        env = self.core.environment(state)
        for (name, test), (tree, faults) in zip(self.tests, self.properties, strict=True):
            try:
                wanted: bool | None = bool(test(env))
            except Undefined:
                wanted = None
            found = None if any(reading.truth(f) for f in faults) else reading.truth(tree)
            if found != wanted:
                yield f"{name} is {found}, not {wanted}"

    def _steps(self, reading: ModelReader, state: Any) -> Iterator[str]:
        cuts = self.stepper.horizon_cuts
        failing = {self.program.actions[i.action].name for i in self.instances if self._fails(reading, i)}
        try:
            wanted = set(self.stepper.successors(state))
        except Faulty as fault:
            if self.program.actions[fault.action].name not in failing:
                yield f"action {fault.action} is undefined: {fault}"
            return
        if failing:
            if self.stepper.horizon_cuts == cuts:  # a step that is not taken is not evaluated to its end
                yield f"{failing} is not undefined"
            return
        found = {step for i in self.instances for o in i.outcomes for step in self._taken(reading, o)}
        if found != wanted:
            yield f"successors: too many {sorted(found - wanted)[:2]}, missing {sorted(wanted - found)[:2]}"

    def _fails(self, reading: ModelReader, instance: ActionInstance) -> bool:
        return any(
            self.solver.check(fault) == z3.sat if self.open[id(fault)] else reading.truth(fault)
            for fault in instance.faults
        )

    def _taken(self, reading: ModelReader, outcome: ActionPath) -> Iterator[Any]:
        args = tuple(plain(arg) for arg in outcome.args)
        if not self.open[id(outcome)]:
            if reading.truth(outcome.guard):
                after = self._read(reading, outcome.after)
                if self._within(after):
                    yield outcome.action, args, after
            return
        self.solver.push()  # numbers are chosen: one solution after the other
        self.solver.add(outcome.guard)
        for value in range(-4, 10):
            yield from self._chosen(outcome, args, value)
        self.solver.pop()

    def _chosen(self, outcome: ActionPath, args: Any, value: int) -> Iterator[Any]:
        self.solver.push()
        self.solver.add([number == value for number in self.open[id(outcome)]])
        if self.solver.check() == z3.sat:
            reading = ModelReader(self.solver.model())
            after = self._read(reading, outcome.after)
            if self._within(after):
                shown = tuple(
                    reading.number(arg) if plain(arg) is None else plain(arg) for arg in outcome.args
                )
                yield outcome.action, shown, after
        self.solver.pop()

    def _within(self, after: Any) -> bool:
        pairs = zip(after, self.program.variables, strict=True)
        return all(within(value, variable.type) for value, variable in pairs)


def mentions(term: Any) -> list[Any]:
    """The chosen numbers in a term."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    todo = [] if isinstance(term, bool) else [term]
    while todo:
        part = todo.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            todo += part.children()
            if z3.is_const(part) and part.decl().name().startswith(TAG):
                found[part.get_id()] = part
    return list(found.values())
