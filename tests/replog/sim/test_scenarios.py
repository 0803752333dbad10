"""The scenario files have the actual output: worked examples F1-F9, the seeds' two failures, exclusions."""

from __future__ import annotations

import pytest

from replog.play import stories
from replog.sim.scenario import ScenarioError, difference, play, rewrite

FILES = [*stories().values()]


def test_every_worked_example_and_both_failure_stories_have_a_scenario():
    """F1-F9, S29 and S31 with the old rules and today's, B11, the skipped epoch, KIP-966: all exist."""
    names = {path.stem.split("_")[0] for path in FILES}
    assert {f"f{n}" for n in range(1, 10)} | {"s29", "s31", "b11", "skipped", "elr"} <= names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_gives_the_output_its_file_has(path, request):
    """Playing a scenario gives exactly its file; `--rewrite` writes the new output instead."""
    if request.config.getoption("--rewrite", default=False):
        rewrite(path)
    assert difference(path) == ""


def outputs(name: str) -> str:
    path = next(path for path in FILES if path.stem == name)
    return play(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "flag", "shows"),
    [
        ("a36_answered_early", " answered=appended", "client: acknowledged at offset 1"),
        ("a36_applied_early", " applied=appended", "broker 2: leader of epoch 1, LEO 1"),
        ("a36_no_own_record", " own-record=no", "controller 2: active in term 5"),
        ("a36_old_controller", " newest-only=no", "client: acknowledged at offset 0"),
    ],
)
def test_each_rule_of_the_controllers_matters_in_its_story(name, flag, shows):
    """The story's event occurs with the rule reverted, and with today's rules it does not."""
    text = next(path for path in FILES if path.stem == name).read_text(encoding="utf-8")
    assert text.count(flag) == 1
    assert shows in play(text)
    assert shows not in play(text.replace(flag, ""))


def test_a_controller_that_crashed_has_what_it_wrote():
    """And commands on controllers need several."""
    told = play(
        "> cluster controllers=3\n> start\n> crash-controller 2\n> restart-controller 2\n> replicate 1 to=2\n"
    )
    assert "controller 2: down, 6 records on disk" in told
    assert "controller 2: follows in term 2, 6 records, 6 committed: leader 0, epoch 0, ISR 0,1" in told
    with pytest.raises(ScenarioError, match="one controller"):
        play("> cluster\n> crash-controller 1\n")
    with pytest.raises(ScenarioError, match="controller 2 is down"):
        play("> cluster controllers=3\n> crash-controller 2\n> replicate 1 to=2\n")
    with pytest.raises(ScenarioError, match="no controllers to choose"):
        play("> cluster controllers=3\n> beat 0 controller=1\n")


def last_answer(name: str) -> str:
    return [line for line in outputs(name).splitlines() if line.startswith("client:")][-1]


def test_the_seeds_data_loss_happens_under_hw_truncation_and_not_today():
    """S29: m1 was acknowledged and is in no log at the end; under today's rules it is in both."""
    old, today = outputs("s29_loss"), outputs("s29_today")
    assert "client: acknowledged at offset 1" in old
    assert "client: acknowledged at offset 1" in today
    assert "m1" not in old.splitlines()[-1] + old.splitlines()[-2]
    assert "m1" in today.splitlines()[-2]


def test_the_seeds_divergence_happens_under_hw_truncation_and_not_today():
    """S31: two consumers read different records at offset 1; under today's rules the logs agree."""
    reads = [line for line in outputs("s31_divergence").splitlines() if line.startswith("client: read")]
    assert reads == ["client: read 0:m0 1:m9", "client: read 0:m0 1:m1"]
    assert last_answer("s31_today") == "client: read 0:m0 1:m9"
    assert "log [m0/0 m1/0], epochs (0,0) (2" not in outputs("s31_today")


def test_the_last_replica_standing_loses_data_without_elr_and_not_with_it():
    """B11: an acknowledged record is lost without ELR; with KIP-966 it is read back."""
    assert last_answer("b11_last_replica") == "client: read nothing"
    assert last_answer("b11_elr") == "client: read 0:m0"


def test_a_proposal_that_arrives_after_a_power_loss_costs_an_acknowledged_record_without_elr():
    """A record on three disks is lost after one of them failed; with KIP-966 it is read back."""
    assert last_answer("b11_late_shrink") == "client: read nothing"
    assert last_answer("b11_late_shrink_elr") == "client: read 0:m0"


def test_the_loss_of_every_copy_is_the_loss_of_the_record():
    """B17: a record only in page caches has no protection when all of them are lost."""
    assert last_answer("b17_every_copy") == "client: read nothing"


def test_a_cluster_killed_as_a_whole_is_led_again_under_kip_966_and_keeps_what_was_acknowledged():
    """Intact page caches: the last known leader serves the old record and acknowledges a new one."""
    assert last_answer("elr_kill_all") == "client: read 0:m0 1:m1"


def test_a_last_known_leader_that_lost_its_page_cache_costs_an_acknowledged_record():
    """KIP-966 elects it without checking the other disks, which had the record and cut it."""
    told = outputs("elr_power_all")
    assert "client: acknowledged at offset 0" in told
    assert "broker 0: follower of nobody in epoch 3, LEO 1" in told
    assert last_answer("elr_power_all") == "client: read nothing"
    assert told.splitlines()[-2].startswith("broker 0: follower of 2 in epoch 4, LEO 0")


def test_two_unnoticed_unclean_ends_cost_an_acknowledged_record_that_a_living_broker_has():
    """More than min.insync.replicas - 1 at a time: KIP-966 elects the last leader, the third truncates."""
    told = outputs("elr_two_unclean")
    assert "client: acknowledged at offset 0" in told
    assert last_answer("elr_two_unclean") == "client: read nothing"
    assert "broker 2: follower of 1 in epoch 3, LEO 0" in told


def test_a_leader_that_skips_an_epoch_loses_an_acknowledged_record():
    """Kept remote LEOs and skipped metadata together acknowledge a record that only the leader has."""
    told = outputs("skipped_epoch")
    assert "client: acknowledged at offset 0" in told
    assert last_answer("skipped_epoch") == "client: read nothing"


def test_a_leader_that_forgets_acknowledges_nothing_it_may_lose():
    """The same run with the defaults: the record is lost, too, but was never acknowledged."""
    assert "client: acknowledged" not in outputs("skipped_epoch_today")


def test_a_record_that_a_consumer_still_holds_is_not_called_missed():
    """Only a crash between commit and processing makes it one; what was never polled cannot be processed."""
    assert play("> deliver poll commit").splitlines()[1].startswith("processed none; never none;")
    assert play("> deliver poll commit crash").splitlines()[1].startswith("processed none; never m0;")
    with pytest.raises(ScenarioError, match="poll first"):
        play("> deliver poll commit crash process")


@pytest.mark.parametrize(
    "text", ["> no-such-command", "> fetch", "> produce x y", "stray output", "> fetch 7"]
)
def test_a_scenario_that_makes_no_sense_is_refused_with_its_line(text):
    """A wrong command names its line, and never surfaces as another exception."""
    with pytest.raises(ScenarioError, match="line 1"):
        play(text)
