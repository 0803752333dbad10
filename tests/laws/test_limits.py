"""Every option that limits is measured: how much later than asked a command ends is a figure, not a hope."""

from __future__ import annotations

import runpy
from pathlib import Path

import click
import pytest

from specchk.cli.main import COMMANDS, cli

BENCH = Path(__file__).parents[2] / "bench/engines/limits.py"
# Limits of other work than an engine's: suites and mutants, with tests of their own.
ELSEWHERE = {
    ("conform", "--max-states"), ("mutate", "--max-seconds"), ("recheck", "--query-seconds"),
    ("review", "--max-states"),
}  # fmt: skip


@pytest.fixture(scope="module")
def limits() -> dict[str, tuple[str, ...]]:
    return dict(runpy.run_path(str(BENCH))["LIMITS"])


def test_every_option_that_limits_is_in_the_bench(limits: dict[str, tuple[str, ...]]) -> None:
    """By its name: `--max-...`, or seconds of something."""
    options = {
        (name, option)
        for name in COMMANDS
        if (command := cli.get_command(click.Context(cli), name)) is not None
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--max-") or option.endswith("-seconds")
    }
    measured = {(command.split()[0], option) for option, commands in limits.items() for command in commands}
    assert options == measured | ELSEWHERE
    assert not measured & ELSEWHERE


def test_every_command_with_a_limit_has_hostile_models(limits: dict[str, tuple[str, ...]]) -> None:
    """Forty models at least; each is tried with some command, and each command with some model."""
    models = runpy.run_path(str(BENCH))["models"]()
    assert len(models) >= 40
    runs = [run for _, runs in models.values() for run in runs]
    assert all(runs for _, runs in models.values())
    for commands in limits.values():
        for command in commands:
            assert any(run.startswith(command) for run in runs), command
