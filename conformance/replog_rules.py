"""By which rules the binding runs replog, and on which models each tier holds it to the spec."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from replog.core.protocol import CURRENT
from specchk.conform.binding import At

# The rules that this binding runs replog by.  A model that turns another one back is not for it.
TODAY = MappingProxyType({
    "truncation": "on_fetch", "epoch_entry": "on_election", "fence_fetch": True, "check_response": True,
    "check_response_epoch": True, "update_on_diverge": False, "hw_on_diverge": False,
    "response_hw": "either_one", "reset_remote": True, "hw_under_min_isr": False,
    "maximal_rule": "eager_expand", "expand_needs_hw": True, "expand_needs_leso": True,
    "check_partition_epoch": True, "check_fenced": True, "check_broker_epoch": True,
    "restart_after_fence": True, "unclean_election": False,
})  # fmt: skip
BROKER_RULES = replace(
    CURRENT, keeps_remote_leo=False, waits_for_caught_up=False, checks_fenced=False, checks_broker_epoch=False
)

SMOKE = (At("two_brokers", {"MaxOffset": "1", "MaxCrashes": "0"}),)
GATE = (
    At("two_brokers", {"MaxOffset": "1"}),
    At("page_cache_lost"),
    At("false_suspicion", {"MaxOffset": "1"}),
    At("slow_follower", {"MaxOffset": "1"}),
    At("two_must_have_it", {"MaxOffset": "1"}),
    At("three_epochs", {"MaxOffset": "1"}),
    At("two_brokers", {"MaxCrashes": "0", "acks": "one"}),
    At("slow_follower", suite="walks"),
)
EXHAUSTIVE = (
    At("two_brokers", {"MaxOffset": "1"}, "product"),
    At("false_suspicion", {"MaxOffset": "1"}, "product"),
    At("slow_follower", {"MaxOffset": "1"}, "product"),
    At("two_must_have_it", {"MaxOffset": "1"}, "product"),
)
