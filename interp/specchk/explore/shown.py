"""Further expressions in traces: their values in each state are shown like those of variables.

They are not visible to engines and replay: a trace is extended after it has been found, and with it the
program that describes its states, so that every form of report has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.instantiate import Instance
from specchk.ir.nodes import Expr, Value
from specchk.ir.program import Program, Start, Variable
from specchk.ir.types import Enum
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import State, show
from specchk.search.verdict import Outcome, Trace, Violated, violations_of

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)(.+)", re.DOTALL)


class NameTaken(Exception):
    """Two shown variables or expressions would have the same name."""


class FurtherExpression(Struct, frozen=True):
    """An expression over one state, with its name and the number of its locals."""

    name: str
    body: Expr
    locals: int


def shown_of(instance: Instance, texts: Iterable[str]) -> tuple[FurtherExpression, ...]:
    """The expressions from texts `e` or `name = e`; raises `SpecError` and `NameTaken`."""
    program = instance.program
    taken = {one.name for one in program.variables} | {one.name for one in program.constants}
    found: list[FurtherExpression] = []
    for text in texts:
        named = _NAMED.fullmatch(text)
        name, written = (named[1], named[2]) if named else (" ".join(text.split()), text)
        found.append(FurtherExpression(name, *instance.expression(written)))
        if name in taken:
            raise NameTaken(f"`{name}` is shown already; choose another name: `name = e`")
        taken.add(name)
    return tuple(found)


def with_shown(
    instance: Instance, outcome: Outcome, shown: Sequence[FurtherExpression]
) -> tuple[Instance, Outcome]:  # fmt: skip
    """The outcome with the values of expressions in its traces, and an instance with them as variables."""
    violations = violations_of(outcome.verdict)
    traces = [one.trace for one in violations if one.trace is not None]
    found, extended = extend(instance, [*traces, *[trace for _, trace in outcome.witnesses]], shown)
    rest = iter(extended)
    verdict = outcome.verdict
    if isinstance(verdict, Violated):
        with_traces = [replace(one, trace=next(rest)) if one.trace is not None else one for one in violations]
        verdict = replace(verdict, violations=tuple(with_traces))
    witnesses = tuple([(name, next(rest)) for name, _ in outcome.witnesses])
    return found, replace(outcome, program=found.program, verdict=verdict, witnesses=witnesses)


def extend(
    instance: Instance, traces: Sequence[Trace], shown: Sequence[FurtherExpression]
) -> tuple[Instance, list[Trace]]:  # fmt: skip
    """Traces with the values of expressions in each state, and an instance with these as variables."""
    program = instance.program
    states = list(dict.fromkeys(state for trace in traces for state in trace.states))
    further: dict[State, State] = dict.fromkeys(states, ())
    for one in shown:
        program, values = _column(program, len(instance.program.variables), states, one)
        further = {state: (*further[state], value) for state, value in zip(states, values, strict=True)}
    found = [
        Trace(
            (*trace.initial, *further[trace.initial]),
            tuple([replace(step, state=(*step.state, *further[step.state])) for step in trace.steps]),
            trace.loop,
        )
        for trace in traces
    ]
    return replace(instance, program=program), found


def _column(
    program: Program, variables: int, states: list[State], shown: FurtherExpression
) -> tuple[Program, State]:
    """The program with an expression as a variable, and the values of that variable."""
    run = Evaluator(variables).of_state(shown.body, shown.locals)
    values: list[Value] = []
    reasons: dict[int, str] = {}
    for index, state in enumerate(states):
        try:
            values.append(run(state))
        except (Undefined, BeyondHorizon) as fault:
            reasons[index] = f"undefined: {fault.reason}" if isinstance(fault, Undefined) else "undefined"
            values.append(())
    kind = shown.body.type
    if reasons:
        # A type has no value for what has none, so all values are shown as texts.
        texts = [reasons.get(index) or show(value, kind) for index, value in enumerate(values)]
        kind = Enum(shown.name, tuple(dict.fromkeys(texts)))
        values = [kind.members.index(text) for text in texts]
    variable = Variable(shown.name, kind, shown.body.span)
    starts = (*program.starts, Start(shown.body, None))
    return replace(program, variables=(*program.variables, variable), starts=starts), tuple(values)
