"""Fault profiles: the faults of a run, their frequency, and faults excluded as Kafka does not survive them.

What is excluded, and why:

- **Losing every copy.**  Kafka acknowledges from the page cache (I5).  A power loss that takes unflushed
  records of an ISR member is injected only while another member is sure to keep them (`PowerRule`).
- **The last replica standing (B11).**  Without ELR the last ISR member stays in the ISR when it dies; if it
  loses its tail, or if another member fails before the controller has noticed the loss, committed records
  are gone.  The same happens if the victim is a leader whose proposal to shrink the ISR to itself arrives
  after its death.  So with `ONE_AT_A_TIME` a lossy power loss needs all other ISR members healthy and no
  proposal of the victim under way, and no other fault begins until the controller has fenced the victim.
  `KEEPS_ONE_COPY` (with ELR) requires only that a process ends uncleanly while another member of
  ISR or ELR lives, and that the controller has noticed the end of every other ISR member; `ANY` (with a
  flush for each record) requires nothing.
- **A last known leader that lost its page cache.**  When all members of ISR and ELR end uncleanly, KIP-966
  elects who led last whatever it has.  So a blackout, the end of all processes at one moment, leaves them
  their page caches, except where each record is flushed (`ANY`).
- **Skipped metadata.**  Brokers apply every metadata version in order, except in the profile `coalesce`.

`replog/stories` has a story for each exclusion that shows the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from replog.core.broker.state import Config


class PowerRule(Enum):
    """When a power loss may take unflushed records."""

    NEVER = "never"
    ONE_AT_A_TIME = "one-at-a-time"
    KEEPS_ONE_COPY = "keeps-one-copy"
    ANY = "any"


class Fault(Enum):
    """The kinds of faults that a run can inject, in addition to those of the network."""

    CRASH = "crash"
    CRASH_MID_EFFECTS = "crash-mid-effects"
    POWER_LOSS = "power-loss"
    PAUSE = "pause"
    PARTITION = "partition"
    CONTROLLER_PARTITION = "controller-partition"
    LINK = "link"
    MISSED_METADATA = "missed-metadata"
    CLOCK_JUMP = "clock-jump"
    SHUTDOWN = "controlled-shutdown"
    PREFERRED_ELECTION = "preferred-election"
    ELECTION = "election"
    DISK_ERROR = "disk-error"
    BACKGROUND_FLUSH = "background-flush"
    BLACKOUT = "blackout"
    REASSIGNMENT = "reassignment"
    CONTROLLER_CRASH = "controller-crash"
    CONTROLLER_PAUSE = "controller-pause"
    CONTROLLERS_CUT = "controllers-cut"


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of fault load; probabilities are per message, weights are relative to other faults."""

    name: str
    about: str
    duration_ms: int = 30_000
    heal_ms: int = 60_000
    fault_every_ms: int = 1_200
    loss: float = 0.0
    duplication: float = 0.0
    tail: float = 0.0
    """Share of messages that take up to `tail_ms`: past an epoch change, and past many others."""
    jitter_ms: int = 20
    tail_ms: int = 4_000
    weights: dict[Fault, int] = field(default_factory=dict)
    power: PowerRule = PowerRule.NEVER
    uses_store: bool = False
    coalesces_metadata: bool = False
    follower_read: bool = False
    flush_messages: int = 0
    batches: int = 40
    protocol: str = "kafka-4.1"
    deletes: bool = False
    """Whether a client deletes the oldest records now and then."""
    retention_bytes: int = -1
    controllers: int = 1
    brokers: int = 3
    """Three of them hold the partition at first."""
    topics: tuple[tuple[str, int], ...] = ()
    """Topics and how many partitions each has; none is one partition of one topic."""
    groups: str = ""
    """The partition that is the log of consumer groups, if any; members of a group read the first one."""

    def config(self) -> Config:
        """Return the brokers' configuration: Kafka's, with times scaled down to have much happen quickly."""
        return Config(
            lag_ms=4_000,
            fetch_timeout_ms=1_500,
            fetch_backoff_ms=300,
            alter_retry_ms=700,
            # Seldom beside the messages, so that a start often finds an old one.
            hw_checkpoint_ms=1_500,
            # A few batches a fetch, so that followers lag and truncations meet more than one of them.
            fetch_max_bytes=400,
            flush_messages=self.flush_messages,
            follower_read=self.follower_read,
            retention_bytes=self.retention_bytes,
            retention_check_ms=2_000,
            resign_ms=3_000 if self.groups else 0,
        )


_CALM = Profile("", "no faults at all")
_NETWORK = replace(
    _CALM,
    about="loss, duplication, reordering, delay, partitions",
    loss=0.03,
    duplication=0.03,
    tail=0.05,
    weights={Fault.PARTITION: 4, Fault.CONTROLLER_PARTITION: 3, Fault.PREFERRED_ELECTION: 2, Fault.PAUSE: 1},
)
_ALL = replace(
    _NETWORK,
    about="every fault, today's rules; see the module text for what is excluded",
    weights={
        Fault.CRASH: 4,
        Fault.CRASH_MID_EFFECTS: 5,
        Fault.POWER_LOSS: 5,
        Fault.PAUSE: 3,
        Fault.PARTITION: 4,
        Fault.CONTROLLER_PARTITION: 4,
        Fault.CLOCK_JUMP: 2,
        Fault.SHUTDOWN: 2,
        Fault.PREFERRED_ELECTION: 4,
        Fault.DISK_ERROR: 2,
        Fault.BACKGROUND_FLUSH: 3,
    },
    power=PowerRule.ONE_AT_A_TIME,
    follower_read=True,
)


