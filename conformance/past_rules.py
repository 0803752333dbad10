"""The binding to replog under earlier versions' rules: a rule disabled in a model is disabled in replog.

A flaw of the ledger is a model of replication.spec with one earlier rule, and replog has the same rule as
a switch of `Protocol`.  Here both are combined: replog under earlier rules is compared with
the spec's model of them, so that a preset is the version that it is named after.

Not here: rules that replog follows always (`SETTLED`); a model that turns one of these back is refused.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from binding import ReplogBinding
from replog.core.broker import follower, isr
from replog.core.broker.state import FetchPhase
from replog.core.protocol import EpochEntryWhen, MaximalIsr, Protocol, TruncateWhen, Truncation
from replog_cluster import Cluster, Rules
from replog_machines import DOWN
from replog_rules import TODAY
from specchk.conform.contract.binding import Answer, At, BindingError, Impossible, Mistake, action, project
from specchk.conform.contract.known_bad import BadCode, BadSpec
from specchk.ir.program import Program

SWITCHES = MappingProxyType({
    "fence_truncation": "fences_truncation", "check_response": "checks_response",
    "update_on_diverge": "updates_on_diverge", "drops_entries": "truncates_cache_always",
    "hw_under_min_isr": "hw_under_min_isr", "hw_after_alter": "hw_on_alter_ok",
    "waits_for_caught_up": "waits_for_caught_up", "expand_needs_hw": "expand_needs_hw",
    "expand_needs_leso": "expand_needs_leso",
    "check_fenced": "checks_fenced", "check_broker_epoch": "checks_broker_epoch", "elr": "elr",
})  # fmt: skip
# One switch of replog is two rules of the spec, the controller's and the leader's.
TOGETHER = (("check_fenced", "leader_checks_fenced"), ("check_broker_epoch", "leader_checks_epoch"))
TRUNCATION = MappingProxyType({
    "on_fetch": Truncation.FETCH, "kip279": Truncation.KAFKA7415, "kip101": Truncation.KIP101,
    "at_hw": Truncation.HW,
})  # fmt: skip
TRUNCATE_WHEN = MappingProxyType({
    "every_epoch": TruncateWhen.EVERY_EPOCH, "leader_change": TruncateWhen.LEADER_ID_CHANGE,
})  # fmt: skip
EPOCH_ENTRY = MappingProxyType({
    "on_election": EpochEntryWhen.ON_BECOME_LEADER, "on_first_write": EpochEntryWhen.ON_FIRST_WRITE,
})  # fmt: skip
MAXIMAL_RULE = MappingProxyType({
    "eager_expand": MaximalIsr.EAGER_EXPAND, "committed_only": MaximalIsr.NONE,
    "eager_shrink": MaximalIsr.EAGER_SHRINK,
})  # fmt: skip
SMOKE = (At("b9_diverging_fetch_counts"),)
GATE = (
    At("two_brokers", {"elr": "false", "MaxOffset": "0"}),         # kafka-4.1-upgraded
    At("b1_truncate_to_hw"),
    At("b3_fast_failover"),
    At("b9_diverging_fetch_counts"),
    At("b14_committed_isr_only"),
    At("b14_optimistic_shrink"),
    At("b30_joins_below_hw"),
    At("three_epochs", {"MaxOffset": "1", "drops_entries": "false"}),        # B23, both halves
    At("slow_follower", {"MaxOffset": "1", "MaxEpoch": "0", "hw_after_alter": "false"}),
    *(
        At(model, suite="walks")
        for model in (
            "b4_undefined_epoch", "b5_joins_before_epoch_start", "b6_missed_epoch", "b7_stale_leader_answers",
            "b11_committed_by_one", "b16_unclean_election", "b18_fetch_of_a_former_life", "b24_fenced_member",
            "remote_leo_kept",
        )
    ),
)  # fmt: skip
CONTROLS = (
    BadSpec("leaders take the LEO of a follower whose log diverges", "two_brokers",
            {"MaxOffset": "1", "MaxCrashes": "0", "update_on_diverge": "true"}),
    BadSpec("the entry of an epoch without a record stays", "three_epochs",
            {"MaxOffset": "1", "drops_entries": "false"}),
    BadSpec("HW stays where it was when the ISR has changed", "slow_follower",
            {"MaxOffset": "1", "MaxEpoch": "0", "hw_after_alter": "false"}),
    BadCode("followers of 0.10 ask their leader where to cut", follower.start_truncation,
            "if rules is Truncation.HW:", "if False:", "b1_truncate_to_hw"),
    BadCode("HW waits for the ISR before a shrink", isr.maximal_isr, "if rule is MaximalIsr.NONE:",
            "if rule is MaximalIsr.EAGER_SHRINK:", "b14_optimistic_shrink"),
    BadCode("a follower below HW joins no ISR", isr.may_join, "if rules.expand_needs_hw and", "if",
            "b30_joins_below_hw"),
)  # fmt: skip
# Rules that are not bound turned back.  Most have no switch in replog.  Where there is one: a fetch beyond
# the leader's log, which a fetch of another epoch may be, is one step of the spec and two requests of replog;
# without the compare-and-set it still refuses proposals of another leader epoch; the HW of a diverging answer
# and the truncation, between which consumers may read, are one step of its follower; and of a leader that
# restarts unnoticed in its epoch the spec has producers wait for what its former process wrote.
SETTLED = MappingProxyType({
    name: TODAY[name]
    for name in (
        "fence_fetch", "check_response_epoch", "response_hw", "hides_new_hw", "check_partition_epoch",
        "hw_on_diverge",
        "restart_after_fence", "unclean_leaves_elr", "elr_after_alter", "change_clears_elr",
        "leaderless_keep_elr", "min_isr_compared",
    )
})  # fmt: skip


def protocol_of(constants: dict[str, Any]) -> Protocol:
    """Return replog's rules for the rules of a model."""
    truncation = TRUNCATION[constants["truncation"]]
    # KAFKA-7415 changed both: when a leader notes its epoch, and the answer for an epoch before the first.
    if truncation is Truncation.KAFKA7415 and constants["epoch_entry"] == "on_first_write":
        truncation = Truncation.KIP279
    return Protocol(
        truncation=truncation,
        truncate_when=TRUNCATE_WHEN[constants["truncate_when"]],
        epoch_entry=EPOCH_ENTRY[constants["epoch_entry"]],
        maximal_isr=MAXIMAL_RULE[constants["maximal_rule"]],
        keeps_remote_leo=not constants["reset_remote"],
        **{switch: constants[name] for name, switch in SWITCHES.items()},
    )


