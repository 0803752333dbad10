"""One simulated run, from seed and profile to report: the work of `replog sim --seed N --profile P`.

    all is set up -> faults for `duration_ms` -> everything heals -> the cluster converges -> last checks

The same seed, profile and protocol give the same run, step by step.  A run that breaks an oracle, or in
which a core raises, is a failure; its report holds the command that repeats it.  So is one that takes more
than `max_events` events (`pace`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from replog.core.controller.placement import assign
from replog.core.log.producer import WINDOW
from replog.core.protocol import Protocol, preset
from replog.core.types import NO_LEADER, Role
from replog.sim.cluster.clients import Cleaner, Consumer, Producer
from replog.sim.cluster.members import FIRST_ADDRESS, Member, settle
from replog.sim.cluster.node import Call, Counters
from replog.sim.cluster.options import WorldOptions
from replog.sim.cluster.storage import MemoryStorage
from replog.sim.cluster.views import AnyWorld
from replog.sim.cluster.world import START_MS, World
from replog.sim.disks.stored import StoreStorage
from replog.sim.faults.faults import FaultyNetwork, Injector, struck
from replog.sim.faults.profiles import Profile, profile
from replog.sim.oracles.commits import CommitWatch
from replog.sim.oracles.convergence import converged
from replog.sim.oracles.oracles import Figures, Oracles
from replog.sim.oracles.pace import MAX_EVENTS, Pace
from replog.sim.oracles.promises import ViolationError, praise
from replog.sim.oracles.several import SeveralOracles

LOOK_EVERY_STEPS = 256
UNBOUNDED = 1 << 62
SETTLE_MS = 1_000
REPLICAS = 3
ACKS = (-1, -1, -1, 1, 0)
"""Of the producers of a partition."""
ADDRESSES = 100
"""How many the clients of a partition have at most."""
TURN_MS = 400
Watch = Oracles | SeveralOracles
MakeWorld = Callable[[WorldOptions, FaultyNetwork, Watch], World]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run, and the promise it broke: `oracle` is "" if none.

    `faults` are those that happened, `checks` how often each oracle was checked with something to compare.
    """

    seed: int
    profile: str
    protocol: str
    oracle: str
    detail: str
    simulated_ms: int
    counters: Counters = field(default_factory=Counters)
    max_events: int = MAX_EVENTS
    has_groups: bool = False
    faults: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    figures: Figures = field(default_factory=Figures)

    @property
    def is_failure(self) -> bool:
        """Return whether the run broke a promise."""
        return self.oracle != ""

    @property
    def command(self) -> str:
        """Return the command that repeats this run."""
        limit = f" --max-events {self.max_events}" if self.max_events != MAX_EVENTS else ""
        return f"replog sim --seed {self.seed} --profile {self.profile} --protocol {self.protocol}{limit}"

    def text(self) -> str:
        """Return the verdict in a few lines, the command last."""
        verdict = (
            f"broken: {self.oracle}: {self.detail}"
            if self.is_failure
            else praise(self.checks, has_groups=self.has_groups)
        )
        figures, counters = self.figures, self.counters
        changes = f"ISR changes {figures.isr_changes}, truncations {counters.truncations}"
        faults = ", ".join(f"{name} {n}" for name, n in sorted(self.faults.items())) or "none"
        outside = f"of ELR members {figures.elr_elections}, outside ISR and ELR {figures.unclean_elections}"
        lines = [
            f"seed {self.seed}, profile {self.profile}, protocol {self.protocol}: {verdict}",
            f"  {counters.steps} steps in {self.simulated_ms / 1000:.1f} simulated seconds",
            f"  crashes {counters.crashes}, {changes}",
            f"  elections {figures.elections}, {outside}",
            f"  records committed {figures.committed}, acknowledged with acks=all {figures.acknowledged}",
            f"  records consumed {figures.consumed} (including re-reads)",
            f"  faults: {faults}",
        ]
        if self.is_failure:
            lines.append(f"  repeat: {self.command}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Part:
    """A partition of a run: the world restricted to it, and its oracles."""

    world: AnyWorld
    oracles: Oracles
    number: int = 0
    partition: str = ""
    """Its name, if there are several partitions."""

    @property
    def prefix(self) -> str:
        """Return the prefix of a message about it."""
        return f"{self.partition}: " if self.partition else ""

    def address(self, address: int) -> int:
        """Return the address of one of its clients."""
        return address - self.number * ADDRESSES


def placed(weather: Profile, random: Random) -> dict[str, tuple[int, ...]]:
    """Place the partitions of a profile's topics by Kafka's rule, with a random first broker and shift."""
    partitions: dict[str, tuple[int, ...]] = {}
    for topic, count in weather.topics:
        start, shift = random.randrange(weather.brokers), random.randrange(weather.brokers)
        replicas = assign(range(weather.brokers), count, REPLICAS, start, shift)
        partitions |= {f"{topic}-{number}": each for number, each in enumerate(replicas)}
    return partitions


class Simulation:
    """One run in progress; `world` may be read between steps."""

    def __init__(
        self,
        seed: int,
        weather: Profile,
        protocol: str = "",
        rules: Protocol | None = None,
        max_events: int = MAX_EVENTS,
        make_world: MakeWorld = World,
    ) -> None:
        self.seed = seed
        self.protocol = protocol or weather.protocol
        self.profile = weather
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        rules = preset(self.protocol) if rules is None else rules
        # Older rules move HW below the minimum ISR, so there a committed record may have a single copy.
        least = 1 if rules.hw_under_min_isr else 2
        self.partitions = placed(weather, self.random)
        self.several = SeveralOracles(self.partitions, least) if self.partitions else None
        self.oracles = next(iter(self.several.parts.values())) if self.several else Oracles(least)
        if weather.retention_bytes >= 0:
            self.oracles.requested(UNBOUNDED)
        self.network = FaultyNetwork(self.random, weather)
        options = WorldOptions(
            brokers=weather.brokers,
            replicas=REPLICAS,
            min_isr=2,
            protocol=rules,
            config=weather.config(),
            session_timeout_ms=6_000,
            coalesces_metadata=weather.coalesces_metadata,
            make_storage=StoreStorage if weather.uses_store else MemoryStorage,
            controllers=weather.controllers,
            partitions=self.partitions,
            groups=weather.groups,
        )
        self.watch: Watch = self.several or self.oracles
        self.world = make_world(options, self.network, self.watch)
        self.pace = Pace(self.world, max_events)
        faults = self.network.faults
        self.injector = Injector(self.world, self.network, self.watch, weather, self.random, faults)
        self.parts = [Part(self.world, self.oracles)]
        if self.several is not None:
            watched = enumerate(self.several.parts.items())
            self.parts = [
                Part(self.several.view(self.world, name), oracles, number, name)
                for number, (name, oracles) in watched
            ]
        # The log of groups has one writer, its coordinator.
        written = [part for part in self.parts if not weather.groups or part.partition != weather.groups]
        self.members: list[Member] = []
        self.producers = [self._producer(part, i, acks) for part in written for i, acks in enumerate(ACKS)]
        self._begin()

    def _begin(self) -> None:
        for broker_id, node in self.world.nodes.items():
            # Clocks never agree. A rule that compares times of two machines would show here.
            node.clock_offset_ms = self.random.randrange(-2_000, 2_000)
            self.world.restart(broker_id)
        for producer in self.producers:
            part = self.parts[-producer.address // ADDRESSES]
            self.world.start_client(producer.address, producer, self.random.randrange(2_000), part.partition)
        for part in self.parts:
            for address in (-20, -21):
                self._start_consumer(part, address)
        if self.profile.deletes:
            find = partial(self.find_leader, self.parts[0])
            cleaner = Cleaner(-30, find, self.random.randrange, self._deletable, self.oracles)
            self.world.start_client(cleaner.address, cleaner, self.random.randrange(2_000))
        if self.profile.groups:
            self._start_members()
        if self.several is not None:
            self._turn()
        self.injector.schedule_next()

    def _turn(self) -> None:
        """Move the operator to another partition, repeatedly."""
        self.world.focus = self.random.choice(list(self.partitions))
        self.world.schedule(TURN_MS, Call(self._turn))

    def _start_consumer(self, part: Part, address: int) -> None:
        consumer = Consumer(
            part.address(address),
            partial(self.find_reader, part),
            self.random.randrange,
            part.oracles,
            looks_for_start=self.profile.deletes or self.profile.retention_bytes >= 0,
        )
        self.world.start_client(consumer.address, consumer, self.random.randrange(2_000), part.partition)

    def _start_members(self) -> None:
        """Start three members of one group, which read the first partition."""
        parts = {part.partition: part for part in self.parts}
        first, log, watch = self.parts[0].partition, self.profile.groups, CommitWatch(self.oracles.checks)
        self.members = [
            Member(FIRST_ADDRESS - number, "g", first, log, lambda name: self.find_leader(parts[name]),
                   self.random.randrange, watch)
            for number in range(3)
        ]  # fmt: skip
        for member in self.members:
            self.world.start_client(member.address, member, self.random.randrange(2_000))

    def _deletable(self) -> int:
        """Return an offset before which records may be deleted.

        None of an idempotent producer's last batches does: it would be forgotten with them, and may then be
        refused for good when it repeats one (A2).
        """
        firsts: dict[bytes, dict[bytes, int]] = {}
        for offset, (_, body) in enumerate(self.oracles.committed):
            if body.startswith(b"i"):
                firsts.setdefault(body.partition(b"-")[0], {}).setdefault(body, offset)
        needed = (list(batches.values())[-WINDOW:][0] for batches in firsts.values())
        return self.random.randrange(min(needed, default=0) + 1)

    def _producer(self, part: Part, number: int, acks: int) -> Producer:
        # One acks=all producer without idempotence: its duplicates are allowed, its losses are not.
        is_idempotent = acks == -1 and number != 2
        return Producer(
            part.address(-10 - number),
            acks,
            is_idempotent,
            self.profile.batches,
            partial(self.find_leader, part),
            self.random.randrange,
            part.oracles,
            interval_ms=self.profile.duration_ms // self.profile.batches,
        )

    def find_leader(self, part: Part) -> int:
        """Return the controller's leader, or sometimes a broker in the role of leader, or any broker."""
        draw = self.random.random()
        leader = part.world.image.leader
        if draw < 0.8 and leader >= 0:
            return leader
        # A stale leader has to be visited too: it accepts produces, and only its HW must not move (A1).
        believers = [
            node.broker_id
            for node in part.world.running()
            if node.broker is not None and node.broker.replica.state.role is Role.LEADER
        ]
        if draw < 0.97 and believers:
            return believers[self.random.randrange(len(believers))]
        return self.random.randrange(len(self.world.nodes))

    def find_reader(self, part: Part) -> int:
        """Return a broker to read from: often the leader, otherwise any."""
        if self.random.random() < 0.5:
            return self.find_leader(part)
        return self.random.randrange(len(self.world.nodes))

    def run(self) -> Report:
        """Run to the end, or to the first broken promise."""
        oracle = detail = ""
        try:
            self._storm()
            self._heal()
            self._last_checks()
        except ViolationError as error:
            oracle, detail = error.oracle, error.detail
        except Exception as error:  # a core must not raise, whatever it is sent: that is an oracle too
            oracle, detail = "no-exception", f"{type(error).__name__}: {error}"
        return self.report(oracle, detail)

    def _storm(self) -> None:
        """Inject faults, and sometimes compare whole logs."""
        looked = 0
        for _ in self.pace.until(START_MS + self.profile.duration_ms):
            if self.world.counters.steps >= looked + LOOK_EVERY_STEPS:
                looked = self.world.counters.steps
                self.watch.compare_logs(self.world)

    def _heal(self) -> None:
        """End the faults and wait until everything is repaired, checking every second."""
        self.injector.stop()
        settle(self.members)
        deadline_ms = self.world.now_ms + self.profile.heal_ms
        while missing := self._look():
            if self.world.now_ms >= deadline_ms:
                raise missing

    def _look(self) -> ViolationError | None:
        """Simulate one second, start dead brokers, and return a promise that is not kept yet."""
        for _ in self.pace.until(self.world.now_ms + SETTLE_MS):
            pass
        # Each second again: a disk fault that was armed may strike after the end of faults.
        self.injector.revive()
        for part in self.parts:
            part.oracles.checks.update(("has-leader", "converges"))
            image = part.world.image
            if image.leader == NO_LEADER:
                known = (
                    f", last known leader {image.last_known_leader}" if image.last_known_leader >= 0 else ""
                )
                return ViolationError("has-leader", f"{part.prefix}ISR {image.isr}, ELR {image.elr}{known}")
        missing = self.missing()
        return ViolationError("converges", missing) if missing else None

    def missing(self) -> str:
        """Return what is not yet repaired; "" when all replicas agree and every produce is answered."""
        for part in self.parts:
            if missing := converged(part.world):
                return part.prefix + missing
        waiting = sum(len(producer.outstanding) for producer in self.producers)
        unsent = sum(producer.limit - producer.next_number for producer in self.producers)
        if waiting or unsent:
            return f"{waiting} produces waiting, {unsent} unsent"
        end = len(self.parts[0].oracles.committed)
        behind = [member for member in self.members if not member.is_over and member.committed != end]
        return f"the group has committed {behind[0].committed} of {end} records" if behind else ""

    def _last_checks(self) -> None:
        """Compare whole logs and disks, once nothing changes."""
        self.watch.compare_logs(self.world)
        self.watch.check_disks(self.world)
        abandoned = sum(producer.abandoned for producer in self.producers)
        self.oracles.checks["never-gives-up"] += sum(p.answered for p in self.producers if p.is_idempotent)
        if abandoned:
            raise ViolationError("never-gives-up", f"{abandoned} batches out of order for good")
        for part in self.parts:
            leader = part.world.nodes.get(part.world.image.leader)
            if leader is not None and leader.broker is not None:
                part.oracles.check_producers(leader.broker.replica.state.log)

    def report(self, oracle: str, detail: str) -> Report:
        """Return the figures so far."""
        self.oracles.checks["no-exception"] = self.oracles.checks["step-limit"] = self.pace.events
        return Report(
            self.seed,
            self.profile.name,
            self.protocol,
            oracle,
            detail,
            self.world.now_ms - START_MS,
            replace(self.world.counters),
            self.pace.max_events,
            self.profile.groups != "",
            +(self.network.faults + struck(self.world)),
            +self.watch.checks,
            replace(self.watch.figures),
        )


def simulate(
    seed: int, profile_name: str = "all", protocol: str = "", max_events: int = MAX_EVENTS
) -> Report:
    """Run one seed.

    `protocol` names a preset and defaults to the profile's.  KeyError for an unknown name.
    """
    return Simulation(seed, profile(profile_name), protocol, max_events=max_events).run()
