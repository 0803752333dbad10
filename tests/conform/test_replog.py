"""replog conforms to spec/replication.spec, and a replog with one wrong rule does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from binding import ReplogBinding
from laws.sources import ROOT
from replog.core.broker import follower, isr, leader
from replog.core.broker.replica import Replica
from replog.core.controller.controller import Controller
from replog.core.log.epochs import EpochCache
from replog.core.messages import FetchReply
from replog.core.types import Error
from replog_rules import GATE
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, BindingError
from specchk.conform.gate.tiers import BUDGETS, parts_of, run_part
from specchk.conform.replay.divergence import differences, wanted
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import SuiteWalks, run_product, run_walks
from specchk.lang.frontend import check
from specchk.search.reference import search

SPEC = check(str(ROOT / "spec" / "replication.spec"))


def replayer(model: str, overrides: Mapping[str, str]) -> Replayer[Any]:
    return Replayer(ReplogBinding(instantiate(SPEC, model, overrides).program))


def test_every_edge_of_a_model_is_taken():
    """All states that the reference search finds, each with all of its steps and all forbidden ones."""
    bounds = {"MaxOffset": "1", "MaxCrashes": "0"}
    result = run_product(replayer("two_brokers", bounds))
    assert (result.divergence, result.vacuous, result.complete) == (None, "", True)
    found = search(instantiate(SPEC, "two_brokers", bounds).program)
    assert result.states == found.statistics.distinct
    assert sum(result.tally.left.values()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("model", ["two_brokers", "slow_follower", "false_suspicion", "two_must_have_it"])
def test_every_edge_of_a_larger_model_is_taken(model):
    """Crashes, proposals in flight, false suspicions and min.insync.replicas, one record long."""
    result = run_product(replayer(model, {"MaxOffset": "1"}))
    assert (result.divergence, result.vacuous, result.complete) == (None, "", True)
    assert sum(result.tally.left.values()) == 0


@pytest.mark.parametrize(
    ("model", "overrides"),
    [
        ("two_brokers", {}), ("slow_follower", {}), ("false_suspicion", {}), ("two_must_have_it", {}),
        ("one_record_at_a_time", {}), ("page_cache_lost", {}), ("two_brokers", {"acks": "one"}),
        ("three_brokers", {"MaxShrinks": "1", "MaxCrashes": "1", "MaxFences": "1"}),
    ],
)  # fmt: skip
def test_walks_find_nothing(model, overrides):
    """At the models' own bounds, where the product would take minutes."""
    result = run_walks(replayer(model, overrides), SuiteWalks(3, 15, 40))
    assert (result.divergence, result.vacuous) == (None, "")
    assert result.steps > 100


def test_a_restored_cluster_shares_only_machines_that_nobody_runs():
    """A snapshot, and the cluster restored from it, do not change each other."""
    binding = ReplogBinding(instantiate(SPEC, "two_brokers", {}).program)
    running = binding.start()
    assert binding.produce(running, "b1") == Accepted()
    kept = binding.keep(running)
    assert binding.produce(running, "b1") == Accepted()
    one, other = binding.back(kept), binding.back(kept)
    assert one.nodes.seen[1] is other.nodes.seen[1] is kept.nodes.seen[1]
    before = binding.state(kept)
    assert binding.crash(one, "b1") == Accepted()
    assert binding.fence_broker(one, "b1") == Accepted()
    assert binding.state(kept) == binding.state(other) == before != binding.state(one)
    assert [cluster.state(0) is None for cluster in (one, other, kept)] == [True, False, False]
    assert (running.state(0).log.leo, other.state(0).log.leo, kept.state(0).log.leo) == (2, 1, 1)
    assert other.controller is not kept.controller


def test_a_step_beyond_a_horizon_is_neither_taken_nor_probed():
    """The disabled instances of a state are those that each instance, taken alone, is forbidden."""
    at = replayer("two_brokers", {"MaxOffset": "1"})
    places, seen, beyond = [at.begin()], set(), 0
    while len(seen) < 60:
        place = places.pop(0)
        seen.add(place.state)
        enabled, disabled = at.spec.options(place.state)
        assert list(disabled) == [one for one in at.spec.instances if at.spec.forbids(place.state, one)]
        beyond += len(at.spec.instances) - len(enabled) - len(disabled)
        places += [after for step in enabled for after in at.take(place, *step) if after.state not in seen]
    assert beyond > 0


def test_a_model_of_older_rules_is_refused():
    """The binding runs replog by today's rules, and reports a model that disables one."""
    with pytest.raises(BindingError, match="sets `truncation`"):
        replayer("b1_truncate_to_hw", {})


