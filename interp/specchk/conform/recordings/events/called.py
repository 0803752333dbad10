"""The instances of a spec's actions named by the calls of a tracing.

Not here: their steps (`validate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from specchk.conform.contract.tracing import (
    ANY,
    LASTING_ARGS,
    BeyondBounds,
    Call,
    ImpossibleEvent,
    Repeated,
    TracedStep,
    may_be_no_step,
)
from specchk.conform.contract.values import NotAValue, raw
from specchk.conform.recordings.events.beyond import call_lists_horizon
from specchk.conform.recordings.events.steps import Horizons
from specchk.ir.program import Program
from specchk.ir.types import Type, has_horizon
from specchk.meaning.moves import outlines
from specchk.meaning.values import Values

MOST_CALLS = 1024  # kept by their addresses: those of some recordings
Instances = tuple[int, list[tuple[Any, ...]]]  # the number of an action, and arguments
Ways = tuple[tuple[TracedStep, ...], ...]


class RepeatedInstances(NamedTuple):
    """The instances of a call that an event may represent repeatedly."""

    instances: Instances
    least: int
    most: int


SpecStep = Instances | RepeatedInstances
SpecWays = tuple[tuple[SpecStep, ...], ...]


class CalledInstances:
    """The instances of a program's actions, by call.

    `changing` counts the calls with arguments that may change; `lists_horizon` is whether the numbers up to
    a horizon were listed for some call.
    """

    def __init__(self, program: Program, horizons: Horizons = Horizons.KEPT) -> None:
        self.program = program
        self._horizons = horizons
        self._numbers = {action.name: number for number, action in enumerate(program.actions)}
        values = Values()
        self._domains = [
            [outlines(p.type) if self._is_open(p.type) else values.values(p.type) for p in action.params]
            for action in program.actions
        ]  # fmt: skip
        self._known: dict[tuple[str, str], Instances] = {}
        self._same: dict[int, tuple[Call, Instances]] = {}
        self._ways: dict[int, tuple[object, tuple[SpecWays, bool]]] = {}
        self.changing = 0
        self.lists_horizon = False

    def of_ways(self, ways: Ways) -> tuple[SpecWays, bool]:
        """The instances of each way, and whether some way takes no step; raises `ImpossibleEvent`."""
        # As calls are: a tracing may give the same ways for many events, or the same call.
        is_call = len(ways) == 1 and len(ways[0]) == 1 and ways[0][0].__class__ is Call
        given = ways[0][0] if is_call else ways
        known = self._ways.get(id(given))
        if known is None:
            changing = self.changing
            known = given, (tuple([tuple(map(self.step, way)) for way in ways]), may_be_no_step(ways))
            if changing == self.changing:
                if len(self._ways) == MOST_CALLS:
                    self._ways.clear()
                # With the object itself, so that no other gets its address.
                self._ways[id(given)] = known
        return known[1]

    def step(self, step: TracedStep) -> SpecStep:
        """The instances of a step."""
        if isinstance(step, Repeated):
            return RepeatedInstances(self.of(step.call), step.least, step.most)
        return self.of(step)

    def of(self, call: Call) -> Instances:
        """The number of an action, and all possible arguments of a call; raises `ImpossibleEvent`."""
        # A tracing may give the same call for many events.
        known = self._same.get(id(call))
        if known is None:
            known = call, self._equal(call)
            if LASTING_ARGS.issuperset([arg.__class__ for arg in call.args]):
                if len(self._same) == MOST_CALLS:
                    self._same.clear()
                self._same[id(call)] = known
            else:
                self.changing += 1
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
        self.lists_horizon |= call_lists_horizon(self.program.actions[number], call)
        choices: list[Sequence[Any]] = []
        for arg, param, domain in zip(call.args, params, domains, strict=True):
            if arg is ANY:
                choices.append(domain)
                continue
            try:
                value = raw(arg, self._horizons.of_type(param.type))
            except NotAValue as error:
                refusal = BeyondBounds if error.is_beyond else ImpossibleEvent
                raise refusal(f"{call}: {error}") from None
            is_value = self._is_open(param.type) or value in domain or _is_beyond(arg, param.type)
            choices.append((value,) if is_value else ())
        return number, list(product(*choices))

    def _is_open(self, kind: Type) -> bool:
        """Whether values of a type that are not recorded have open numbers, which are None in them."""
        return self._horizons is Horizons.OPEN and has_horizon(kind)


def _is_beyond(arg: Any, kind: Type) -> bool:
    """Whether a value has a number above a horizon of its type, where such values are read."""
    try:
        raw(arg, kind)
    except NotAValue as error:
        return error.is_beyond
    return False
