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

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cluster_walks import Walk
from file_runs import calls, no_files, store
from formula_runs import epoch_ends, groups, placements, propagations, rules
from lone_broker import LoneBroker
from lone_controller import LoneController
from lone_coordinator import LoneCoordinator
from lone_quorum import LoneQuorum
from replog_runs import simulation, stories, story
from store_shapes import BatchesWalk, ShapesWalk
from store_walks import StoreWalk

from replog.core.protocol import preset_names
from replog.sim.faults.profiles import profile_names
from specchk.conform.contract.behaviours import Behaviours, Run


class ReplogBehaviours(Behaviours):
    """The runs of replog."""

    name = "replog"

    def runs(self) -> Mapping[str, Run]:
        """Return all runs."""
        protocols, today = preset_names(), "kafka-4.1"
        in_memory, on_files, intact, damaged = False, True, False, True
        coordinated = (today, today, today, "kafka-4.1-as-is")
        cluster, log = partial(driven, Walk, 150), partial(driven, StoreWalk, 120)
        broker, controller = partial(driven, LoneBroker, 400), partial(driven, LoneController, 400)
        return {
            **_seeded("walk in memory", 24, cluster, in_memory, today),
            **_seeded("walk on files", 16, cluster, on_files, today),
            **_named("walk of", protocols, cluster, in_memory),
            **_seeded("store", 40, log, intact),
            **_seeded("damaged store", 40, log, damaged),
            **_named("simulation of", profile_names(), simulation),
            **{f"story {name}": partial(story, name) for name in stories()},
            **_seeded("files of the system", 3, calls),
            **_seeded("store on files of the system", 3, store),
            **_seeded("starts on every shape", 2, partial(driven, ShapesWalk, 30), False),
            **_seeded("batches in every shape", 2, partial(driven, BatchesWalk, 0), False),
            **_seeded("broker alone", 12, broker, today),
            **_seeded("controller alone", 12, controller, today),
            **_seeded("controllers alone", 6, partial(driven, LoneQuorum, 400), today),
            **_named("coordinator alone of", coordinated, partial(driven, LoneCoordinator, 400)),
            **_named("broker alone of", protocols, broker),
            **_named("controller alone of", protocols, controller),
            **_seeded("groups", 2, groups),
            **_seeded("propagation", 2, propagations),
            **_seeded("epoch ends", 2, epoch_ends),
            "no files": no_files,
            "placement": placements,
            "presets": rules,
        }


def driven(kind: Callable[..., Any], actions: int, seed: int, *arguments: Any) -> None:
    """Execute one run of a walk or of a lone process, of so many actions; the last argument is the watch."""
    *others, watch = arguments
    kind(watch, seed, *others).run(actions)


def _seeded(title: str, seeds: int, run: Callable[..., None], *arguments: object) -> dict[str, Run]:
    """Return runs of a function of a seed and of other arguments, with seeds from 0 on."""
    return {f"{title}, seed {seed}": partial(run, seed, *arguments) for seed in range(seeds)}


def _named(title: str, names: Sequence[str], run: Callable[..., None], *arguments: object) -> dict[str, Run]:
    """Return runs of a function for each of some names, its last argument; the position is the seed."""
    return {
        f"{title} {name}, seed {seed}": partial(run, seed, *arguments, name)
        for seed, name in enumerate(names)
    }
