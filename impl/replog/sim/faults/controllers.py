"""Faults of the controllers of a quorum: a crash, a freeze, or a partition from the others.

A frozen one that thaws, and one that is cut off, do not know that they were replaced; brokers may reach them
all the time.

Not here: when they strike (`faults`).
"""

from __future__ import annotations

from random import Random

from replog.sim.cluster.node import Call
from replog.sim.cluster.quorum import Quorum
from replog.sim.cluster.world import World
from replog.sim.faults.links import Link
from replog.sim.faults.profiles import Fault

KINDS = frozenset({Fault.CONTROLLER_CRASH, Fault.CONTROLLER_PAUSE, Fault.CONTROLLERS_CUT})
MAX_EFFECTS = 6
"""Before how many of its next effects a controller may die."""


def pick(quorum: Quorum, random: Random) -> int:
    """Choose a controller: the active one more often than others."""
    host = quorum.active()
    if host is not None and random.random() < 0.5:
        return host.address
    return random.choice(quorum.voters)


def inject(kind: Fault, world: World, random: Random, length_ms: int) -> bool:
    """Crash or freeze a controller for some time; return whether this took effect at once."""
    quorum = world.quorum
    assert quorum is not None, "one controller does not fail"
    host = quorum.hosts[pick(quorum, random)]
    if host.node is None or host.held is not None:
        return False
    if kind is Fault.CONTROLLER_PAUSE:
        quorum.pause(host.address)
        world.schedule(length_ms, Call(lambda: quorum.resume(host.address)))
        return True
    host.effects_left = random.randrange(MAX_EFFECTS)

    def restart() -> None:
        host.effects_left = -1
        quorum.restart(host.address)

    world.schedule(length_ms, Call(restart))
    return False


def links_between(quorum: Quorum, random: Random) -> set[Link]:
    """Return the links between a controller and the others, sometimes in one direction only."""
    me = pick(quorum, random)
    peers = [peer for peer in quorum.voters if peer != me]
    draw = random.random()
    out = {(me, peer) for peer in peers} if draw < 0.9 else set()
    back = {(peer, me) for peer in peers} if draw > 0.1 else set()
    return out | back


def heal(quorum: Quorum) -> None:
    """Make every controller run."""
    for host in quorum.hosts.values():
        host.effects_left = -1
        quorum.resume(host.address)
        quorum.restart(host.address)
