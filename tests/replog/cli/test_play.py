"""`replog play`: stories by name and from files, the picture at the end, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from replog.cli import run
from replog.play import stories

LINES = """\
> cluster brokers=2 min-isr=1
> start
> produce 0 a count=2 acks=1
> fetch 1
> fetch 1
> produce 0 b acks=1
> crash 1
"""


def test_the_list_has_every_story_with_a_title(capsys):
    """One line for each, in order of name."""
    assert run(["play"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(stories())
    assert all(len(line.split()) > 4 and len(line) < 120 for line in lines)


@pytest.mark.parametrize("name", ["f1_two_rounds", "f7_placement", "s29_loss"])
def test_a_story_is_its_file_and_a_picture_of_the_logs(name, capsys):
    """The output begins with the file; formulas without a cluster have no picture."""
    assert run(["play", name]) == 0
    shown = capsys.readouterr().out
    text = stories()[name].read_text(encoding="utf-8")
    assert shown.startswith(text)
    assert shown.removeprefix(text).startswith("\noffset ") is (name != "f7_placement")


def test_the_picture_has_high_watermarks_batches_and_what_a_dead_broker_has_on_disk(tmp_path, capsys):
    """Records to the left of the mark are below that broker's HW; a checkpoint was never written here."""
    path = tmp_path / "own.txt"
    path.write_text(LINES, encoding="utf-8")
    assert run(["play", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "offset        0       2",
        "broker 0      a*2/0 | b/0    leader of epoch 0",
        "broker 1    | a*2/0          down",
    ]


def test_records_that_differ_are_named(capsys):
    """S31: both brokers have another record at offset 1, one of them on its disk."""
    assert run(["play", "s31_divergence"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "broker 0      m0/0   m1/0 |  leader of epoch 2",
        "broker 1      m0/0 | m9/1    down",
        "not the same at offset 1",
    ]


def test_a_fast_failover_diverges_by_the_rules_of_its_time_only(capsys):
    """B3: under KIP-101 another record at offset 0 stays; today it is truncated."""
    assert run(["play", "b3_fast_failover"]) == run(["play", "b3_today"]) == 0
    assert capsys.readouterr().out.count("\nnot the same at offset 0\n# B3 under today's rules") == 1


def test_outputs_are_compared_with_the_file(tmp_path, capsys):
    """0 and no output if they agree, otherwise 1 and the differences."""
    assert run(["play", "f4_epoch_ends", "--compare"]) == 0
    assert capsys.readouterr().out == ""
    path = tmp_path / "wrong.txt"
    path.write_text("> place brokers=2 partitions=1 replicas=1\np0: 1\n", encoding="utf-8")
    assert run(["play", "--compare", str(path)]) == 1
    assert "-p0: 1\n+p0: 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 2, "neither a story nor a file"),
        (b"> nonsense", 1, "line 1: no command 'nonsense'"),
        (b"\xff", 1, "utf-8"),
    ],
)
def test_what_cannot_be_played_is_refused(content, code, words, tmp_path: Path, capsys):
    """A wrong name, a wrong command with its line, a file that is not text."""
    path = tmp_path / "story.txt"
    if content is not None:
        path.write_bytes(content)
    assert run(["play", str(path)]) == code
    assert words in capsys.readouterr().err