def _weights(*without: Fault, **extra: int) -> dict[Fault, int]:
    """Return the weights of `all`, without some faults, and with others added."""
    kept = {fault: weight for fault, weight in _ALL.weights.items() if fault not in without}
    return kept | {Fault[name.upper()]: weight for name, weight in extra.items()}


def _named(**profiles: Profile) -> Mapping[str, Profile]:
    return MappingProxyType({name: replace(profile, name=name) for name, profile in profiles.items()})


_PROFILES = _named(
    calm=_CALM,
    network=_NETWORK,
    all=_ALL,
    elr=replace(
        _ALL,
        about="every fault, and power may fail while one copy survives",
        power=PowerRule.KEEPS_ONE_COPY,
    ),
    upgraded=replace(
        _ALL,
        about="as `all`, without eligible leader replicas",
        protocol="kafka-4.1-upgraded",
    ),
    flush=replace(
        _ALL,
        about="every fault, each record flushed before it is acknowledged: all power may fail at once",
        weights=_weights(Fault.BACKGROUND_FLUSH, blackout=3),
        power=PowerRule.ANY,
        flush_messages=1,
    ),
    blackout=replace(
        _ALL,
        about="every fault but power losses, and now and then every process is killed",
        weights=_weights(Fault.POWER_LOSS, blackout=6),
        power=PowerRule.NEVER,
    ),
    stale=replace(
        _ALL,
        about="as `all`, with messages that come twice, late and out of order",
        # So late that whole leaderships pass meanwhile, so often that some meet the epoch they are of
        # again.
        duplication=0.4,
        tail=0.15,
        tail_ms=9_000,
        loss=0.02,
    ),
    store=replace(
        _ALL,
        about="as `all`, on the real store and a simulated disk (torn writes, failed fsync, ...)",
        uses_store=True,
        # The disk loses what is not flushed, and real files are slower than lists: fewer batches, less
        # time.
        flush_messages=40,
        batches=20,
        duration_ms=20_000,
    ),
    reassign=replace(
        _ALL,
        about="as `all`, and an operator moves the partition among five brokers, and changes their mind",
        weights=_weights(reassignment=12),
        brokers=5,
    ),
    coalesce=replace(
        _CALM,
        about="leaders change often, the one before is not notified, and brokers skip metadata versions",
        # What the kept remote LEO needs (A18): a leader that is leader again and missed who led
        # meanwhile; a follower that cuts what it had acknowledged, since the one between had less; and a
        # late fetch of that follower. Crashes and power losses end such a leadership for other reasons.
        weights={Fault.ELECTION: 6, Fault.MISSED_METADATA: 4, Fault.LINK: 8},
        fault_every_ms=600,
        jitter_ms=40,
        duration_ms=90_000,
        batches=120,
        # Each change of leaders costs producers a timeout or more, and what they have not sent comes now.
        heal_ms=240_000,
        coalesces_metadata=True,
    ),
    delete=replace(
        _ALL,
        about="as `all`, while a client deletes the oldest records",
        deletes=True,
    ),
    retain=replace(
        _ALL,
        about="as `all`, on the real store, while each broker deletes what is more than it has to keep",
        uses_store=True,
        flush_messages=40,
        batches=20,
        duration_ms=20_000,
        retention_bytes=4_000,
    ),
    topics=replace(
        _ALL,
        about="every fault; two topics of three partitions on four brokers, placed by Kafka's rule",
        # Each record is flushed, since a power loss hits all partitions of a broker at once: for some the
        # broker may be the last that has all.
        weights=_weights(Fault.BACKGROUND_FLUSH, blackout=2, reassignment=4),
        power=PowerRule.ANY,
        flush_messages=1,
        brokers=4,
        topics=(("t", 3), ("u", 3)),
        batches=12,
        duration_ms=20_000,
    ),
    groups=replace(
        _CALM,
        about="leaders change and brokers die, while members of a consumer group commit and take over",
        # No message comes twice: of one generation the same commit, later, takes the group back, in
        # Kafka, too, whose connections deliver once.
        weights={
            Fault.ELECTION: 8,
            Fault.LINK: 4,
            Fault.PARTITION: 2,
            Fault.PAUSE: 2,
            Fault.CRASH: 2,
            Fault.CRASH_MID_EFFECTS: 2,
        },
        fault_every_ms=1_000,
        jitter_ms=40,
        duration_ms=60_000,
        batches=30,
        topics=(("t", 1), ("groups", 1)),
        groups="groups-0",
    ),
    controllers=replace(
        _ALL,
        about="as `all`, with three controllers that die, freeze, and lose sight of each other",
        # Each record is flushed, since a failover of the controllers gives every broker another session,
        # in which a power loss is not noticed. An operator's election is decided when its record is
        # committed: after the fault, which could not be counted.
        weights=_weights(
            Fault.BACKGROUND_FLUSH,
            Fault.PREFERRED_ELECTION,
            controller_crash=20,
            controller_pause=14,
            controllers_cut=20,
        ),
        power=PowerRule.ANY,
        flush_messages=1,
        # What a later controller replaces has to be lost before a majority has it.
        fault_every_ms=600,
        # Nobody leads while the controllers have no active one, and producers have more to repeat.
        heal_ms=120_000,
        controllers=3,
    ),
)


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles."""
    return tuple(_PROFILES)


def profile(name: str) -> Profile:
    """Return a named profile; KeyError with the known names otherwise."""
    if name not in _PROFILES:
        raise KeyError(f"no profile {name!r}; known: {', '.join(_PROFILES)}")
    return _PROFILES[name]
