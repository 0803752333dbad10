"""The spec's side of a replay: action instances, and those that a state allows, with their successors.

The effect of an instance depends on what it reads, so it is computed once for these values, and only
if they differ from those in the state before: the places of a path differ in a few locations each.

A horizon ends a search, not the spec, so a step may lead beyond it.  A suite does not continue from such a
state, since the spec's own steps from it are not known; but the step to it must be one of the spec.

Not here: the implementation's side (`replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from operator import attrgetter
from typing import Any

from msgspec import Struct

from specchk.conform.contract.binding import Binding, BindingError, Mistake
from specchk.conform.contract.values import NotAValue, plain, reader
from specchk.conform.covers.by_location import ByLocation, Numbers
from specchk.conform.covers.locations import Touched
from specchk.ir.nodes import Value
from specchk.ir.range_checks import with_checks
from specchk.ir.ranges import without_horizons
from specchk.meaning.deadlock import OpenInstances
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import false_guards
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, Values, show
from specchk.search.verdict import Step

# States whose options are kept: cases share their beginnings, and a place is left by one step after another.
RECENT = 1024
Options = tuple[Sequence[tuple["ActionCall", tuple[State, ...]]], Sequence["ActionCall"]]


class ActionCall(Struct, frozen=True):
    """An action with its arguments; `ways` are the environment's choices, or one empty way."""

    index: int
    args: tuple[Value, ...]
    plain: tuple[Any, ...]  # the arguments as the binding gets them
    label: Step  # its state is not used
    ways: tuple[str, ...]


# The values that each way of an instance writes, by location; None where it only leads beyond a horizon.
Ways = tuple[dict[int, Any], ...] | None


