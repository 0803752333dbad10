"""Every rule of the protocol that has changed over time, as one frozen value: `Protocol()` is Kafka 4.1.

Sources: the bug ledger and the list of switches in the project's Kafka reference (B1-B31, G.2).  Each
switch names the flaw that it restores.  A preset is a version of Kafka, or today's rules with one rule
reverted; presets allow a demonstration `--protocol hw-truncation`, with a single definition in the
code.

`Protocol()` is the preset `kafka-4.1`: a new cluster of it, with eligible leader replicas.  A cluster that
was upgraded to it has none until an operator enables them (`kafka-4.1-upgraded`).  In five rules it is
stricter than Kafka: a leader forgets its followers' fetch positions of an earlier epoch
(`keeps_remote_leo`), a replica removed by a reassignment is no longer eligible (`removed_leave_elr`), a
request for another reassignment replaces all of the earlier one (`override_replaces`), a member of the
ISR has the log start (`join_needs_start`), and a coordinator that no longer leads answers no commit
(`completes_as_leader`).  `kafka-4.1-as-is` has Kafka's rules, and loses records.

Not here: faults (those belong to the world that runs the core) and plain tuning (`Config`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType


class Truncation(Enum):
    """How a new follower finds the point at which its log diverges from the leader's."""

    NONE = "none"
    HW = "hw"
    """Cut at the own high watermark, at once (up to 0.10.2): loses (B1) and diverges (B2)."""
    KIP101 = "kip101"
    """Request the end of the own last epoch from the leader (0.11): diverges after fast failovers (B3)."""
    KIP279 = "kip279"
    """The answer names the epoch it is for, and the follower intersects (2.0).

    May still fall back to HW (B4).
    """
    KAFKA7415 = "kafka7415"
    """As KIP-279; an epoch before the first known one also has an answer (2.1)."""
    FETCH = "fetch"
    """The fetch carries the last epoch, the reply a diverging epoch (2.8 and later)."""


class TruncateWhen(Enum):
    """The metadata changes that make a follower check for divergence."""

    LEADER_ID_CHANGE = "leader-id-change"
    EVERY_EPOCH = "every-epoch"


class EpochEntryWhen(Enum):
    """The time at which a leader adds its own epoch to its cache."""

    ON_FIRST_WRITE = "on-first-write"
    ON_BECOME_LEADER = "on-become-leader"


class MaximalIsr(Enum):
    """The replicas that must have a record before HW passes it, while an ISR change is in flight."""

    EAGER_EXPAND = "eager-expand"
    NONE = "none"
    EAGER_SHRINK = "eager-shrink"


class CaughtUpRule(Enum):
    """The events that refresh a follower's lastCaughtUp time (I10)."""

    TWO_BRANCHES = "two-branches"
    """Now, if it fetches the leader's LEO.

    Else the previous fetch's time, if it fetches the LEO of back then.
    """
    REACHED_LEO = "reached-leo"
    """Only when it fetches the leader's LEO (0.9 to 0.10.1, and the seeds)."""


class RecordIs(Enum):
    """The state that a record of the controllers' log must reach before others depend on it (A36)."""

    COMMITTED = "committed"
    APPENDED = "appended"


