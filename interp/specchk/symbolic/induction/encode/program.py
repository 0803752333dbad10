"""A program on open states: initial states, invariants and steps, each as Z3 terms.

`System` names fresh states `s0`, `s1`, ...; a predicate of a state is given by its conjuncts, including the
conditions under which it is defined, so that "holds" means "is defined and true".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from specchk.ir.nodes import Expr
from specchk.ir.program import Program, Property, Start, Variable
from specchk.ir.types import has_horizon, has_horizon_keys
from specchk.symbolic.induction.encode.bools import Truth, conj, conjuncts, disj, negation
from specchk.symbolic.induction.encode.exprs import encode
from specchk.symbolic.induction.encode.merge import equal, has
from specchk.symbolic.induction.encode.scope import ReadState, Unencodable, of_state, placed
from specchk.symbolic.induction.encode.states import OpenTrees, outside
from specchk.symbolic.induction.encode.steps import ActionInstance, arguments, instance
from specchk.symbolic.induction.encode.trees import Tree

State = tuple[Tree, ...]


class System(Struct):
    """The encoding of a program; `fresh.facts` hold for all open states created so far."""

    program: Program
    fresh: OpenTrees = field(default_factory=OpenTrees)

    def __post_init__(self) -> None:
        for constant in self.program.constants:
            # As in `symbolic.legality`: parts that were computed beforehand occur in no expression.
            if has_horizon_keys(constant.type):
                raise Unencodable(constant.span, f"`{constant.name}` is a map with offsets as its keys")

    def state(self, index: int) -> State:
        """An open state; a repeated call returns the same one and records its facts again."""
        return tuple([
            self._variable(variable, f"s{index}.{variable.name}") for variable in self.program.variables
        ])  # fmt: skip

    def beginning(self) -> State:
        """Open state 0 of a behaviour, with the values of the variables that have one initial value.

        Everything that depends on them is then decided during encoding, not encoded for all states.
        """
        pairs = zip(self.program.variables, self.program.starts, strict=True)
        return tuple([self._begun(variable, start) for variable, start in pairs])

    def _begun(self, variable: Variable, start: Start) -> Tree:
        if start.value is not None:
            value, defined = _constant(start.value)
            with placed(variable.span):
                beyond = outside(value, variable.type) if has_horizon(start.value.type) else []
            if not defined and not beyond:
                return value
        return self._variable(variable, f"s0.{variable.name}")

    def _variable(self, variable: Variable, name: str) -> Tree:
        with placed(variable.span):
            return self.fresh.tree(variable.type, name)

    def instances(self, state: State, tag: str = "") -> list[ActionInstance]:
        """Every action with its arguments, from a state, in the stepper's order."""
        return [
            instance(self.program, index, given, state, tag)
            for index, action in enumerate(self.program.actions)
            for given in arguments(self.program, action, tag)
        ]

    def holds(self, prop: Property, state: ReadState, after: ReadState | None = None) -> list[Truth]:
        """The conjuncts stating that a property is defined and true in a state, or of a step."""
        scope = of_state(state, after)
        truth = encode(prop.body, scope)
        # Being defined is part of holding: an invariant must not be true by being undefined.
        parts = [part for fault in scope.faults for part in conjuncts(negation(fault))]
        return [*parts, *conjuncts(truth)]

    def unclear(self, prop: Property, state: ReadState) -> Truth:
        """The condition that a property is undefined in a state."""
        scope = of_state(state)
        encode(prop.body, scope)
        return disj(scope.faults)

    def constrained(self, state: State) -> list[Truth]:
        """The conjuncts of the state constraints; other states are not expanded."""
        return [part for prop in self.program.constraints for part in self.holds(prop, state)]

    def unclear_constraints(self, state: State) -> list[tuple[Property, Truth]]:
        """The state constraints, each with the condition that it is undefined and those before it hold."""
        return list(self._unclear_in_order(self.program.constraints, state))

    def initial(self, state: State) -> list[Truth]:
        """The conditions of an initial state; offsets have no upper bound here either."""
        begun = self._started(state)
        return [*begun, *[part for init in self.program.inits for part in self.holds(init, state)]]

    def unclear_initial(self, state: State) -> Truth:
        """The condition that `init` is undefined, where everything before the undefined part holds."""
        begun = self._started(state)
        return disj([when for _, when in self._unclear_in_order(self.program.inits, state, begun)])

    def _unclear_in_order(
        self, props: Iterable[Property], state: State, known: Iterable[Truth] = ()
    ) -> Iterator[tuple[Property, Truth]]:
        # As in evaluation: after a false property, no other one is evaluated.
        before = list(known)
        for prop in props:
            yield prop, conj([*before, self.unclear(prop, state)])
            before += self.holds(prop, state)

    def _started(self, state: State) -> list[Truth]:
        """The conditions that each variable has an initial value."""
        facts: list[Truth] = []
        pairs = zip(self.program.variables, self.program.starts, state, strict=True)
        for variable, start, tree in pairs:
            if start.value is not None:
                value, defined = _constant(start.value)
                with placed(variable.span):
                    beyond = outside(value, variable.type) if has_horizon(start.value.type) else []
                    facts += [*defined, *map(negation, beyond), equal(tree, value)]
            elif start.choices is not None:
                value, defined = _constant(start.choices)
                with placed(variable.span):
                    facts += [*defined, has(value, tree)]
        return facts


def _constant(expr: Expr) -> tuple[Tree, list[Truth]]:
    scope = of_state(())
    return encode(expr, scope), [negation(fault) for fault in scope.faults]


def step(instances: Sequence[ActionInstance], after: State) -> Truth:
    """The condition that some outcome leads to `after`, from a state in which every action is defined."""
    ways = [
        conj([outcome.guard, *[equal(a, b) for a, b in zip(outcome.after, after, strict=True)]])
        for found in instances
        for outcome in found.outcomes
    ]
    # A state with any fault has no steps at all, as in `meaning.step`.
    return conj([disj(ways), *[negation(fault) for found in instances for fault in found.faults]])


def distinct_from(goals: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """The goals that are not syntactically equal to known facts."""
    # Z3 shares equal terms, so equal forms have the same number.
    forms = {fact.get_id() for fact in known if not isinstance(fact, bool)}
    return [goal for goal in goals if isinstance(goal, bool) or goal.get_id() not in forms]
