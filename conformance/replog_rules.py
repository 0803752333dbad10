"""The rules under which the binding runs replog, the checks of each tier, and the gate's controls."""

from __future__ import annotations

from types import MappingProxyType

from replog.core.broker import follower, leader
from specchk.conform.contract.binding import At
from specchk.conform.contract.known_bad import BadCode, BadSpec

# The rules that this binding runs replog by.  A model that turns another one back is not for it.
TODAY = MappingProxyType({
    "truncation": "on_fetch", "epoch_entry": "on_election", "fence_fetch": True, "check_response": True,
    "check_response_epoch": True, "update_on_diverge": False, "hw_on_diverge": False, "drops_entries": True,
    "response_hw": "either_one", "reset_remote": True, "hw_under_min_isr": False, "hw_after_alter": True,
    "maximal_rule": "eager_expand", "waits_for_caught_up": True, "expand_needs_hw": True,
    "expand_needs_leso": True, "check_partition_epoch": True, "check_fenced": True,
    "check_broker_epoch": True, "leader_checks_fenced": True, "leader_checks_epoch": True,
    "hides_new_hw": True, "restart_after_fence": True, "unclean_election": False, "elr": True,
    "unclean_leaves_elr": True, "elr_after_alter": "next", "change_clears_elr": True,
    "leaderless_keep_elr": True, "min_isr_compared": True,
})  # fmt: skip

SMOKE = (At("two_brokers", {"MaxOffset": "1", "MaxCrashes": "0"}),)
GATE = (
    At("page_cache_lost"),
    At("power_loss_and_crash"),
    At("cut_and_lost"),
    At("acknowledged_then_cut"),
    At("two_brokers", {"MaxOffset": "1"}),
    At("one_record_at_a_time"),
    At("three_epochs"),
    At("three_brokers"),
    At("false_suspicion", {"MaxOffset": "1"}),
    At("slow_follower", {"MaxOffset": "1"}),
    At("two_must_have_it", {"MaxOffset": "1"}),
    At("two_brokers", {"MaxCrashes": "0", "acks": "one"}),
    At("read_by_consumers"),
    At("slow_follower", {"MaxOffset": "0", "MaxFences": "1", "MaxShrinks": "2"}),
    At("two_crashes"),
    At("two_brokers", {"MaxOffset": "0", "acks": "one"}),
    At("elected_from_elr"),
    At("elected_after_clean_stops"),
    At("elr_and_isr"),
    At("another_minimum"),
    At("slow_follower", suite="walks"),
    At("slow_follower", {"MaxOffset": "1", "MaxEpoch": "0"}, "lassos"),
)
EXHAUSTIVE = (
    At("page_cache_lost", {"MaxCrashes": "2", "MaxShrinks": "0"}),
    At("two_brokers", {"MaxOffset": "1"}, "product"),
    At("false_suspicion", {"MaxOffset": "1"}, "product"),
    At("slow_follower", {"MaxOffset": "1"}, "product"),
    At("two_must_have_it", {"MaxOffset": "1"}, "product"),
)
SMALLEST = MappingProxyType({"MaxOffset": "1", "MaxCrashes": "0"})
CONTROLS = (
    BadSpec(
        "leaders take the LEO of a follower whose log diverges", "two_brokers",
        {**SMALLEST, "update_on_diverge": "true"},
    ),
    BadCode(
        "followers take the end of their log for the HW", follower.update_hw,
        "assign_hw(reply.high_watermark)", "assign_hw(state.log.leo)", "two_brokers", SMALLEST,
    ),
    # In other functions: one that is moved leaves the others to show that the gate can fail.
    BadCode(
        "leaders do not wait for a follower that never fetched", leader.candidate_hw,
        "if remote.leo >= lowest:", "if remote.leo >= lowest or remote.leo < 0:", "two_brokers", SMALLEST,
    ),
    BadCode(
        "records are acknowledged before they are committed", leader.finish_produce,
        "if state.log.hw >= required:", "if True:", "two_brokers", SMALLEST,
    ),
)  # fmt: skip
