"""Runs of computations without a cluster: groups, topics, placement, propagation, epoch ends.

Each draws arguments from a seed and notes the answers.
"""

from __future__ import annotations

from random import Random

from observed_world import facts, note_effect

from replog.core.broker.groups import Commit, Generation, Groups, from_body
from replog.core.broker.propagation import TICK_MS, Propagator
from replog.core.controller.controller import Controller
from replog.core.controller.placement import assign, assign_simple
from replog.core.controller.state import ControllerState
from replog.core.effects import Received
from replog.core.messages import HeartbeatRequest, RegisterRequest
from replog.core.protocol import Truncation, preset, preset_names
from replog.sim.scenarios.examples import epoch_end
from specchk.conform.contract.behaviours import RunWatch

STEPS = 150


def groups(seed: int, watch: RunWatch) -> None:
    """Members join, commit with right and wrong generations, and the group is rebuilt from its records."""
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    known, log, last = Groups(), list[Commit | Generation](), {"g": 0, "h": 0}
    for _ in range(STEPS):
        watch.step("a group")
        name, member, draw = random.choice(("g", "g", "h")), random.randrange(3), random.random()
        if draw < 0.25:
            record = known.join(name, member)
            last[name] = record.number
            log.append(from_body(record.to_body()))
            watch.note("groups", "join", body=record.to_body(), **facts(record))
        elif draw < 0.75:
            commit = Commit(
                name, random.choice(("t-0", "t-1")), random.randrange(-1, 20), random.randrange(-1, 3)
            )
            generation = last[name] + random.choice((0, 0, 0, 0, -1, 1))
            error = known.check(commit, member, generation)
            watch.note("groups", "check", error=error)
            watch.note(
                "groups", "commit", error=known.commit(commit, member, generation), body=commit.to_body()
            )
            if not error:
                log.append(from_body(commit.to_body()))
        elif draw < 0.85:
            known = random.choice((known.copy, lambda: Groups.replay(log)))()
        else:
            twin = known.copy()
            twin.join(name, 9)
            twin.commit(Commit(name, "t-0", 99), 9, last[name] + 1)
        for group in ("g", "h"):
            for partition in ("t-0", "t-1"):
                watch.note("groups", "position", group=group, offset=known.position(group, partition))


def topics(seed: int, watch: RunWatch) -> None:
    """A controller creates and deletes topics while its brokers are fenced and return."""
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    controller = Controller(ControllerState())
    for broker in range(3):
        controller.handle(Received(broker, RegisterRequest(broker, 1)), 0)
    for now_ms in range(STEPS):
        watch.step("a topic")
        state = controller.state
        draw, broker, name = random.random(), random.randrange(3), f"t{random.randrange(4)}"
        if draw < 0.2:
            controller.fence(broker)
            effects = []
        elif draw < 0.5:
            alive = HeartbeatRequest(broker, state.brokers[broker].broker_epoch, state.version)
            effects = controller.handle(Received(broker, alive), now_ms)
        elif held := [partition for partition in state.partitions if partition.startswith(name)]:
            effects = controller.delete(held)
        else:
            placed = assign((0, 1, 2), random.randrange(1, 3), random.randrange(1, 4), broker)
            effects = controller.create({f"{name}-{at}": tuple(row) for at, row in enumerate(placed)})
        for effect in effects:
            note_effect(watch, "controller", effect)


def placements(watch: RunWatch) -> None:
    """Every placement of up to five brokers, and the refused ones."""
    for brokers in range(1, 6):
        watch.step(f"{brokers} brokers")
        for replication in range(brokers + 2):
            for start, shift in ((0, 0), (1, 0), (2, 3), (4, 1)):
                ids = [5, *range(brokers - 1)]
                try:
                    placed: object = (
                        assign(ids, 12, replication, start, shift),
                        assign_simple(ids, 12, replication),
                    )
                except ValueError as error:
                    placed = str(error)
                watch.note("placement", "assign", replicas=replication, placed=placed)


def propagations(seed: int, watch: RunWatch) -> None:
    """ISR changes at any moments, including those at the two limits."""
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    for _ in range(20):
        watch.step("a broker")
        state = Propagator(0, random.choice((0, -70_000)))
        for now_ms in range(0, 150_000, TICK_MS):
            if random.random() < random.choice((0.1, 0.9)):
                state = state.changed(random.choice(("t-0", "t-1")), now_ms - random.choice((0, 0, 1, 100)))
            state, reported = state.tick(now_ms + random.choice((0, 0, 1)))
            watch.note("propagation", "tick", reported=reported)


def epoch_ends(seed: int, watch: RunWatch) -> None:
    """Epoch caches, and the ends that they return under all rules: a command of `replog play`."""
    random = Random(seed)  # noqa: S311  # chance that must be repeatable
    for _ in range(25):
        watch.step("a cache")
        epoch = leo = 0
        entries = []
        for _ in range(random.randrange(1, 7)):
            entries.append(f"{epoch}:{leo}")
            epoch, leo = epoch + random.randrange(1, 3), leo + random.randrange(1, 4)
        for rules in Truncation:
            asked = map(str, range(-1, epoch + 2))
            answers = epoch_end(*asked, cache=",".join(entries), leo=str(leo), rules=rules.value)
            watch.note("cache", "ends", rules=rules, answers=tuple(answers))


def rules(watch: RunWatch) -> None:
    """The rules of all presets, by name."""
    for name in preset_names():
        watch.step(name)
        watch.note("presets", name, **facts(preset(name)))