class SpecSide:
    """The steps that a spec allows in a state; raises `BindingError` for a spec without an initial state."""

    def __init__(self, binding: Binding[Any]) -> None:
        self.program = binding.program
        self._stepper = Stepper(self.program)
        self._open = OpenInstances(self.program)
        self._properties = Properties(self.program, self._stepper)
        self.initial = tuple(initial_states(self.program))
        if not self.initial:
            hint = "correct the spec; an implementation has to start in one of its initial states"
            raise BindingError((Mistake("no state satisfies the spec's `init`", hint),))
        ways = {bound.action: bound.ways or ("",) for bound in binding.actions()}
        self.instances = tuple(self._all_instances(ways))
        instances: list[list[tuple[Value, ...]]] = [[] for _ in self.program.actions]
        for call in self.instances:
            instances[call.index].append(call.args)
        self._by = ByLocation(self.program, instances, attrgetter("read"), self._ways)
        self._last: tuple[Numbers, list[Ways]] = (), []
        self.options = lru_cache(RECENT)(self._options)
        """For a state `_options`, which are the same whenever it is reached."""
        self._by_label = {(call.label.action, call.label.args): call for call in self.instances}

    def _all_instances(self, ways: dict[str, tuple[str, ...]]) -> Iterator[ActionCall]:
        values = Values()
        for index, action in enumerate(self.program.actions):
            for args in product(*(values.values(param.type) for param in action.params)):
                typed = [(arg, param.type) for arg, param in zip(args, action.params, strict=True)]
                label = Step(action.name, tuple(show(arg, kind) for arg, kind in typed), ())
                given = tuple(plain(arg, kind) for arg, kind in typed)
                yield ActionCall(index, tuple(args), given, label, ways[action.name])

    def call(self, action: str, args: tuple[str, ...]) -> ActionCall | None:
        """The instance of an action with these arguments, as written in the spec; None if there is none."""
        return self._by_label.get((action, args))

    def instance(self, step: Step) -> ActionCall:
        """The instance to which a step belongs."""
        return self._by_label[step.action, step.args]

    def inside(self, state: State) -> bool:
        """Whether the spec's constraints allow a search to continue here."""
        return self._properties.inside(self._properties.environment(state))

    def _options(self, state: State) -> Options:
        """The result of each instance in a state: enabled, with its successors, or disabled.

        One that only leads beyond a horizon is neither.
        """
        enabled: list[tuple[ActionCall, tuple[State, ...]]] = []
        disabled: list[ActionCall] = []
        for call, ways in zip(self.instances, self._ways_in(state), strict=True):
            if ways:
                successors = dict.fromkeys(self._by.after(state, written) for written in ways)
                enabled.append((call, tuple(successors)))
            elif ways is not None:
                disabled.append(call)
        return enabled, disabled

    def forbidden(self, state: State) -> Sequence[ActionCall]:
        """The disabled instances in a state."""
        return [call for call, ways in zip(self.instances, self._ways_in(state), strict=True) if ways == ()]

    def _ways_in(self, state: State) -> list[Ways]:
        """The successors of all instances in a state, as the values that each of them writes."""
        numbers, (before, known) = self._by.numbers_of(state), self._last
        if before:
            changed = [at for at, (old, new) in enumerate(zip(before, numbers, strict=True)) if old != new]
            known = self._by.near(known, changed, numbers)
        else:
            known = self._by.everywhere(numbers)
        self._last = numbers, known
        return known

    def _ways(self, index: int, args: tuple[Value, ...], touched: Touched) -> Callable[[Numbers], Ways]:
        """The successors of an instance, by the numbers of the locations it reads."""

        def ways(numbers: Numbers) -> Ways:
            cuts = self._stepper.horizon_cuts
            state = self._by.narrow(touched.read, numbers)
            reached = self._stepper.of_instance(state, index, args)
            if not reached and (self._stepper.horizon_cuts > cuts or self._open.may_step(state, index, args)):
                return None
            return tuple([self._by.written(touched, after) for _, _, after in reached])

        return ways

    def allowed(self, state: State, instance: ActionCall) -> tuple[State, ...]:
        """The successors by one instance; none if it is disabled."""
        successors = self._stepper.of_action(state, instance.index, instance.args)
        return tuple(dict.fromkeys(after for _, _, after in successors))

    def forbids(self, state: State, instance: ActionCall) -> bool:
        """Whether an instance is disabled, and not because it leads beyond a horizon."""
        cuts = self._stepper.horizon_cuts
        successors = self.allowed(state, instance)  # computed, never cached: it counts cuts at horizons
        is_cut = self._stepper.horizon_cuts > cuts
        return not (successors or is_cut or self._open.may_step(state, instance.index, instance.args))

    def why_forbidden(self, state: State, instance: ActionCall) -> str:
        """The guards that forbid an instance, with the values that they read, one line each."""
        action = self.program.actions[instance.index]
        lines = []
        for guard in false_guards(self._stepper.evaluator, action, state, instance.args):
            values = ", ".join(f"{name} = {value}" for name, value in (*guard.bindings, *guard.values))
            lines.append(f"the spec forbids it: {guard.text}" + (f"  ({values})" if values else ""))
        return "\n".join(lines)

    def may_reach(self, state: State, instance: ActionCall, shown: Mapping[str, Any]) -> bool:
        """Whether a step, if only beyond a horizon, may lead to a state with these values of variables."""
        wanted = []
        for slot, variable in enumerate(self.program.variables):
            if variable.name in shown:
                try:
                    wanted.append((slot, reader(without_horizons(variable.type))(shown[variable.name])))
                except NotAValue:
                    return False
        # Of all numbers only those up to the horizon are tried, so which steps there are is not known.
        if self._open.lists(instance.index):
            return True
        try:
            successors = self._unbounded.of_action(state, instance.index, instance.args)
            return any(all(after[slot] == value for slot, value in wanted) for _, _, after in successors)
        except Faulty:
            return False

    @cached_property
    def _unbounded(self) -> Stepper:
        return _Unbounded(with_checks(self.program))


class _Unbounded(Stepper):
    """A stepper that stores numbers above a horizon."""

    def make_evaluator(self) -> Evaluator:
        """An evaluator without horizons."""
        return Evaluator(self.size, self.counts, horizons=False)
