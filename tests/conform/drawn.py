"""Implementations of random specs: correct ones, and ones that are wrong in one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from typing import Any

from specchk.conform.contract.binding import Accepted, Answer, Binding, Refused, action, project
from specchk.conform.contract.values import plain, raw
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State, universe

Call = tuple[State, int, tuple[Any, ...]]  # a state, an action and its arguments
MOST_STATES, MOST_CALLS = 200, 200


class TooLarge(Exception):
    """The spec has more states or calls than a test can check."""


@dataclass
class Implementation:
    """Takes the steps of a spec; `flaw` is one call with another result, None if it is refused."""

    program: Program
    flaw: tuple[Call, State | None] | None = None
    taken: list[tuple[Call, State]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.program)
        self.properties = Properties(self.program, self.stepper)

    def allowed(self, call: Call) -> list[State]:
        """The states that the spec allows after a call."""
        return sorted({after for _, _, after in self.stepper.of_action(*call)})

    def result(self, call: Call) -> State | None:
        """The state after a call."""
        if self.flaw is not None and self.flaw[0] == call:
            return self.flaw[1]
        allowed = self.allowed(call)
        digest = int(sha256(repr(call).encode()).hexdigest()[:8], 16)
        return allowed[digest % len(allowed)] if allowed else None

    def calls(self) -> tuple[list[Call], list[Call]]:
        """All calls in the reached states: the accepted ones, and the refused ones."""
        calls = [
            (at, args) for at, one in enumerate(self.program.actions)
            for args in product(*(sorted(universe(param.type)) for param in one.params))
        ]  # fmt: skip
        states, taken, refused = [initial_states(self.program)[0]], list[Call](), list[Call]()
        for state in states:
            if len(states) > MOST_STATES or len(calls) > MOST_CALLS:
                raise TooLarge
            if not self.properties.keeps(state):
                continue
            for at, args in calls:
                cuts = self.stepper.horizon_cuts
                after = self.result((state, at, args))
                if after is not None:
                    taken.append((state, at, args))
                    states += [after] * (after not in states)
                elif self.stepper.horizon_cuts == cuts:
                    refused.append((state, at, args))
        return taken, refused

    def binding(self) -> Binding[list[State]]:
        """A binding to it, which records the accepted steps."""
        program = self.program

        class Own(Binding[list[State]]):
            spec = "random.spec"

            def start(self) -> list[State]:
                return [initial_states(program)[0]]

            @project
            def state(self, system: list[State]) -> dict[str, Any]:
                pairs = zip(program.variables, system[0], strict=True)
                return {variable.name: plain(value, variable.type) for variable, value in pairs}

        for at, one in enumerate(program.actions):
            setattr(Own, f"do_{one.name}", action(one.name)(self._handler(at)))
        return Own(program)

    def _handler(self, at: int) -> Any:
        params = self.program.actions[at].params

        def handle(_: Any, system: list[State], *given: Any) -> Answer:
            args = tuple(raw(value, param.type) for value, param in zip(given, params, strict=True))
            call = system[0], at, args
            after = self.result(call)
            if after is None:
                return Refused("no")
            self.taken.append((call, after))
            system[0] = after
            return Accepted()

        return handle