class PastRulesBinding(ReplogBinding):
    """replog's cores under the rules of the model."""

    smoke, gate, exhaustive, controls = SMOKE, GATE, (), CONTROLS
    rules = SETTLED

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        mistakes = [
            Mistake(f"the model sets `{one}` and not `{other}`", "replog has one switch for both")
            for one, other in TOGETHER
            if self.constants[one] != self.constants[other]
        ]
        if self.constants["truncation"] not in TRUNCATION:
            hint = "a fetch beyond the leader's log is one step of the spec and two requests of replog"
            mistakes.append(Mistake("the model never truncates", hint))
        if mistakes:
            raise BindingError(tuple(mistakes))

    def cluster_rules(self) -> Rules:
        """Return the rules with the protocol of the earlier version."""
        made = super().cluster_rules()
        # Without rules it is a control's wrong spec, to compare with today's replog.
        return replace(made, protocol=protocol_of(self.constants)) if self.rules else made

    @action("truncate_to_leader")
    def truncate_to_leader(self, cluster: Cluster, follower: str) -> Answer:
        """Request the end of the own last epoch; a fetch of an earlier epoch may still be in flight."""
        broker = self.id(follower)
        state = cluster.state(broker)
        if state is None:
            return DOWN
        if state.following is None or state.following.phase is not FetchPhase.TRUNCATING:
            return Impossible("it does not truncate")
        before = cluster.take_fetch(broker)
        answer = super().truncate_to_leader(cluster, follower)
        if before is not None:
            cluster.put_fetch(broker, before)
        return answer

    @action("fall_behind")
    def fall_behind(self, cluster: Cluster, leader: str, follower: str) -> Answer:
        """Relevant only where HW waits for caught-up replicas."""
        if not self.constants["waits_for_caught_up"]:
            return Impossible("HW waits for nobody outside of the ISR")
        return super().fall_behind(cluster, leader, follower)

    @action("elect_unclean")
    def elect_unclean(self, cluster: Cluster, broker: str) -> Answer:
        """An operator accepts a loss of records, and requests this leader."""
        if not self.constants["unclean_election"]:
            return super().elect_unclean(cluster, broker)
        if cluster.image.leader_epoch == self.epochs[-1]:
            return Impossible("no more elections in this model")
        if cluster.is_fenced(self.id(broker)):
            return Impossible("an operator can prefer it, and the controller elects a live one")
        return self.elect_as(cluster, self.id(broker), is_unclean=True)

    @project
    def state(self, cluster: Cluster) -> dict[str, object]:
        """Return every variable of the spec."""
        state = super().state(cluster)
        if not self.constants["waits_for_caught_up"]:
            state["late"] = {name: set() for name in self.names}
        # Only a leader that compares incarnations can identify the sender of a fetch.
        if not self.constants["leader_checks_epoch"]:
            state["heard"] = {name: dict.fromkeys(self.names, 0) for name in self.names}
        return state
