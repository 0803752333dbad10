"""Traces given to commands: a file from an earlier run or suite, or a scenario of the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from specchk.cli.common import load, rejections
from specchk.cli.engines import loaded
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.replay.divergence import SCHEMA, read
from specchk.conform.replay.place import Divergence
from specchk.explore.scenario import run_scenario
from specchk.explore.walk import NoSuchPath, Walker
from specchk.ir.nodes import Const
from specchk.ir.walk import inside, roots
from specchk.lang.syntax import decls
from specchk.lang.text.diagnostics import SpecError
from specchk.lang.text.given import read as read_given
from specchk.meaning.undefined import Undefined
from specchk.report.json import value_json
from specchk.report.read import TraceFile, Unreadable, trace_file
from specchk.search.verdict import Trace, Violation

MOST = 1 << 20  # the largest number above a horizon in a trace; a picture has a cell for each record
Drawn = tuple[Instance, Trace, Violation | Divergence | None]


def from_file(file: str, spec: str | None, model: str | None, overrides: Mapping[str, str]) -> Drawn:
    """The trace in a file with its violation, or the divergence printed by `conform --json`.

    Every step is checked; raises a clear error if it is not a behaviour.
    """
    with _readable(file):
        # A byte order mark is no part of a text, and some editors write one.
        report = json.loads(read_given(Path(file)).decode("utf-8-sig"))
        diverges = isinstance(report, dict) and report.get("schema") == SCHEMA
        if diverges:
            divergence = report.get("divergence")
            if not isinstance(divergence, dict):
                raise Unreadable("it has no divergence: the implementation conforms")
            report = {**report, "trace": divergence.get("trace")}
        contents = trace_file(report, spec)
        instance, trace, walker = _followed(contents, file, model, overrides)
        if diverges:
            return instance, trace, read(instance.program, trace, divergence)
        return instance, trace, walker.violation(trace, contents.property)


def _followed(
    contents: TraceFile, file: str, model: str | None, overrides: Mapping[str, str]
) -> tuple[Instance, Trace, Walker]:
    with rejections():
        instance = _instance(contents, file, model, overrides)
    walker = Walker(instance)
    try:
        trace = _along(walker, contents)
    except (Unreadable, NoSuchPath):
        # The symbolic engine's traces may have numbers above a horizon, where the spec does not end.
        if (beyond := _walker_beyond(instance, contents)) is None:
            raise
        walker, trace = beyond, _along(beyond, contents)
    if trace.loop is not None and trace.states[trace.loop] != trace.last:
        raise Unreadable(f"its last state is not state {contents.loop} again, where it loops")
    return instance, trace, walker


def _along(walker: Walker, contents: TraceFile) -> Trace:
    return walker.follow(contents.read(walker.program), contents.labels, contents.loop)


def _walker_beyond(instance: Instance, contents: TraceFile) -> Walker | None:
    """A walker without horizons for a trace with numbers above one; None if there is none."""
    program, found = instance.program, {0, *_numbers_of((contents.states, contents.labels))}
    if not program.horizons or max(found) > MOST:
        return None
    try:
        loaded("specchk.symbolic.legality").check(program)
    except SpecError:  # a set of all numbers would have to be listed, and no engine writes such a trace
        return None
    # A number that a step chooses, and neither stores nor has as an argument, is not in the trace.  Guards
    # compare it with those that are, and with constants: `n >= a + 2`.
    roots_of = [root for action in program.actions for root in roots(action.body)]
    added = {part.value for root in roots_of for part in inside(root) if isinstance(part, Const)}
    sums = {number + more for number in found for more in (0, *added) if isinstance(more, int)}
    chosen = {number for number in sums if 0 <= number <= MOST}
    replay = loaded("specchk.symbolic.replay")
    path = replay.ReplayPath((), (*chosen, max(chosen) + 1))  # and their neighbours
    raised = replay.raised_to(program, path.most, choosing=False)
    return Walker(replace(instance, program=raised), replay.Unended(raised, path.numbers))


def _numbers_of(data: Any) -> Iterator[int]:
    """All numbers in JSON values, those in texts included."""
    match data:
        case dict():
            yield from _numbers_of([*data, *data.values()])
        case list() | tuple():
            for part in data:
                yield from _numbers_of(part)
        case str():
            yield from map(int, re.findall(r"(?<!\w)\d{1,20}(?!\w)", data))
        case int() if not isinstance(data, bool):
            yield data


@contextmanager
def _readable(file: str) -> Iterator[None]:
    """A context with clear errors for a missing file, invalid JSON, no trace, or not a behaviour."""
    try:
        yield
    except OSError as error:
        raise click.FileError(file, hint=error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise click.ClickException(f"{file} is not JSON text") from None
    except Unreadable as error:
        raise click.ClickException(f"{file}: {error}") from None
    except NoSuchPath as error:
        raise click.ClickException(f"{file} is not a behaviour of the spec: {error}") from None
    except Undefined as undefined:
        raise click.ClickException(
            f"the spec is undefined in `init`: {undefined}; see `specchk run`"
        ) from None


def _instance(contents: TraceFile, file: str, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """The spec under the model and constants of the file; options override them."""
    path = Path(contents.spec)
    # As the writer saw it, from the working directory; or from the file's folder, where both were moved.
    beside = Path(file).parent / path
    checked = load(str(beside if not path.is_file() and beside.is_file() else path))
    name = model or (contents.model if contents.model in checked.spec.models else None)
    properties = [contents.property] if contents.property in checked.spec.properties else []
    # Once with the model's constants, to find those in which the file differs, and again with these.
    unchanged = instantiate(checked, name, overrides)
    settings = {**_other_values(unchanged, contents), **overrides}
    return instantiate(checked, name, settings, [prop for prop in properties if prop is not None])


def _other_values(unchanged: Instance, contents: TraceFile) -> dict[str, str]:
    """The constants and sorts in which the file differs from its model, in the form of `--set`."""
    sorts = {sort.name: list(sort.members) for sort in unchanged.program.sorts}
    settings = {
        name: "{" + ", ".join(map(str, members)) + "}"
        for name, members in contents.sorts.items()
        if name in sorts and sorts[name] != members
    }
    for constant in unchanged.program.constants:
        value = contents.constants.get(constant.name)
        if constant.name in contents.constants and value != value_json(constant.value, constant.type):
            settings[constant.name] = _literal(constant.name, value)
    return settings


def _literal(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | str):
        return str(value)
    raise Unreadable(f"constant {name} differs from the model's; set it with --set")


def from_scenario(file: str, name: str) -> Drawn:
    """The path of a scenario, and the first of its asserted properties that fails at its end."""
    with rejections():
        checked = load(file)
        known = checked.spec.scenarios
        if name not in known:
            raise click.ClickException(f"there is no scenario {name!r}; known: {', '.join(known) or 'none'}")
        properties = [prop.name for prop in checked.spec.properties.values() if prop.kind != "liveness"]
        model = known[name].model.text
        instance = instantiate(checked, model, properties=properties)
    result = run_scenario(instance, known[name])
    if result.failure is not None or result.trace is None:
        why = result.failure.message if result.failure is not None else "it has no trace"
        raise click.ClickException(f"scenario {name} fails: {why}; see `specchk test`")
    walker = Walker(instance)
    asserted = [line.condition.span.text for line in known[name].steps if isinstance(line, decls.Assert)]
    mentioned = dict.fromkeys(word for text in asserted for word in re.findall(r"\w+", text))
    violations = (walker.violation(result.trace, word) for word in mentioned if word in properties)
    return instance, result.trace, next(filter(None, violations), None)
