"""replog's accepted behaviour: fixed runs on the unchanged replog, and all of its outputs in them.

    cluster walks   a cluster under any requests, faults and lies, in memory or on replog's store
    store walks     the store alone, with crashes, damage and repairs
    simulations     replog's own simulator, a short run of each profile
    stories         the stories of replog, command by command
    files           the store on the operating system's files
    shapes          the store on small files in every shape, and on batches in every shape
    alone           one broker, coordinator, controller, or three controllers, which receive any messages
    formulas        groups, placement, and everything else that needs no cluster

A run is a function of its name.  Recorded data cross an interface of replog: messages, timers, effects on a
disk, changes of files, the state found by a start, answers.  Nothing is read from its internals, so that a
refactoring leaves every digest unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from cluster_walks import walk
from file_runs import calls, store
from formula_runs import epoch_ends, groups, placements, propagations, rules
from lone_broker import LoneBroker
from lone_controller import LoneController
from lone_coordinator import LoneCoordinator
from lone_quorum import LoneQuorum
from replog_runs import simulation, stories, story
from store_shapes import batches, starts
from store_walks import store_walk

from replog.core.protocol import preset_names
from replog.sim.faults.profiles import profile_names
from specchk.conform.contract.behaviours import Behaviours, Run, RunWatch

WALKS = 24
FILE_WALKS = 16
STORE_WALKS = 40
ACTIONS = 150
STORE_ACTIONS = 120
ALONE = 12
QUORUMS = 6
ALONE_ACTIONS = 400


class ReplogBehaviours(Behaviours):
    """The runs of replog."""

    name = "replog"

    def runs(self) -> Mapping[str, Run]:
        """Return all runs."""
        parts = (_walks, _store_walks, _simulations, _stories, _files, _shapes, _alone, _formulas)
        return dict([run for part in parts for run in part()])


def _walks() -> Iterator[tuple[str, Run]]:
    for seed in range(WALKS):
        yield f"walk in memory, seed {seed}", partial(walk, seed, False, "kafka-4.1", ACTIONS)
    for seed in range(FILE_WALKS):
        yield f"walk on files, seed {seed}", partial(walk, seed, True, "kafka-4.1", ACTIONS)
    for seed, name in enumerate(preset_names()):
        yield f"walk of {name}, seed {seed}", partial(walk, seed, False, name, ACTIONS)


def _store_walks() -> Iterator[tuple[str, Run]]:
    for seed in range(STORE_WALKS):
        yield f"store, seed {seed}", partial(store_walk, seed, False, STORE_ACTIONS)
        yield f"damaged store, seed {seed}", partial(store_walk, seed, True, STORE_ACTIONS)


def _simulations() -> Iterator[tuple[str, Run]]:
    for seed, name in enumerate(profile_names()):
        yield f"simulation of {name}, seed {seed}", partial(simulation, seed, name, "")


def _stories() -> Iterator[tuple[str, Run]]:
    for name in stories():
        yield f"story {name}", partial(story, name)


def _files() -> Iterator[tuple[str, Run]]:
    for seed in range(3):
        yield f"files of the system, seed {seed}", partial(calls, seed)
        yield f"store on files of the system, seed {seed}", partial(store, seed)


def _shapes() -> Iterator[tuple[str, Run]]:
    for seed in range(2):
        yield f"starts on every shape, seed {seed}", partial(starts, seed)
        yield f"batches in every shape, seed {seed}", partial(batches, seed)


def _alone() -> Iterator[tuple[str, Run]]:
    for seed in range(ALONE):
        yield f"broker alone, seed {seed}", partial(alone, LoneBroker, seed, "kafka-4.1")
        yield f"controller alone, seed {seed}", partial(alone, LoneController, seed, "kafka-4.1")
    for seed in range(QUORUMS):
        yield f"controllers alone, seed {seed}", partial(alone, LoneQuorum, seed, "kafka-4.1")
    for seed, name in enumerate(("kafka-4.1", "kafka-4.1", "kafka-4.1", "kafka-4.1-as-is")):
        yield f"coordinator alone of {name}, seed {seed}", partial(alone, LoneCoordinator, seed, name)
    for seed, name in enumerate(preset_names()):
        yield f"broker alone of {name}, seed {seed}", partial(alone, LoneBroker, seed, name)
        yield f"controller alone of {name}, seed {seed}", partial(alone, LoneController, seed, name)


def alone(kind: Callable[[RunWatch, int, str], Any], seed: int, protocol: str, watch: RunWatch) -> None:
    """Execute one run of a process without the others."""
    kind(watch, seed, protocol).run(ALONE_ACTIONS)


def _formulas() -> Iterator[tuple[str, Run]]:
    for seed in range(2):
        yield f"groups, seed {seed}", partial(groups, seed)
        yield f"propagation, seed {seed}", partial(propagations, seed)
        yield f"epoch ends, seed {seed}", partial(epoch_ends, seed)
    yield "placement", placements
    yield "presets", rules
