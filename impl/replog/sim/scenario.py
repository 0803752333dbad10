"""Scenario files: the story of a cluster as text, each command followed by its changes.

    # prose
    > cluster brokers=2 min-isr=1
    > start
    broker 0: leader of epoch 0, LEO 0, HW 0, ISR 0,1, remote 1=?

A line that begins with `> ` is a command, the lines after it are its output.  `play` runs the commands and
returns the file with the outputs they have now, so a test compares two texts and `--rewrite` is writing one
of them.

Nothing moves by itself: messages between brokers wait until a command delivers them, time passes by `wait`.

Not here: the commands' meaning (`commands` for a cluster, `examples` for single formulas).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import World
from replog.sim.scenarios.commands import COMMANDS, ScenarioCluster
from replog.sim.scenarios.examples import EXAMPLES

PROMPT = "> "


class ScenarioError(Exception):
    """A command that does not exist or cannot be parsed, with its line."""


def play(text: str) -> str:
    """Run a scenario and return it with the actual outputs of its commands."""
    return perform(text)[0]


def perform(text: str, make_world: Callable[[WorldOptions], World] = World) -> tuple[str, ScenarioCluster]:
    """Run a scenario as `play` does; return also the final cluster."""
    cluster = ScenarioCluster(make_world)
    lines: list[str] = []
    is_output = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(PROMPT):
            lines.append(line)
            lines.extend(run_command(cluster, line.removeprefix(PROMPT), number))
            is_output = True
        elif not line or line.startswith("#"):
            lines.append(line)
            is_output = False
        elif not is_output:
            raise ScenarioError(f"line {number}: {line!r} is neither a command, a comment nor an output")
    return "\n".join(lines) + "\n", cluster


def run_command(cluster: ScenarioCluster, command: str, number: int) -> list[str]:
    """Run one command; ScenarioError with the line number if it is invalid."""
    name, *words = command.split()
    plain = [word for word in words if "=" not in word]
    pairs = (word.split("=", 1) for word in words if "=" in word)
    options = {option.replace("-", "_"): value for option, value in pairs}
    if name not in EXAMPLES and name not in COMMANDS:
        raise ScenarioError(f"line {number}: no command {name!r}")
    try:
        return EXAMPLES[name](*plain, **options) if name in EXAMPLES else cluster(name, *plain, **options)
    except (TypeError, KeyError, ValueError) as error:
        raise ScenarioError(f"line {number}: {command!r}: {error}") from error


def difference(path: Path) -> str:
    """Return a diff between the outputs in a scenario file and the actual ones; "" if they agree."""
    text = path.read_text(encoding="utf-8")
    played = play(text)
    lines = difflib.unified_diff(text.splitlines(), played.splitlines(), str(path), "now", lineterm="")
    return "" if text == played else "\n".join(lines) + "\n"


def rewrite(path: Path) -> None:
    """Write the actual outputs into a scenario file."""
    path.write_text(play(path.read_text(encoding="utf-8")), encoding="utf-8")