@dataclass(frozen=True, slots=True)
class Protocol:
    """The rules in force; the defaults are Kafka's present rules."""

    truncation: Truncation = Truncation.FETCH
    truncate_when: TruncateWhen = TruncateWhen.EVERY_EPOCH
    epoch_entry: EpochEntryWhen = EpochEntryWhen.ON_BECOME_LEADER
    maximal_isr: MaximalIsr = MaximalIsr.EAGER_EXPAND
    caught_up: CaughtUpRule = CaughtUpRule.TWO_BRANCHES
    fences_fetch: bool = True
    """A fetch of another leader epoch is refused (KIP-320, B8)."""
    fences_truncation: bool = True
    """An end-of-epoch question of another leader epoch is refused (KIP-320, B7)."""
    checks_response: bool = True
    """A fetch reply is applied only if it answers the request in flight (KAFKA-13207, B10)."""
    truncates_cache_always: bool = True
    """Epoch entries past the truncation point go even if no record goes (KAFKA-10706, B23)."""
    updates_on_diverge: bool = False
    """A diverging fetch counts as an acknowledgement (KAFKA-13141, B9)."""
    hw_on_diverge: bool = False
    """A follower takes the HW of a diverging reply before it truncates (KAFKA-14704, B12)."""
    hw_under_min_isr: bool = False
    """HW moves although the ISR is below the minimum (before KAFKA-15583, B15)."""
    hw_on_alter_ok: bool = True
    """HW is computed again when an ISR change succeeds (KAFKA-13091, B23)."""
    waits_for_caught_up: bool = True
    """HW also waits for eligible replicas that are caught up but not in the ISR yet (KAFKA-4485, I3)."""
    expand_needs_hw: bool = True
    """A replica joins the ISR only at or past HW (B30)."""
    expand_needs_leso: bool = True
    """... and at or past the start of the leader's epoch (KAFKA-7128, B5)."""
    keeps_remote_leo: bool = False
    """A leader that is leader again in a later epoch keeps its followers' LEOs (A18).

    Kafka does, and HW passes records that a member of the ISR has cut in an epoch that the leader missed.
    """
    checks_partition_epoch: bool = True
    """The controller refuses an ISR change computed from old state (B19)."""
    checks_broker_epoch: bool = True
    """Acknowledgements and ISR proposals of an earlier incarnation do not count (KIP-903, B18)."""
    checks_fenced: bool = True
    """A fenced or shutting-down broker cannot join the ISR (KIP-841, B24)."""
    restart_leaves_isr: bool = True
    """A restart is noticed: the broker registers only after its old session ended, outside the ISR."""
    unclean_election: bool = False
    """Any live replica may lead when no ISR member is left (B16)."""
    elr: bool = True
    """Eligible leader replicas (KIP-966): no last replica standing (B11)."""
    removed_leave_elr: bool = True
    """A replica that a reassignment removes leaves the ELR, too (A34).

    In Kafka it stays there, or gets there, while the ISR is too small: added again, and empty, it may lead.
    """
    join_needs_start: bool = True
    """A replica joins the ISR only with the leader's log start, and who may lead is waited for (A35).

    In Kafka it may join before it has that, and a client who deletes has its answer without eligible leader
    replicas that are fenced; elected then, these give deleted records to consumers.
    """
    override_replaces: bool = True
    """A reassignment that overrides another replaces what that was to add and to remove (A34).

    In Kafka one that adds, or removes, none leaves the earlier one's marks, and these replicas go in the end.
    """
    completes_as_leader: bool = True
    """A group coordinator answers a commit only in the leader epoch in which it wrote it (KAFKA-20634).

    In Kafka up to 4.1 a broker that follows already, and has yet to resign, answers what HW passes, although
    it has cut the record.
    """
    answered_when: RecordIs = RecordIs.COMMITTED
    """What a controller of a quorum answers waits for its records; else a granted ISR may be lost (A36)."""
    applied_when: RecordIs = RecordIs.COMMITTED
    """Brokers get metadata that is committed; else a change may be lost, and another made (A36)."""
    own_record: bool = True
    """A new active controller first commits a record of its own (KAFKA-12619)."""
    newest_only: bool = True
    """A broker goes by no controller that is older than one it has known (A36)."""


CURRENT = Protocol()

AS_IS = replace(
    CURRENT,
    keeps_remote_leo=True,
    removed_leave_elr=False,
    override_replaces=False,
    join_needs_start=False,
    completes_as_leader=False,
)

# From version to version, backwards; each line names the later additions. Two things stay as today: ISR
# changes were writes to ZooKeeper that a leader waited for, so that no proposal was in flight (`maximal_isr`,
# `hw_on_alter_ok`); and unclean elections, a setting and no rule, were on by default up to 0.10.2.
_VERSION_2_1 = replace(
    AS_IS,
    truncation=Truncation.KAFKA7415,  # 2.8: the epoch of the last record in the fetch
    truncates_cache_always=False,  # 2.7, KAFKA-10706
    checks_fenced=False,  # 3.3, KIP-841
    checks_broker_epoch=False,  # 3.5, KIP-903
    hw_under_min_isr=True,  # 3.7, KAFKA-15583
    restart_leaves_isr=False,  # KRaft, KAFKA-1120
    elr=False,  # 4.1 for new clusters, KIP-966
)
_VERSION_2_0 = replace(
    _VERSION_2_1,
    truncation=Truncation.KIP279,  # 2.1, KAFKA-7415
    truncate_when=TruncateWhen.LEADER_ID_CHANGE,  # 2.1, KAFKA-7164
    epoch_entry=EpochEntryWhen.ON_FIRST_WRITE,  # 2.1, KAFKA-7415
    fences_fetch=False,  # 2.1, KIP-320
    fences_truncation=False,
    expand_needs_leso=False,  # 2.1, KAFKA-7128
)
_VERSION_0_11 = replace(_VERSION_2_0, truncation=Truncation.KIP101)  # 2.0, KIP-279
_VERSION_0_10_2 = replace(_VERSION_0_11, truncation=Truncation.HW)  # 0.11, KIP-101

_PRESETS = MappingProxyType(
    {
        "kafka-4.1": CURRENT,
        "kafka-4.1-as-is": AS_IS,
        "kafka-4.1-upgraded": replace(CURRENT, elr=False),
        "hw-truncation": _VERSION_0_10_2,
        "no-truncation": replace(CURRENT, truncation=Truncation.NONE),
        "kip101": _VERSION_0_11,
        "kip279": _VERSION_2_0,
        "kip320": _VERSION_2_1,
        "unclean": replace(CURRENT, unclean_election=True),
    }
)


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, in order of the documentation."""
    return tuple(_PRESETS)


def preset(name: str) -> Protocol:
    """Return a named protocol; KeyError with the known names otherwise."""
    if name not in _PRESETS:
        raise KeyError(f"no protocol {name!r}; known: {', '.join(_PRESETS)}")
    return _PRESETS[name]
