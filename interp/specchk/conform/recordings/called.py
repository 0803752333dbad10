"""The instances of a spec's actions that the calls of a tracing name.

Not here: their steps (`validate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from specchk.conform.contract.tracing import ANY, LASTING_ARGS, Call, ImpossibleEvent
from specchk.conform.contract.values import NotAValue, raw
from specchk.ir.program import Program
from specchk.meaning.values import Values

MOST_CALLS = 1024  # kept by their addresses: those of some recordings
Instances = tuple[int, list[tuple[Any, ...]]]  # the number of an action, and arguments


class CalledInstances:
    """The instances of a program's actions by calls."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._numbers = {action.name: number for number, action in enumerate(program.actions)}
        values = Values()
        self._domains = [[values.values(p.type) for p in action.params] for action in program.actions]
        self._known: dict[tuple[str, str], Instances] = {}
        self._same: dict[int, tuple[Call, Instances]] = {}

    def of(self, call: Call) -> Instances:
        """An action's number, and all arguments that a call may have; raises `ImpossibleEvent`."""
        # A tracing may give the same call for many events.  It is kept, so that no other gets its address.
        known = self._same.get(id(call))
        if known is None:
            known = call, self._equal(call)
            if LASTING_ARGS.issuperset([arg.__class__ for arg in call.args]):
                if len(self._same) == MOST_CALLS:
                    self._same.clear()
                self._same[id(call)] = known
        return known[1]

    def _equal(self, call: Call) -> Instances:
        # By the text of the arguments, which has their types (True is 1) and exists where a hash does not.
        key = call.action, repr(call.args)
        if key not in self._known:
            self._known[key] = self._every(call)
        return self._known[key]

    def _every(self, call: Call) -> Instances:
        number = self._numbers.get(call.action)
        if number is None:
            raise ImpossibleEvent(f"the spec has no action `{call.action}`")
        params, domains = self.program.actions[number].params, self._domains[number]
        if len(params) != len(call.args):
            raise ImpossibleEvent(f"`{call.action}` takes {len(params)} arguments, not {len(call.args)}")
        choices: list[Sequence[Any]] = []
        for arg, param, domain in zip(call.args, params, domains, strict=True):
            if arg is ANY:
                choices.append(domain)
                continue
            try:
                value = raw(arg, param.type)
            except NotAValue as error:
                raise ImpossibleEvent(f"{call}: {error}") from None
            choices.append((value,) if value in domain else ())
        return number, list(product(*choices))
