"""The spec's side of a replay: instances of actions, and those that a state allows, with their successors.

What an action allows depends on the variables that it touches, so it is computed once for the values of
these: the places of a path differ in a few variables each.

Not here: the implementation's side (`replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

from specchk.conform.contract.binding import Binding, BindingError, Mistake
from specchk.conform.contract.values import plain
from specchk.ir.nodes import Value
from specchk.meaning.explain import false_guards
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State, Values, show
from specchk.search.verdict import Step

# States whose options are kept: cases share their beginnings, and a place is left by one step after another.
RECENT = 1024
KEPT = 4096  # of each action the values of its variables for which its steps are kept
Changes = tuple[tuple[int, Value], ...]  # the variables that a step changes, with their new values
Options = tuple[Sequence[tuple["ActionCall", tuple[State, ...]]], Sequence["ActionCall"]]


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action with its arguments; `ways` are the environment's choices, one empty without any."""

    index: int
    args: tuple[Value, ...]
    plain: tuple[Any, ...]  # the arguments as the binding gets them
    label: Step  # its state is not used
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What an action does where its variables have some values: the steps of each instance that has any.

    `beyond`: the instances without a step that lead beyond a horizon.
    """

    steps: dict[tuple[Value, ...], tuple[Changes, ...]]
    beyond: frozenset[tuple[Value, ...]]


class SpecSide:
    """The steps that a spec allows in a state; raises `BindingError` for a spec without an initial state."""

    def __init__(self, binding: Binding[Any]) -> None:
        self.program = binding.program
        self._stepper = Stepper(self.program)
        self._properties = Properties(self.program, self._stepper)
        self.initial = tuple(initial_states(self.program))
        if not self.initial:
            hint = "correct the spec; an implementation has to start in one of its initial states"
            raise BindingError((Mistake("no state satisfies the spec's `init`", hint),))
        ways = {bound.action: bound.ways or ("",) for bound in binding.actions()}
        self.instances = tuple(self._all_instances(ways))
        self._by_action: list[list[ActionCall]] = [[] for _ in self.program.actions]
        for call in self.instances:
            self._by_action[call.index].append(call)
        count = len(self.program.actions)
        self._known = [lru_cache(KEPT)(partial(self._allowed_by, index)) for index in range(count)]
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
        """The instance of an action with these arguments, as the spec writes them; None without one."""
        return self._by_label.get((action, args))

    def instance(self, step: Step) -> ActionCall:
        """The instance that a step is of."""
        return self._by_label[step.action, step.args]

    def inside(self, state: State) -> bool:
        """Whether the spec's constraints let a search continue here."""
        return self._properties.inside(self._properties.environment(state))

    def _options(self, state: State) -> Options:
        """The spec's answer for each instance in a state: enabled, with its successors, or disabled.

        One that only leads beyond a horizon is neither.
        """
        enabled: list[tuple[ActionCall, tuple[State, ...]]] = []
        disabled: list[ActionCall] = []
        for calls, touched, known in zip(self._by_action, self._stepper.footprints, self._known, strict=True):
            allowed = known(tuple([state[slot] for slot in touched]))
            for call in calls:
                if call.args in allowed.steps:
                    steps = allowed.steps[call.args]
                    enabled.append((call, tuple([_after(state, changes) for changes in steps])))
                elif call.args not in allowed.beyond:
                    disabled.append(call)
        return enabled, disabled

    def _allowed_by(self, index: int, values: tuple[Value, ...]) -> _Allowed:
        """What an action does where its variables have these values; all others have none."""
        state = self._stepper.narrow(index, values)
        steps: dict[tuple[Value, ...], dict[State, None]] = {}
        self._stepper.cut.clear()
        for _, args, after in self._stepper.successors_by(state, index):
            steps.setdefault(args, {})[after] = None
        beyond: frozenset[tuple[Value, ...]] = frozenset()
        # Checked only where some step of the action was cut: running every instance alone once more doubles
        # the work.
        if self._stepper.cut:
            idle = [call for call in self._by_action[index] if call.args not in steps]
            beyond = frozenset(call.args for call in idle if self._goes_beyond(state, call))
        changes = {args: tuple([_changes(state, after) for after in all_]) for args, all_ in steps.items()}
        return _Allowed(changes, beyond)

    def allowed(self, state: State, instance: ActionCall) -> tuple[State, ...]:
        """The successors by one instance; none where it is not enabled."""
        successors = self._stepper.of_action(state, instance.index, instance.args)
        return tuple(dict.fromkeys(after for _, _, after in successors))

    def forbids(self, state: State, instance: ActionCall) -> bool:
        """Whether an instance is disabled, and not because it leads beyond a horizon."""
        return not self.allowed(state, instance) and not self._goes_beyond(state, instance)

    def why_forbidden(self, state: State, instance: ActionCall) -> str:
        """The guards that forbid an instance, with the values that they read: one line for each."""
        action = self.program.actions[instance.index]
        lines = []
        for guard in false_guards(self._stepper.evaluator, action, state, instance.args):
            values = ", ".join(f"{name} = {value}" for name, value in (*guard.bindings, *guard.values))
            lines.append(f"the spec forbids it: {guard.text}" + (f"  ({values})" if values else ""))
        return "\n".join(lines)

    def _goes_beyond(self, state: State, instance: ActionCall) -> bool:
        cuts = self._stepper.horizon_cuts
        self._stepper.of_action(state, instance.index, instance.args)
        return self._stepper.horizon_cuts > cuts


def _changes(before: State, after: State) -> Changes:
    pairs = enumerate(zip(before, after, strict=True))
    return tuple([(slot, new) for slot, (old, new) in pairs if old is not new])


def _after(state: State, changes: Changes) -> State:
    after = list(state)
    for slot, value in changes:
        after[slot] = value
    return tuple(after)
