"""Traces that commands get from elsewhere: a file of an earlier run or suite, a scenario of the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from specchk.cli.common import load, rejections
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.replay.divergence import SCHEMA, read
from specchk.conform.replay.replay import Divergence
from specchk.explore.scenario import run_scenario
from specchk.explore.walk import NoSuchPath, Walker
from specchk.lang.syntax import decls
from specchk.report.json import value_json
from specchk.report.read import TraceFile, Unreadable, trace_file
from specchk.search.verdict import Trace, Violation

Drawn = tuple[Instance, Trace, Violation | None]


def is_trace_file(file: str) -> bool:
    """Whether a FILE is a trace (`.json`, `.itf.json`) and not a spec."""
    return file.endswith(".json")


def from_file(file: str, model: str | None, overrides: Mapping[str, str]) -> Drawn:
    """The trace of a file, every step of it checked; a clear word where it is no behaviour."""
    with _readable(file):
        found = trace_file(_json(file))
        instance, trace = _followed(found, file, model, overrides)
        return instance, trace, Walker(instance).violation(trace, found.property)


def divergence_from_file(
    file: str, model: str | None, overrides: Mapping[str, str]
) -> tuple[Instance, Divergence] | None:
    """The divergence that `conform --json` printed, its path checked; None for another file."""
    with _readable(file):
        found = _json(file)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            return None
        told = found.get("divergence")
        if not isinstance(told, dict):
            raise Unreadable("it has no divergence: the implementation conforms")
        instance, trace = _followed(trace_file({**found, "trace": told.get("trace")}), file, model, overrides)
        return instance, read(instance.program, trace, told)


def _followed(
    found: TraceFile, file: str, model: str | None, overrides: Mapping[str, str]
) -> tuple[Instance, Trace]:
    with rejections():
        instance = _instance(found, file, model, overrides)
    trace = Walker(instance).follow(found.read(instance.program), found.labels)
    if found.loop is not None and trace.states[found.loop] != trace.last:
        raise Unreadable(f"its last state is not state {found.loop} again, where it loops")
    return instance, replace(trace, loop=found.loop)


def _json(file: str) -> Any:
    return json.loads(Path(file).read_text(encoding="utf-8"))


@contextmanager
def _readable(file: str) -> Iterator[None]:
    """Clear words for a file that is not there, no JSON text, no trace, or no behaviour."""
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


def _instance(found: TraceFile, file: str, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """The spec under the model and constants of the file; options override them."""
    here = Path(found.spec)
    # As the writer saw it, from the working directory; or from the file's folder, where both were moved.
    beside = Path(file).parent / here
    checked = load(str(beside if not here.is_file() and beside.is_file() else here))
    name = model or (found.model if found.model in checked.spec.models else None)
    asked = [found.property] if found.property in checked.spec.properties else []
    # Once as the model is, to see in which constants the file differs, and once more with these.
    plain = instantiate(checked, name, overrides)
    other = {**_other_values(plain, found), **overrides}
    return instantiate(checked, name, other, [prop for prop in asked if prop is not None])


def _other_values(plain: Instance, found: TraceFile) -> dict[str, str]:
    """The constants and sorts in which the file differs from its model, as `--set` takes them."""
    sorts = {sort.name: list(sort.members) for sort in plain.program.sorts}
    other = {
        name: "{" + ", ".join(map(str, members)) + "}"
        for name, members in found.sorts.items()
        if name in sorts and sorts[name] != members
    }
    for constant in plain.program.constants:
        value = found.constants.get(constant.name)
        if constant.name in found.constants and value != value_json(constant.value, constant.type):
            other[constant.name] = _literal(constant.name, value)
    return other


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
    said = [line.condition.span.text for line in known[name].steps if isinstance(line, decls.Assert)]
    spoken_of = dict.fromkeys(word for text in said for word in re.findall(r"\w+", text))
    found = (walker.violation(result.trace, word) for word in spoken_of if word in properties)
    return instance, result.trace, next((violation for violation in found if violation is not None), None)
