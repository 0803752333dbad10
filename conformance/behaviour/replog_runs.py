"""Existing runs of replog: its simulator with all faults, and the stories that ship with it.

Short ones: a cluster that converges again repeats itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from observed_world import ObservedWorld

import replog
from replog.sim.faults.profiles import profile
from replog.sim.run import Simulation
from replog.sim.scenario import perform
from specchk.conform.contract.behaviours import RunWatch

STORIES = Path(replog.__file__).parent / "stories"


def simulation(seed: int, name: str, watch: RunWatch) -> None:
    """Run a profile of the simulator for a few simulated seconds, and end the faults."""
    weather = profile(name)
    weather = replace(weather, duration_ms=weather.duration_ms // 6, batches=weather.batches // 4)
    run = Simulation(seed, weather, make_world=partial(ObservedWorld, watch))
    report = run.run()
    assert isinstance(run.world, ObservedWorld)
    run.world.note_end()
    watch.note("simulator", "verdict", oracle=report.oracle, detail=report.detail)


def stories() -> list[str]:
    """Return the names of the stories."""
    return sorted(path.stem for path in STORIES.glob("*.txt"))


def story(name: str, watch: RunWatch) -> None:
    """Play a story; the cluster's messages, timers and disks are noted, and the printed text."""
    text = (STORIES / f"{name}.txt").read_text(encoding="utf-8")
    played, _ = perform(text, partial(ObservedWorld, watch))
    watch.step("the text")
    watch.note("story", "prints", text=played)