def test_acks_of_a_leader_that_missed_an_epoch():
    """A broker that leads, misses an epoch and leads again answers the producers that still wait."""
    result = run_walks(replayer("three_epochs", {}), SuiteWalks(5, 60, 50))
    assert result.divergence is None


@pytest.mark.slow
def test_acks_of_a_leader_that_missed_epochs_and_crashed():
    """The same after more elections; after a crash it answers no producer."""
    result = run_walks(replayer("two_brokers", {"MaxCrashes": "2", "MaxEpoch": "3"}), SuiteWalks(0, 150, 80))
    assert result.divergence is None


# One wrong rule each, and a model in which it shows.  The flaw it mirrors is in brackets.


def hw_beyond_the_log(state, reply):
    state.log.hw = reply.high_watermark


def hw_is_the_highest(state, leading, now_ms):
    return max([state.log.leo, *(remote.leo for remote in leading.remotes.values())])


def hw_waits_for_nobody_new(state, leading):
    return leading.isr


def joins_below_hw(state, leading, follower_id, remote):
    return follower_id not in leading.isr and remote.leo >= 0


def cuts_at_hw(state, end):
    return state.log.hw, True


def cuts_at_the_leaders_end(state, end):
    return min(end.end_offset, state.log.leo), True


def takes_any_reply(state, following, correlation, phase):
    following.in_flight = -1
    return True


def fences_nothing(state, epoch):
    return Error.NONE


def fences_only_the_past(state, epoch):
    return Error.FENCED_LEADER_EPOCH if epoch < state.leader_epoch else Error.NONE


def keeps_the_cache(self, offset):
    return False


def swaps_without_comparing(self, image, request):
    return Error.NONE


def lets_anyone_join(self, member, broker_epoch):
    return True


def counts_nobody(state, remote, fetch_offset, leader_leo, now_ms):
    return False


def waits_for_nobody_outside(state, leading, now_ms):
    members = isr.maximal_isr(state, leading)
    return min([state.log.leo, *(r.leo for f, r in leading.remotes.items() if f in members)])


def waits_for_whoever_fetched(state, remote, now_ms):
    return remote.leo >= 0


def forgets_the_time(state, remote, fetch_offset, leader_leo, now_ms):
    changed, remote.leo = remote.leo != fetch_offset, fetch_offset
    return changed


def proposes_anyone(state, follower_id, remote):
    return remote.leo >= 0


def shrinks_while_pending(state, leading, now_ms, out):
    left = isr.lagging(state, leading, now_ms)
    if left:
        isr.propose(state, leading, tuple(one for one in leading.isr if one not in left), out)


def lists_its_hw(state, leading, request):
    return Error.NONE, state.log.hw


def reads_to_the_end(self, request):
    log = self.state.log
    batches = log.read(request.fetch_offset, log.leo, request.max_bytes)
    return FetchReply(request.correlation, Error.NONE, log.hw, log.log_start, batches)


def refuses_consumers(self, request):
    return FetchReply(request.correlation, Error.NOT_LEADER_OR_FOLLOWER)


OVERRIDES = {"slow_follower": {"MaxFences": "1"}}
MUTANTS = [
    (
        "KAFKA-3083: follower HW without min(LEO)",
        follower,
        "update_hw",
        hw_beyond_the_log,
        "one_record_at_a_time",
    ),
    ("HW from max instead of min", leader, "candidate_hw", hw_is_the_highest, "slow_follower"),
    ("KIP-497: HW over the committed ISR", isr, "maximal_isr", hw_waits_for_nobody_new, "slow_follower"),
    ("joins below HW", isr, "may_join", joins_below_hw, "slow_follower"),
    ("KIP-101: truncates to HW", follower, "truncation_point", cuts_at_hw, "three_epochs"),
    ("KIP-279: ignores the own epoch", follower, "truncation_point", cuts_at_the_leaders_end, "three_epochs"),
    ("KAFKA-18991: any reply is taken", follower, "take_reply", takes_any_reply, "three_epochs"),
    ("KIP-320: no fencing", leader, "fence", fences_nothing, "three_epochs"),
    ("no fencing of the future", leader, "fence", fences_only_the_past, "three_epochs"),
    ("KAFKA-10706: epoch cache kept", EpochCache, "truncate_from_end", keeps_the_cache, "two_brokers"),
    ("no compare-and-set", Controller, "_check_epochs", swaps_without_comparing, "slow_follower"),
    ("KIP-841, KIP-903: anyone joins", Controller, "_may_join", lets_anyone_join, "slow_follower"),
    ("fetches are no acknowledgement", isr, "note_fetch", counts_nobody, "slow_follower"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "owner", "name", "wrong", "model"), MUTANTS, ids=[one[0] for one in MUTANTS]
)
def test_a_replog_with_one_wrong_rule_diverges(what, owner, name, wrong, model, monkeypatch):
    """Each curated mutant is killed by random walks over a model in which its rule matters."""
    monkeypatch.setattr(owner, name, wrong)
    result = run_walks(replayer(model, OVERRIDES.get(model, {})), SuiteWalks(5, 250, 50))
    assert result.divergence is not None


