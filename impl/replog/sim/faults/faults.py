"""Faults: a network that loses, duplicates, delays and cuts, and an injector of all other faults.

All chance of a run comes from one `random.Random`.  While a node that lost data has not been fenced yet, the
injector is quiet and the network perfect, if the profile requires it (`profiles.PowerRule`, B11).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from replog.core.messages import AlterPartitionRequest, Message
from replog.core.types import BrokerState
from replog.run.storage import StorageError
from replog.sim.cluster.node import Call, Delivery, Network, Node
from replog.sim.cluster.views import is_current
from replog.sim.cluster.world import World
from replog.sim.faults import controllers, links
from replog.sim.faults.links import Link
from replog.sim.faults.profiles import Fault, PowerRule, Profile
from replog.sim.oracles.oracles import Oracles
from replog.sim.oracles.several import SeveralOracles

# A little more than the interval of heartbeats: who was seen so recently has missed none.
HEALTHY_SESSION_MS = 2_500
UNCLEAN = frozenset({Fault.CRASH, Fault.CRASH_MID_EFFECTS, Fault.POWER_LOSS, Fault.DISK_ERROR})
"""Faults after which a process cannot show that it lost nothing: they cost it its place in the ELR."""
ARMED = frozenset({Fault.CRASH_MID_EFFECTS, Fault.DISK_ERROR, Fault.SHUTDOWN, Fault.CONTROLLER_CRASH})
"""Faults that are prepared now and may happen later, or never."""
BLACKOUT_MS = 15_000
"""How long a broker may stay dead after all have died: often longer than its session."""


@dataclass(slots=True)
class FaultyNetwork(Network):
    """A network with independent probabilities per message, and links that are cut in one direction."""

    random: Random
    profile: Profile
    is_calm: bool = False
    cut: set[Link] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)

    def delays(self, source: int, to: int, message: Message) -> Iterable[int]:
        """Choose the delays of one message."""
        del message
        random, profile = self.random.random, self.profile
        first = 1 + int(random() * profile.jitter_ms)
        if self.is_calm:
            return (first,)
        if (source, to) in self.cut:
            self.faults["message-cut-off"] += 1
            return ()
        if random() < profile.loss:
            self.faults["message-loss"] += 1
            return ()
        if random() < profile.tail:
            self.faults["message-delay"] += 1
            first += int(random() * profile.tail_ms)
        if random() < profile.duplication:
            self.faults["message-duplication"] += 1
            return (first, 1 + int(random() * profile.tail_ms))
        return (first,)

    def sever(self, links: set[Link]) -> Callable[[], None]:
        """Cut those of `links` that are whole; return the call that restores them, and no others."""
        # Links that are cut already belong to another fault, which restores them at its own time.
        whole = links - self.cut
        self.cut |= whole
        return lambda: self.cut.difference_update(whole)


@dataclass(slots=True)
class Injector:
    """Injects random faults, and restarts nodes; `faults` counts those that took effect at once.

    What a fault only prepares (a death between effects, a failing disk, a shutdown) the world counts when it
    happens; `ARMED` names them.
    """

    world: World
    network: FaultyNetwork
    oracles: Oracles | SeveralOracles
    profile: Profile
    random: Random
    faults: Counter[str]
    is_over: bool = False
    victim: int = -1
    """The node whose data loss the controller has not noticed yet.

    While there is one, nothing else happens.
    """

    def stop(self) -> None:
        """End all faults: make all links whole, and all processes awake and alive."""
        self.is_over = True
        self.network.is_calm = True
        self.network.cut.clear()
        if self.world.quorum is not None:
            controllers.heal(self.world.quorum)
        for node in self.world.nodes.values():
            self.world.resume(node.broker_id)
            node.effects_left = -1
            node.storage.arm(-1, 0)  # disarmed
            if node.broker is None:
                self._restart_later(node.broker_id)

    def revive(self) -> None:
        """Start every node whose process has ended; a disk fault may have struck after the last fault."""
        for node in self.world.nodes.values():
            if node.broker is None:
                self.world.restart(node.broker_id)

    def schedule_next(self) -> None:
        """Schedule a fault, if the profile has any."""
        if self.profile.weights:
            delay_ms = int(self.random.expovariate(1 / self.profile.fault_every_ms))
            self.world.schedule(delay_ms, Call(self._strike))

    def _strike(self) -> None:
        """Inject one fault, unless the faults are over or suspended."""
        if self.is_over:
            return
        # Before all else, so that a fault that cannot be injected is not the last one.
        self.schedule_next()
        # A second fault before the controller has noticed the first one's loss is the last replica standing
        # (B11).
        if self.victim >= 0:
            return
        kinds = list(self.profile.weights)
        kind = self.random.choices(kinds, [self.profile.weights[kind] for kind in kinds])[0]
        node = self.world.nodes[self._pick_node()]
        # What is only armed may never happen; the world counts it if it does.
        if self._inject(kind, node) and kind not in ARMED:
            self.faults[kind.value] += 1

    def _pick_node(self) -> int:
        """Choose a node: the leader more often than others, because its failures reveal more."""
        leader = self.world.image.leader
        if leader >= 0 and self.random.random() < 0.3:
            return leader
        return self.random.randrange(len(self.world.nodes))

    def _inject(self, kind: Fault, node: Node) -> bool:
        """Try to inject one fault at one node; return whether it was possible."""
        if self.profile.power is PowerRule.KEEPS_ONE_COPY and kind in UNCLEAN and not self._leaves_one(node):
            return False
        if kind is Fault.PREFERRED_ELECTION:
            return self._elect()
        if kind is Fault.ELECTION:
            return self._elect_another()
        if kind is Fault.REASSIGNMENT:
            return self._reassign()
        if kind is Fault.POWER_LOSS:
            return self._cut_power(node)
        if kind is Fault.BLACKOUT:
            return self._black_out()
        if kind in controllers.KINDS:
            return self._strike_controllers(kind)
        if node.broker is None or node.held is not None:
            return False
        if kind is Fault.CRASH:
            self.world.crash(node.broker_id)
            self._restart_later(node.broker_id)
        elif kind is Fault.CRASH_MID_EFFECTS:
            node.effects_left = self.random.randrange(12)
            self._restart_later(node.broker_id)
        elif kind is Fault.PAUSE:
            self.world.pause(node.broker_id)
            self.world.schedule(self._some_time(), Call(lambda: self.world.resume(node.broker_id)))
        elif kind in links.KINDS:
            return self._cut(links.to_cut(kind, node.broker_id, self.world, self.random))
        elif kind is Fault.CLOCK_JUMP:
            node.clock_offset_ms = self.random.randrange(-8_000, 8_000)
        elif kind is Fault.SHUTDOWN:
            self.world.shut_down(node.broker_id)
            self._restart_later(node.broker_id)
        elif kind is Fault.BACKGROUND_FLUSH:
            return self._flush(node)
        else:
            node.storage.arm(self.random.randrange(6), self.random.randrange(3))
            self._restart_later(node.broker_id)
        return True

    def _strike_controllers(self, kind: Fault) -> bool:
        """Inject a fault of the controllers; return whether it took effect at once."""
        if kind is Fault.CONTROLLERS_CUT and self.world.quorum is not None:
            return self._cut(controllers.links_between(self.world.quorum, self.random))
        return controllers.inject(kind, self.world, self.random, self._some_time())

    def _elect(self) -> bool:
        """Request the preferred leader; return whether it was elected."""
        before = self.world.image.leader
        self.world.elect_preferred()
        return self.world.image.leader != before

    def _elect_another(self) -> bool:
        """Move a member of the ISR to the front of the replicas, and request the preferred leader.

        Return whether it was elected.
        """
        image = self.world.image
        others = [member for member in image.isr if member != image.leader]
        if not others:
            return False
        first = self.random.choice(others)
        self.world.reassign((first, *(replica for replica in image.replicas if replica != first)))
        return self._elect()

    def _reassign(self) -> bool:
        """Request two or three replicas in random order, or cancel; return whether anything changed."""
        before = self.world.image
        brokers = list(self.world.nodes)
        is_cancelled = before.is_reassigning and self.random.random() < 0.3
        target = tuple(self.random.sample(brokers, 2 + self.random.randrange(2)))
        self.world.reassign(None if is_cancelled else target)
        return self.world.image != before

    def _black_out(self) -> bool:
        """End every process at one moment, with a power loss if the profile allows one.

        Return whether any process ran.
        """
        running = list(self.world.running())
        for node in self.world.nodes.values():
            if self.profile.power is PowerRule.ANY:
                self._lose_power(node)
            self.world.crash(node.broker_id)
            self._restart_later(node.broker_id, self.random.randrange(BLACKOUT_MS))
        return bool(running)

    def _flush(self, node: Node) -> bool:
        """Have the operating system write back dirty pages; return whether there were any."""
        was_dirty = node.storage.flushed() < node.storage.end()
        try:
            node.storage.flush()
        except StorageError:
            self.world.counters.disk_failures += 1
            self.world.crash(node.broker_id)
            self._restart_later(node.broker_id)
            return False
        return was_dirty

    def _some_time(self) -> int:
        return int(self.random.expovariate(1 / 3_000)) + 100

    def _restart_later(self, broker_id: int, delay_ms: int = -1) -> None:
        """Restart the process after a while, if it has ended by then; otherwise check again later."""

        def restart() -> None:
            node = self.world.nodes[broker_id]
            if node.broker is None:
                # A start that fails is not repeated, so no armed fault may meet it.
                node.storage.arm(-1, 0)
                self.world.restart(broker_id)
            elif not self.is_over:
                self._restart_later(broker_id)

        self.world.schedule(self._some_time() if delay_ms < 0 else delay_ms, Call(restart))

    def _cut(self, cut: set[Link]) -> bool:
        """Cut links for some time; return whether any of them was whole before."""
        is_news = not cut <= self.network.cut
        self.world.schedule(self._some_time(), Call(self.network.sever(cut)))
        return is_news

    def _cut_power(self, node: Node) -> bool:
        """Cut a node's power if the profile's rule allows the possible loss."""
        rule, lossy = self.profile.power, self.oracles.lossy
        me = node.broker_id
        may_lose = rule in (PowerRule.ANY, PowerRule.KEEPS_ONE_COPY)
        if rule is PowerRule.ONE_AT_A_TIME:
            # A dead node may be the last ISR member, and so may one whose proposal to shrink is under way
            # (B11).
            is_alone = node.broker is None or self._has_proposal_under_way(me)
            others = [member for member in self.world.image.isr if member != me]
            may_lose = not is_alone and bool(others) and all(map(self._is_healthy, others))
        if not may_lose:
            return False
        before = node.storage.end()
        self._lose_power(node)
        self._restart_later(me)
        # With ANY the profile flushes each record before it is acknowledged: nothing that counts can be
        # missing.
        if node.storage.end() < before and rule is not PowerRule.ANY:
            lossy[me] = max(before, lossy.get(me, before))
            if rule is PowerRule.ONE_AT_A_TIME:
                self._be_quiet(me)
        return True

    def _lose_power(self, node: Node) -> None:
        """Cut a node's power, and check that its disk keeps all flushed records."""
        before = node.storage.end()
        # Read before the loss: afterwards only the disk could say what it had promised.
        check_kept = self.oracles.promise_of(node)
        self.world.lose_power(node.broker_id, self.random.randrange)
        check_kept()
        self.faults["records-lost"] += before - node.storage.end()

    def _leaves_one(self, node: Node) -> bool:
        """Return whether a node may end uncleanly without losing the last copy (KIP-966).

        Another member of ISR or ELR lives and has lost nothing.  And no other member of the ISR has ended, or
        is about to, without the controller's notice: two of those could keep a third out of ISR and ELR.
        """
        image, lossy = self.world.image, self.oracles.lossy
        others = {*image.isr, *image.elr} - {node.broker_id}
        alive = {member for member in others if self._lives_on(member)}
        return bool(alive - set(lossy)) and set(image.isr) - {node.broker_id} <= alive

    def _lives_on(self, member: int) -> bool:
        """Return whether a member runs with its current incarnation, and is not about to end uncleanly."""
        node = self.world.nodes[member]
        return is_current(self.world, member) and node.effects_left < 0 and not node.storage.is_armed()

    def _has_proposal_under_way(self, me: int) -> bool:
        """Return whether an ISR proposal of this node may still arrive.

        It could make it the last one standing.
        """
        sent = (item for _, _, item in self.world.pending() if isinstance(item, Delivery))
        return any(item.source == me and isinstance(item.message, AlterPartitionRequest) for item in sent)

    def _is_healthy(self, member: int) -> bool:
        node = self.world.nodes[member]
        if not self._lives_on(member) or node.broker is None:
            return False
        known = self.world.controller.state.brokers[member]
        return (
            node.held is None
            and known.state is BrokerState.ACTIVE
            and not node.broker.membership.wants_shutdown
            and self.world.now_ms - known.last_seen_ms <= HEALTHY_SESSION_MS
            and not any(member in link for link in self.network.cut)
        )

    def _be_quiet(self, victim: int) -> None:
        """Suspend all other faults until the controller has fenced the node that lost data."""
        self.victim, self.network.is_calm = victim, True
        epoch = self.world.controller.state.brokers[victim].broker_epoch

        def look() -> None:
            known = self.world.controller.state.brokers[victim]
            is_out = known.state is BrokerState.FENCED and victim not in self.world.image.isr
            if is_out or known.broker_epoch != epoch or self.is_over:
                self.victim, self.network.is_calm = -1, self.is_over
            else:
                self.world.schedule(200, Call(look))

        look()


def struck(world: World) -> Counter[str]:
    """Return how often each previously armed fault has occurred."""
    counters, quorum = world.counters, world.quorum
    happened = {
        Fault.CRASH_MID_EFFECTS: counters.crashes_mid_effects,
        Fault.DISK_ERROR: counters.disk_failures,
        Fault.SHUTDOWN: counters.stops,
        Fault.CONTROLLER_CRASH: 0 if quorum is None else quorum.crashes,
    }
    assert happened.keys() == ARMED
    return Counter({fault.value: number for fault, number in happened.items()})
