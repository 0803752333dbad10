"""`specchk repl`: evaluate expressions and take steps on a spec's states."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from types import MappingProxyType
from typing import Any

import click

from specchk.cli.common import ModelChoice, leave, refusals, width
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.cli.traces import from_file, from_scenario
from specchk.compile.instantiate import Instance
from specchk.explore.walk import NoStart, started
from specchk.lang.check.builtins import BUILTINS
from specchk.lang.text.diagnostics import SpecError, render
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State, show
from specchk.report.diff import changes, equations
from specchk.report.text import trace_lines
from specchk.search.verdict import Trace

HELP = """\
EXPRESSION          its value in the current state
:steps              the enabled steps, numbered
:take N             take step N, or ACTION(ARGS) as listed
:undo               back to the previous state
:state              the current state
:trace              all steps so far
:start [N]          restart from initial state N
:help, :quit"""
# What other programs call a command: one here, too, unless the spec has the name.
ELSEWHERE = MappingProxyType(
    {"help": ":help", "?": ":help", "quit": ":quit", "exit": ":quit", ":q": ":quit", ":exit": ":quit"}
)
COMMANDS = (":steps", ":take", ":undo", ":state", ":trace", ":start", ":help", ":quit")


@click.command("repl")
@takes(choice=ModelChoice)
@click.option(
    "--trace", metavar="TRACE", help="Begin at the end of a trace: output of `run --json`, or an ITF file."
)
@click.option("--scenario", metavar="S", help="Begin at the end of this scenario.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(choice: ModelChoice, trace: str | None, scenario: str | None, as_json: bool) -> None:
    """Evaluate expressions and take steps on the states of the spec FILE; :help lists the commands."""
    if trace is not None and scenario is not None:
        raise click.UsageError("--trace and --scenario both choose a state: give only one")
    if trace is not None:
        instance, begun, _ = from_file(trace, choice.file, choice.model, choice.table)
    elif scenario is not None:
        instance, begun, _ = from_scenario(choice.file, scenario)
    else:
        instance, begun = choice.instance(as_json=as_json), None
    with refusals(NoStart):
        session = Session(instance, begun)
    if as_json:
        leave(Exit.OK, as_json=True, json=lambda: session.answers(sys.stdin.read().splitlines()), text=str)
    interactive = sys.stdin.isatty()
    if interactive:
        import readline  # line editing, only where there is a terminal

        readline.set_completer(session.completion)
        readline.set_completer_delims(" \t()[]{},=<>+-*/")  # not a colon: it begins a command
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        echo(f"{instance.program.spec}, model {instance.program.model}; :help for help")
    while True:
        try:
            line = input("specchk> " if interactive else "")
        except (EOFError, KeyboardInterrupt):
            break
        line = session.meant(line.strip())
        if line == ":quit":
            break
        for text in session.answer(line):
            echo(text)


class Session:
    """A walk through the state space, with the commands available along it."""

    def __init__(self, instance: Instance, begun: Trace | None = None) -> None:
        self.instance = instance
        self.program = instance.program
        self.walker = started(instance)
        self.initial = self.walker.initial
        self.trace = begun or Trace(self.initial[0], ())
        spec = instance.lowering.checked.spec
        elements = [name for sort in self.program.sorts for name in sort.members]
        self.names = frozenset({*spec.declared, *spec.members, *elements})

    def meant(self, line: str) -> str:
        """A line with the name of a command in other programs replaced by that here."""
        return line if line in self.names else ELSEWHERE.get(line, line)

    def completion(self, start: str, number: int) -> str | None:
        """The word with that number, from 0, of those that begin with `start`; for `readline`."""
        words = COMMANDS if start.startswith(":") else (*self.names, *BUILTINS)
        return dict(enumerate(sorted({word for word in words if word.startswith(start)}))).get(number)

    def answers(self, lines: Iterable[str]) -> dict[str, Any]:
        """The report of a session with these lines of input, up to `:quit`."""
        given = takewhile(lambda line: line != ":quit", [self.meant(line.strip()) for line in lines])
        answers = [{"input": line, "lines": list(self.answer(line))} for line in given]
        return {"schema": "specchk.repl/1", "spec": self.program.spec, "model": self.program.model,
                "answers": answers, "exit_code": int(Exit.OK)}  # fmt: skip

    def answer(self, line: str) -> Iterator[str]:
        """The lines to print for a line of input."""
        try:
            yield from self._answer(line)
        except Faulty as fault:  # an action has no value in this state, so none of its steps can be listed
            yield f"undefined: {fault.undefined.reason} at {fault.undefined.span.where}"

    def _answer(self, line: str) -> Iterator[str]:
        word, _, rest = line.partition(" ")
        commands: dict[str, Callable[[], Iterable[str]]] = {
            ":steps": self._steps,
            ":take": lambda: self._take(rest.strip()),
            ":undo": self._undo,
            ":state": lambda: equations(self.program, self.trace.last),
            ":trace": lambda: trace_lines(self.program, self.trace, width()),
            ":start": lambda: self._start(rest.strip()),
            ":help": lambda: [HELP],
        }
        if not line or line.startswith("#"):
            return
        if word in commands:
            yield from commands[word]()
        elif word.startswith(":"):
            yield f"unknown command {word}; :help lists the commands"
        else:
            yield from self._evaluate(line)

    def _evaluate(self, text: str) -> Iterator[str]:
        try:
            body, locals_ = self.instance.expression(text)
        except SpecError as error:
            yield "\n".join(render(diagnostic) for diagnostic in error.diagnostics)
            return
        state = self.trace.last
        try:
            value = Evaluator(len(state)).of_state(body, locals_)(state)
        except Undefined as undefined:
            yield f"undefined: {undefined.reason}"
            return
        yield show(value, body.type)

    def _steps(self) -> Iterator[str]:
        enabled = self.walker.enabled(self.trace.last)
        for number, step in enumerate(enabled, 1):
            yield f"{number:3}  {step}"
            yield from (f"       {change}" for change in self._changes(step.state))
        if not enabled:
            yield "no step is enabled"

    def _changes(self, after: State) -> list[str]:
        return [change.text() for change in changes(self.program, self.trace.last, after)]

    def _take(self, wanted: str) -> Iterator[str]:
        enabled = self.walker.enabled(self.trace.last)
        by_number = {str(number): step for number, step in enumerate(enabled, 1)}
        # Reversed, so that of several outcomes of a step the first one listed has the name.
        by_name = {str(step).replace(" ", ""): step for step in reversed(enabled)}
        step = by_number.get(wanted) or by_name.get(wanted.replace(" ", ""))
        if step is None:
            yield f"no enabled step `{wanted}`; :steps lists them"
            return
        yield from self._changes(step.state)
        self.trace = self.trace.then(step)

    def _undo(self) -> Iterator[str]:
        if not self.trace.steps:
            yield "there is no step to undo"
            return
        yield f"undone: {self.trace.steps[-1]}"
        self.trace = Trace(self.trace.initial, self.trace.steps[:-1])

    def _start(self, number: str) -> Iterator[str]:
        by_number = {str(index): state for index, state in enumerate(self.initial, 1)}
        state = by_number.get(number or "1")
        if state is None:
            yield (
                f"no initial state {number}; there are {len(self.initial)}"
                if len(self.initial) > 1
                else "there is only one initial state"
            )
            return
        self.trace = Trace(state, ())
        yield from equations(self.program, self.trace.last)