FLAWS_OF_DEFAULTS = [  # the flaw, and the model, the action and a part of the state that the report names
    ("I3: the caught-up rule is off", leader, "candidate_hw", waits_for_nobody_outside,
     "false_suspicion", "become_leader", "hw[b"),
    ("I3: who is late is waited for", isr, "is_caught_up", waits_for_whoever_fetched,
     "slow_follower", "shrink_isr", "alter[b"),
    ("S44: a fetch of the end does not count as caught up", isr, "note_fetch", forgets_the_time,
     "slow_follower", "serve_fetch", "late[b"),
    ("KIP-841, KIP-903: the leader's own test is off", isr, "is_eligible", proposes_anyone,
     "false_suspicion", "serve_fetch", "alter[b"),
]  # fmt: skip
FLAWS_OF_ANSWERS = [  # the flaw, and the kind of divergence and the action that the report names
    ("KIP-207: the latest offset shows", leader, "list_offset", lists_its_hw, "accepted", "list_latest"),
    ("KIP-392: read to the end", Replica, "_read_as_follower", reads_to_the_end, "accepted", "read"),
    ("KIP-392: not read", Replica, "_read_as_follower", refuses_consumers, "refused", "read"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "owner", "name", "wrong", "model", "action", "field"),
    FLAWS_OF_DEFAULTS, ids=[one[0] for one in FLAWS_OF_DEFAULTS],
)  # fmt: skip
def test_a_flaw_of_the_defaults_is_reported_with_its_action_and_field(
    what, owner, name, wrong, model, action, field, monkeypatch
):
    """A planted wrong default diverges in the step that applies it."""
    monkeypatch.setattr(owner, name, wrong)
    one = replayer(model, {"MaxOffset": "1"})
    found = run_product(one).divergence
    assert found is not None
    assert found.step is not None
    changed = differences(one.program, found, wanted(one.program, found))
    assert found.step.action == action
    assert any(change.path.startswith(field) for change in changed)


BLIND_SPOTS = [  # that no class cover of the gate's models noticed before it had this one
    ("KIP-841, KIP-903: anyone joins", Controller, "_may_join", lets_anyone_join, "state"),
    ("KIP-497: a second proposal beside one", isr, "maybe_shrink", shrinks_while_pending, "raised"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "owner", "name", "wrong", "kind"), BLIND_SPOTS, ids=[one[0] for one in BLIND_SPOTS]
)
def test_the_gate_has_a_model_for_what_it_did_not_see(what, owner, name, wrong, kind, monkeypatch):
    """Fences beside shrinks, two shrinks, and nothing written: the ISR protocol alone."""
    monkeypatch.setattr(owner, name, wrong)
    (at,) = [at for at in GATE if at.bounds.get("MaxShrinks") == "2"]
    (part,) = parts_of(ReplogBinding, SPEC, [at])
    found = run_part(part, BUDGETS["gate"]).divergence
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize(
    ("what", "owner", "name", "wrong", "kind", "action"),
    FLAWS_OF_ANSWERS, ids=[one[0] for one in FLAWS_OF_ANSWERS],
)  # fmt: skip
def test_a_wrong_answer_to_a_consumer_is_reported(what, owner, name, wrong, kind, action, monkeypatch):
    """No state shows it: the answer itself is the step, which the spec has or does not have."""
    monkeypatch.setattr(owner, name, wrong)
    found = run_product(replayer("read_by_consumers", {})).divergence
    assert found is not None
    assert found.step is not None
    assert (found.kind, found.step.action) == (kind, action)


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted({one[4] for one in MUTANTS}))
def test_the_walks_that_kill_mutants_find_nothing_without_them(model):
    """The control of the test above: it is the wrong rule that diverges."""
    assert run_walks(replayer(model, OVERRIDES.get(model, {})), SuiteWalks(5, 250, 50)).divergence is None
