"""The oracle: what each rule finds in what a client says, and what it leaves alone."""

import pytest

from replog.run.serve.judging import judge

ALL = "promises idempotent exactly-once"
READ = ("got 0 0 a", "done 0 0", "got 0 1 b", "done 0 1")
LOG = ("a", "b", "c")


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        (["sent d", "acked d"], "lost"),
        (["got 0 0 b"], "invented"),
        (["got 0 3 d"], "invented"),
        (["got 0 0 a", "got 0 1 b", "done 0 1"], "skipped"),
        (["got 0 0 a", "committed 0 1"], "skipped"),
        ([*READ, "committed 0 2", "got 0 1 b"], "position"),
        ([ALL, *READ, "done 0 1"], "repeated"),
        ([ALL, "sent b", "acked b", "sent a", "acked a"], "order"),
    ],
)
def test_each_rule_is_found(lines, rule):
    assert [finding.rule for finding in judge(lines, {0: LOG})] == [rule]


def test_a_record_is_in_the_log_once_if_the_producer_says_so():
    lines = ["sent a", "acked a"]
    assert not judge(lines, {0: ("a", "a")})
    (finding,) = judge([ALL, *lines], {0: ("a", "b", "a")})
    assert str(finding) == "twice: a is in the log twice"


@pytest.mark.parametrize(
    "lines",
    [
        [ALL, "sent a", "acked a", "sent b", "acked b", "sent c", "failed c", *READ, "committed 0 2"],
        # Lines of another kind.
        ["got 3 records", "done with it, finally", "committed 0 -1", "got", "acked"],
        # At least once: again from the committed position on.
        [*READ, "committed 0 1", "got 0 1 b", "done 0 1", "committed 0 2"],
        ["sent d", "failed d", "something else", ""],
        # Read, and not processed yet.
        [*READ, "got 0 2 c"],
    ],
)
def test_what_is_right_is_no_finding(lines):
    assert judge(lines, {0: LOG}) == []


def test_partitions_are_judged_each_by_its_log():
    lines = ["acked x", "got 1 0 x", "done 1 0", "committed 1 1"]
    assert judge(lines, {0: LOG, 1: ("x",)}) == []
    assert {finding.rule for finding in judge(lines, {0: LOG})} == {"lost", "invented"}
