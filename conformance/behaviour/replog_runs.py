"""Existing runs of replog: its simulator with all faults, and the stories that ship with it.

Short ones: a cluster that converges again repeats itself.  Not here: what copies of the processes get
(`other_events`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from observed_world import ObservedWorld

import replog
from replog.core.broker.state import Config
from replog.sim.cluster.node import Network
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.world import Observer
from replog.sim.faults.profiles import profile
from replog.sim.run import Simulation
from replog.sim.scenario import perform
from replog.store.files.config import LogConfig
from specchk.conform.contract.behaviours import RunWatch

STORIES = Path(replog.__file__).parent / "stories"
SHORTER = 10
HEAL_MS = 30_000
"""More than any run needs; a cluster that never converges does not take minutes."""
PLAIN = 20
"""Seeds below it keep the profile's configuration."""


def simulation(seed: int, name: str, watch: RunWatch, protocol: str = "", uses_store: bool = False) -> None:
    """Run a profile of the simulator for a few simulated seconds, and end the faults.

    The seed also decides the configuration of brokers and segments.  In memory, copies of the processes get
    other events.
    """
    weather = profile(name)
    weather = replace(
        weather, duration_ms=weather.duration_ms // SHORTER, heal_ms=HEAL_MS,
        batches=weather.batches // 4, uses_store=weather.uses_store or uses_store,
    )  # fmt: skip
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    if seed >= PLAIN and random.random() < 0.4:
        weather = replace(weather, retention_bytes=300)
    others = None if weather.uses_store else random
    segments = LogConfig(
        segment_bytes=random.choice((300, 700)), index_interval_bytes=random.choice((90, 200))
    )

    def make_world(options: WorldOptions, network: Network, observer: Observer) -> ObservedWorld:
        config = options.config if seed < PLAIN else varied(options.config, random)
        return ObservedWorld(watch, replace(options, config=config), network, observer, segments, others)

    run = Simulation(seed, weather, protocol, make_world=make_world)
    report = run.run()
    assert isinstance(run.world, ObservedWorld)
    run.world.note_end()
    watch.note("simulator", "verdict", oracle=report.oracle, detail=report.detail)


def of_rules(seed: int, protocol: str, watch: RunWatch) -> None:
    """Run the simulator by the rules of a preset."""
    simulation(seed, "network", watch, protocol)


def varied(config: Config, random: Random) -> Config:
    """Return another configuration, with shorter times and smaller sizes."""
    choice = random.choice
    return replace(
        config,
        lag_ms=choice((1_400, 2_500)),
        fetch_wait_ms=choice((100, 400)),
        fetch_timeout_ms=choice((600, 900)),
        fetch_backoff_ms=choice((50, 200)),
        fetch_max_bytes=choice((1, 150, 400)),
        alter_retry_ms=choice((150, 400)),
        hw_checkpoint_ms=choice((700, 1_900)),
        max_batch_bytes=choice((1_000, 1 << 20)),
        retention_check_ms=choice((700, 1_900)),
        follower_read=choice((False, True)),
    )


def stories() -> list[str]:
    """Return the names of the stories."""
    return sorted(path.stem for path in STORIES.glob("*.txt"))


def story(name: str, watch: RunWatch) -> None:
    """Play a story; the cluster's messages, timers and disks are noted, and the printed text."""
    text = (STORIES / f"{name}.txt").read_text(encoding="utf-8")
    played, _ = perform(text, partial(ObservedWorld, watch))
    watch.step("the text")
    watch.note("story", "prints", text=played)
