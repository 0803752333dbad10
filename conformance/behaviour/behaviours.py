"""replog's accepted behaviour: fixed runs on the unchanged replog, and all of its outputs in them.

    simulations     replog's own simulator, short runs of its profiles and rules, in memory and on files;
                    copies of its processes get other events than they themselves (`other_events`)
    store walks     the store alone, with crashes, damage and repairs
    stories         the stories of replog, command by command
    files           the store on the operating system's files
    shapes          the store on small files in every shape, and on batches in every shape
    formulas        groups, placement, and everything else that needs no cluster

A run is a function of its name.  Recorded data cross an interface of replog: messages, timers, effects on a
disk, changes of files, the state found by a start, answers.  Nothing is read from its internals, so that a
refactoring leaves every digest unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from file_runs import calls, no_files, store
from formula_runs import epoch_ends, groups, placements, propagations, rules, topics
from replog_runs import PLAIN, of_rules, simulation, stories, story
from store_shapes import BatchesWalk, ShapesWalk
from store_walks import StoreWalk

from replog.core.protocol import preset_names
from replog.sim.faults.profiles import profile_names
from specchk.conform.contract.behaviours import Behaviours, Run

BUSY = ("all", "network", "stale", "coalesce", "groups", "controllers", "reassign", "delete")
ON_FILES = ("all", "stale", "reassign", "delete")
SEEDS = range(PLAIN, PLAIN + 4)


class ReplogBehaviours(Behaviours):
    """The runs of replog."""

    name = "replog"

    def runs(self) -> Mapping[str, Run]:
        """Return all runs."""
        log = partial(driven, StoreWalk, 120)
        return {
            **_varied("simulation of", BUSY, simulation),
            **_named("simulation of", profile_names(), simulation),
            **_varied("simulation on files of", ON_FILES, partial(simulation, uses_store=True)),
            **_named("simulation by", preset_names(), of_rules),
            **_seeded("store", 40, log, False),
            **_seeded("damaged store", 40, log, True),
            **{f"story {name}": partial(story, name) for name in stories()},
            **_seeded("files of the system", 3, calls),
            **_seeded("store on files of the system", 3, store),
            **_seeded("starts on every shape", 2, partial(driven, ShapesWalk, 30), False),
            **_seeded("batches in every shape", 2, partial(driven, BatchesWalk, 0), False),
            **_seeded("groups", 2, groups),
            **_seeded("topics", 2, topics),
            **_seeded("propagation", 2, propagations),
            **_seeded("epoch ends", 2, epoch_ends),
            "no files": no_files,
            "placement": placements,
            "presets": rules,
        }


def driven(kind: Callable[..., Any], actions: int, seed: int, *arguments: Any) -> None:
    """Execute one run of a walk, of so many actions; the last argument is the watch."""
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


def _varied(title: str, names: Sequence[str], run: Callable[..., None]) -> dict[str, Run]:
    """Return runs of a function for each of some names and each of the seeds of varied configurations."""
    return {f"{title} {name}, seed {seed}": partial(run, seed, name) for name in names for seed in SEEDS}
