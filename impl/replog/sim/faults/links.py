"""The links that a fault cuts: a link is one direction between two addresses.

    partition              a broker, and some of its peers, the controller among them perhaps
    controller-partition   a broker and the controller, of a quorum all of them
    link                   two brokers; both still reach the controller
    missed-metadata        from the controller to the leader, which keeps its session: announcements are lost
    controllers-cut        a controller of a quorum and the others; brokers still reach all (`controllers`)

Not here: for how long, and what a message over a cut link becomes (`faults`).
"""

from __future__ import annotations

from random import Random

from replog.core.types import NO_LEADER
from replog.sim.cluster.world import World
from replog.sim.faults.profiles import Fault

Link = tuple[int, int]
"""The address that sends, and the one that does not receive."""

KINDS = frozenset({Fault.PARTITION, Fault.CONTROLLER_PARTITION, Fault.LINK, Fault.MISSED_METADATA})


def to_cut(kind: Fault, me: int, world: World, random: Random) -> set[Link]:
    """Return the links that a fault cuts at a broker; for `MISSED_METADATA`, at the leader."""
    if kind is Fault.MISSED_METADATA:
        leader = world.image.leader
        return set() if leader == NO_LEADER else {(address, leader) for address in world.controllers}
    if kind is Fault.LINK:
        other = random.choice([peer for peer in world.nodes if peer != me])
        return {(me, other), (other, me)}
    peers = [*world.controllers] if kind is Fault.CONTROLLER_PARTITION else _some_peers(me, world, random)
    links = {(me, peer) for peer in peers} | {(peer, me) for peer in peers}
    if random.random() < 0.3:
        links = {link for link in links if (link[0] == me) == (random.random() < 0.5)}
    return links


def _some_peers(me: int, world: World, random: Random) -> list[int]:
    peers = [peer for peer in (*world.nodes, *world.controllers) if peer != me]
    return [peer for peer in peers if random.random() < 0.7] or peers[:1]
