"""One simulated run, seed and profile in, report out: what `replog sim --seed N --profile P` does.

    all is set up -> faults for `duration_ms` -> everything heals -> the cluster converges -> last checks

The same seed, profile and protocol give the same run, step by step.  A run that breaks an oracle, or in
which a core raises, is a failure; its report holds the command that repeats it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from replog.core.protocol import Protocol, preset
from replog.core.types import Role
from replog.sim.clients import Consumer, Producer
from replog.sim.faults import FaultyNetwork, Injector
from replog.sim.oracles import Figures, Oracles, ViolationError, converged
from replog.sim.profiles import Profile, profile
from replog.sim.storage import MemoryStorage, Storage
from replog.sim.stored import StoreStorage
from replog.sim.world import START_MS, World, WorldOptions

LOOK_EVERY_STEPS = 256
SETTLE_MS = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """What one run did, and what it broke: `oracle` is "" if nothing."""

    seed: int
    profile: str
    protocol: str
    oracle: str
    detail: str
    steps: int
    simulated_ms: int
    crashes: int
    restarts: int
    faults: Counter[str] = field(default_factory=Counter)
    figures: Figures = field(default_factory=Figures)

    @property
    def is_failure(self) -> bool:
        """Tell whether the run broke an oracle."""
        return self.oracle != ""

    @property
    def command(self) -> str:
        """Return the command that repeats this run."""
        return f"replog sim --seed {self.seed} --profile {self.profile} --protocol {self.protocol}"

    def text(self) -> str:
        """Return the verdict in a few lines, the command last."""
        verdict = f"broken: {self.oracle}: {self.detail}" if self.is_failure else "all oracles hold"
        figures = self.figures
        faults = ", ".join(f"{name} {n}" for name, n in sorted(self.faults.items())) or "none"
        lines = [
            f"seed {self.seed}, profile {self.profile}, protocol {self.protocol}: {verdict}",
            f"  {self.steps} steps in {self.simulated_ms / 1000:.1f} simulated seconds",
            f"  crashes {self.crashes}, elections {figures.elections}, ISR changes {figures.isr_changes}",
            f"  records committed {figures.committed}, acknowledged {figures.acknowledged}",
            f"  records consumed {figures.consumed}",
            f"  faults: {faults}",
        ]
        if self.is_failure:
            lines.append(f"  repeat: {self.command}")
        return "\n".join(lines)


class Simulation:
    """One run in progress; `world` may be looked at between steps."""

    def __init__(
        self, seed: int, weather: Profile, protocol: str = "", rules: Protocol | None = None
    ) -> None:
        self.seed = seed
        self.protocol = protocol or weather.protocol
        self.profile = weather
        self.random = Random(seed)  # noqa: S311  # chance that must be repeatable
        rules = preset(self.protocol) if rules is None else rules
        self.oracles = Oracles(1 if rules.hw_under_min_isr else 2)
        self.network = FaultyNetwork(self.random, weather)
        options = WorldOptions(
            brokers=3,
            min_isr=2,
            protocol=rules,
            config=weather.config(),
            session_timeout_ms=6_000,
            coalesces_metadata=weather.coalesces_metadata,
            make_storage=storage_factory(weather),
        )
        self.world = World(options, self.network, self.oracles)
        self.injector = Injector(
            self.world, self.network, self.oracles, weather, self.random, self.network.faults
        )
        self.producers = [self._producer(-10 - i, acks) for i, acks in enumerate((-1, -1, -1, 1, 0))]
        self._begin()

    def _begin(self) -> None:
        for broker_id, node in self.world.nodes.items():
            node.clock_offset_ms = self.random.randrange(-2_000, 2_000)
            self.world.restart(broker_id)
        for producer in self.producers:
            self.world.start_client(producer.address, producer, self.random.randrange(2_000))
        for address in (-20, -21):
            consumer = Consumer(address, self.find_reader, self.random.randrange, self.oracles)
            self.world.start_client(address, consumer, self.random.randrange(2_000))
        self.injector.start()

    def _producer(self, address: int, acks: int) -> Producer:
        is_idempotent = acks == -1 and address != -12
        return Producer(
            address,
            acks,
            is_idempotent,
            self.profile.batches,
            self.find_leader,
            self.random.randrange,
            self.oracles,
            interval_ms=self.profile.duration_ms // self.profile.batches,
        )

    def find_leader(self) -> int:
        """Return the controller's leader, or now and then whoever believes it leads, or anybody."""
        draw = self.random.random()
        leader = self.world.image.leader
        if draw < 0.8 and leader >= 0:
            return leader
        believers = [
            node.broker_id
            for node in self.world.running()
            if node.broker is not None and node.broker.replica.state.role is Role.LEADER
        ]
        if draw < 0.97 and believers:
            return believers[self.random.randrange(len(believers))]
        return self.random.randrange(len(self.world.nodes))

    def find_reader(self) -> int:
        """Return a broker to read from: often the leader, often any."""
        if self.random.random() < 0.5:
            return self.find_leader()
        return self.random.randrange(len(self.world.nodes))

    # -- the run

    def run(self) -> Report:
        """Run to the end, or to the first broken oracle."""
        oracle = detail = ""
        try:
            self._storm()
            self._heal()
            self._last_checks()
        except ViolationError as error:
            oracle, detail = error.oracle, str(error).partition(": ")[2]
        except Exception as error:  # a core must not raise, whatever it is sent: that is an oracle too
            oracle, detail = "no-exception", f"{type(error).__name__}: {error}"
        return self.report(oracle, detail)

    def _storm(self) -> None:
        end_ms = START_MS + self.profile.duration_ms
        while self.world.now_ms < end_ms and self.world.step():
            if self.world.counters.steps % LOOK_EVERY_STEPS == 0:
                self.oracles.compare_logs(self.world)

    def _heal(self) -> None:
        """End the faults and wait until all is well, looking every second."""
        self.injector.stop()
        deadline_ms = self.world.now_ms + self.profile.heal_ms
        missing = "time"
        while missing and self.world.now_ms < deadline_ms:
            look_ms = self.world.now_ms + SETTLE_MS
            while self.world.now_ms < look_ms and self.world.step():
                pass
            self.injector.revive()
            missing = self.missing()
        if missing:
            raise ViolationError("converges", missing)

    def missing(self) -> str:
        """Return what is not well yet; "" when every replica agrees and every produce is answered."""
        image = self.world.image
        if self.world.options.protocol.elr and not image.isr and not image.elr:
            return ""
        missing = converged(self.world)
        if missing:
            return missing
        waiting = sum(len(producer.outstanding) for producer in self.producers)
        unsent = sum(producer.limit - producer.next_number for producer in self.producers)
        return f"{waiting} produces waiting, {unsent} unsent" if waiting or unsent else ""

    def _last_checks(self) -> None:
        """Compare whole logs and disks, once everything is still."""
        self.oracles.compare_logs(self.world)
        self.oracles.check_disks(self.world)
        abandoned = sum(producer.abandoned for producer in self.producers)
        if abandoned:
            raise ViolationError("never-gives-up", f"{abandoned} batches out of order for good")
        leader = self.world.nodes.get(self.world.image.leader)
        if leader is not None and leader.broker is not None:
            self.oracles.check_producers(leader.broker.replica.state.log)

    def report(self, oracle: str, detail: str) -> Report:
        """Return the figures so far."""
        counters = self.world.counters
        return Report(
            self.seed,
            self.profile.name,
            self.protocol,
            oracle,
            detail,
            counters.steps,
            self.world.now_ms - START_MS,
            counters.crashes,
            counters.restarts,
            Counter(self.network.faults),
            replace(self.oracles.figures),
        )


def storage_factory(weather: Profile) -> Callable[[], Storage]:
    """Return what makes a node's disk under a profile."""
    return StoreStorage if weather.uses_store else MemoryStorage


def simulate(seed: int, profile_name: str = "all", protocol: str = "") -> Report:
    """Run one seed.

    `protocol` names a preset and defaults to the profile's.  KeyError for an unknown name.
    """
    return Simulation(seed, profile(profile_name), protocol).run()


def simulate_many(first_seed: int, count: int, profile_name: str = "all", protocol: str = "") -> list[Report]:
    """Run consecutive seeds; every one is independent of the others."""
    return [simulate(seed, profile_name, protocol) for seed in range(first_seed, first_seed + count)]
