"""Runs of replication.spec as data: the steps of a scenario, and what each state says of a cluster.

A broker of the spec, `b2`, is broker 2 of a cluster; an epoch of the spec is a number, which a cluster maps
to a leader epoch of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import check
from specchk.report.json import model_json, trace_json

STORIES = Path(__file__).parents[2] / "spec" / "kafka_stories.spec"


class SpecState:
    """A state of the spec, with broker numbers for its names."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self.brokers = tuple(_number(name) for name in data["epoch"])

    @property
    def current(self) -> int:
        """The controller's leader epoch."""
        return int(self._data["current"])

    @property
    def acked(self) -> int:
        """How many records have been acknowledged to their producers, or were before."""
        return int(max(self._data["acked"].values()))

    def leader(self, epoch: int) -> int | None:
        """Who leads an epoch, by the controller."""
        leader = self._data["meta"][str(epoch)]["leader"]
        return None if leader is None else _number(leader["some"])

    def isr(self, epoch: int) -> frozenset[int]:
        """The ISR of an epoch, by the controller."""
        return frozenset(map(_number, self._data["meta"][str(epoch)]["isr"]))

    def applied(self, broker: int) -> int:
        """The epoch that a broker has applied."""
        return int(self._data["epoch"][f"b{broker}"])

    def is_up(self, broker: int) -> bool:
        """Whether a broker runs, and has applied metadata since it started."""
        return bool(self._data["status"][f"b{broker}"] == "running")

    def hw(self, broker: int) -> int:
        """A replica's HW."""
        return int(self._data["hw"][f"b{broker}"])

    def log(self, broker: int) -> tuple[int, ...]:
        """The epoch of each record of a replica's log."""
        epochs: list[int] = []
        for epoch, end in self._data["log"][f"b{broker}"]["ends"].items():
            epochs += [int(epoch)] * (end - len(epochs))
        return tuple(epochs)

    def fetch_offset(self, broker: int) -> int:
        """The offset of a broker's fetch in flight."""
        return int(self._data["fetch"][f"b{broker}"]["some"]["offset"])

    def has_fetch(self, broker: int) -> bool:
        """Whether a fetch of a broker, or its response, is in flight."""
        return self._data["fetch"][f"b{broker}"] is not None

    def proposed_isr(self, leader: int) -> frozenset[int]:
        """The ISR that a leader has proposed."""
        return frozenset(map(_number, self._data["alter"][f"b{leader}"]["some"]["isr"]))


class Step(Struct, frozen=True):
    """A step of a run: its action, brokers and numbers as arguments, and the state that it leads to."""

    action: str
    arguments: tuple[int, ...]
    state: SpecState
    text: str  # as in the scenario


class Run(Struct, frozen=True):
    """A scenario's run: its constants, first state and steps."""

    scenario: str
    constants: dict[str, Any]
    initial: SpecState
    steps: tuple[Step, ...]


def scenario_run(scenario: str, path: Path = STORIES) -> Run:
    """The run of a scenario, one way in which all of its lines go.  Raises ValueError if it fails."""
    checked = check(str(path))
    written = checked.spec.scenarios[scenario]
    instance = instantiate(checked, written.model.text)
    result = run_scenario(instance, written)
    if result.trace is None:
        raise ValueError(f"scenario {scenario} fails: {result.failure}")
    states = trace_json(instance.program, result.trace)
    constants = model_json(instance.program)["constants"]
    return Run(scenario, constants, SpecState(states[0]["state"]), tuple(map(_step, states[1:])))


def _step(data: dict[str, Any]) -> Step:
    text = f"{data['action']}({', '.join(data['args'])})"
    return Step(data["action"], tuple(map(_number, data["args"])), SpecState(data["state"]), text)


def _number(name: str) -> int:
    return int(name.removeprefix("b"))
