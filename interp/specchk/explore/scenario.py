"""Scenarios: walk-throughs that are executed line by line.

A step must be enabled, `refused` must not be; where an action leaves a choice open, `where` selects,
and without it all outcomes are followed at once: an assertion must then hold in each of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from specchk.compile.ground import evaluate_constant
from specchk.compile.instantiate import Instance
from specchk.ir.program import Property
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame, blame
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.search.verdict import Step, Trace


class ScenarioFailure(Struct, frozen=True):
    """The line that failed, and the reason; the trace is one way to reach it."""

    span: Span
    message: str
    blame: Blame | None
    trace: Trace | None  # None when there is no initial state


class ScenarioResult(Struct, frozen=True):
    """The result of running a scenario; `failure` is None if every line succeeded."""

    name: str
    model: str
    lines: int
    failure: ScenarioFailure | None
    trace: Trace | None = None  # one way in which all lines go as written


class _Failed(Exception):
    def __init__(self, failure: ScenarioFailure) -> None:
        self.failure = failure
        super().__init__(failure)

    def __str__(self) -> str:
        return self.failure.message


def run_scenario(instance: Instance, scenario: decls.Scenario) -> ScenarioResult:
    """Run a scenario on an instance of its model."""
    failure = trace = None
    try:
        runner = _Runner(instance, scenario.span)
        for line in scenario.steps:
            runner.line(line)
        trace = runner.traces[0]
    except _Failed as failed:
        failure = failed.failure
    return ScenarioResult(scenario.name, instance.program.model, len(scenario.steps), failure, trace)


class _Runner:
    def __init__(self, instance: Instance, span: Span) -> None:
        self.instance = instance
        self.program = instance.program
        self.stepper = Stepper(self.program)
        self.evaluator = Evaluator(len(self.program.variables))
        try:
            self.traces = [Trace(state, ()) for state in initial_states(self.program)]
        except Undefined as undefined:
            raise self._failed(span, f"the initial state is undefined: {undefined.reason}", None) from None
        if not self.traces:
            raise self._failed(span, "no state satisfies `init`", None)

    def line(self, line: decls.TakeStep | decls.Assert) -> None:
        """Run one line; raises `_Failed`."""
        if isinstance(line, decls.Assert):
            for trace in self.traces:
                # In each outcome: with a choice left open, an assertion that holds only in one of them shows
                # nothing.
                if not self._true(line.condition, trace, line.span):
                    body, locals_ = self.instance.lowering.expression(line.condition)
                    prop = Property("assert", "assert", body, locals_, line.condition.span)
                    why = blame(prop, self.evaluator, [*trace.last, *trace.last])
                    raise self._failed(line.span, "the assertion is false", trace, why)
        elif line.refused:
            self._refused(line)
        else:
            self._take(line)

    def _failed(self, span: Span, message: str, trace: Trace | None, why: Blame | None = None) -> _Failed:
        return _Failed(ScenarioFailure(span, message, why, trace))

    def _outcomes(self, line: decls.TakeStep, trace: Trace) -> list[Trace]:
        """The trace extended by every outcome of the line's action."""
        action, args = self._instance_of(line.call, trace)
        try:
            found = self.stepper.of_action(trace.last, action, args)
        except Faulty as fault:
            raise self._failed(line.span, f"undefined: {fault.undefined.reason}", trace) from None
        # Each once: choices that lead to the same state are one outcome, and in their first order.
        steps = dict.fromkeys(Step.of(self.program, *item) for item in found)
        return [trace.then(step) for step in steps]

    def _instance_of(self, call: tree.CallExpr, trace: Trace) -> tuple[int, tuple[Any, ...]]:
        names = [action.name for action in self.program.actions]
        if call.callee.text not in names:
            raise self._failed(call.span, f"the model omits action `{call.callee.text}`", trace)
        lowered = [self.instance.lowering.expression(arg.value)[0] for arg in call.args]
        args = tuple(map(evaluate_constant, lowered))
        return names.index(call.callee.text), args

    def _take(self, line: decls.TakeStep) -> None:
        outcomes = [outcome for trace in self.traces for outcome in self._outcomes(line, trace)]
        if not outcomes:
            raise self._failed(line.span, f"`{line.call.span.text}` is not enabled here", self.traces[0])
        if line.where is not None:
            kept = [trace for trace in outcomes if self._true(line.where, trace, line.where.span)]
            if not kept:
                raise self._failed(line.span, "no outcome of the step satisfies `where`", outcomes[0])
            outcomes = kept
        # Of traces to one state the first: what follows depends on the state, and one way to it is enough
        # to show.
        unique = {trace.last: trace for trace in reversed(outcomes)}
        self.traces = list(unique.values())[::-1]

    def _true(self, node: tree.Expr, trace: Trace, span: Span) -> bool:
        condition = self.evaluator.of_state(*self.instance.lowering.expression(node))
        try:
            return bool(condition(trace.last))
        except Undefined as undefined:
            raise self._failed(span, f"undefined: {undefined.reason}", trace) from None

    def _refused(self, line: decls.TakeStep) -> None:
        for trace in self.traces:
            for outcome in self._outcomes(line, trace):
                raise self._failed(
                    line.span, f"`{outcome.steps[-1]}` is enabled, but should be refused", outcome
                )
