"""The text of a violated refinement: its last step in the refined spec, and the reasons for each action."""

from __future__ import annotations

from collections.abc import Iterator

from specchk.meaning.explain import Blame
from specchk.report.diff import changes, parts
from specchk.search.verdict import AbstractStep, Obstacle

OBSTACLES_SHOWN = 8  # actions, the nearest first
Line = tuple[int, str]  # with its indent


def abstract_lines(step: AbstractStep) -> Iterator[Line]:
    """The two states of the refined spec, and why no action leads from one to the other."""
    name = step.program.spec
    if step.before is None:
        yield 2, f"as a state of `{name}`:"
        yield from ((7, f"{variable} = {value}") for variable, value in parts(step.program, step.after))
        return
    yield 2, f"as a step of `{name}`, from"
    yield from ((7, f"{variable} = {value}") for variable, value in parts(step.program, step.before))
    yield 2, "to"
    for change in changes(step.program, step.before, step.after):
        yield 7, f"{change.path}: {change.before} -> {change.after}"
    yield 2, "and of its actions"
    for obstacle in step.obstacles[:OBSTACLES_SHOWN]:
        yield 7, f"{obstacle.action} {'; '.join(_reasons(obstacle))}"
    if len(step.obstacles) > OBSTACLES_SHOWN:
        yield 7, f"{len(step.obstacles) - OBSTACLES_SHOWN} more do not allow it either"


def _reasons(obstacle: Obstacle) -> Iterator[str]:
    for variable, given, image in obstacle.differs:
        yield f"makes `{variable}` {given}, not {image}"
    for guard in obstacle.guards:
        yield f"is not enabled: {_false(guard)}"


def _false(guard: Blame) -> str:
    values = [f"{name} = {value}" for name, value in (*guard.bindings, *guard.values)]
    where = f" with {', '.join(values)}" if values else ""
    return f"`{guard.text}`{where} ({guard.span.where})"
