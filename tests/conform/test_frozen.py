"""A frozen divergence is a test: it fails while the implementation is wrong, and passes once it is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bank import BankBinding, bank
from broken import BROKEN, ForgetsOnDisk
from msgspec.structs import replace

import binding as replog_binding
from laws.sources import ROOT
from replog.core.broker import follower
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform import frozen as freezing
from specchk.conform.contract.binding import At, Binding
from specchk.conform.frozen import CannotFreeze, follow, frozen
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.place import Diverged, Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import StaleCase
from specchk.conform.replay.shrink import shrunk
from specchk.conform.replay.suites import SuiteWalks, run_product, run_walks
from specchk.lang.frontend import check

HERE = Path(__file__).parent
BANK = bank()
FROZEN = [each[0] for each in BROKEN]


def divergence_of(cls: type[BankBinding]) -> Divergence:
    divergence = run_product(Replayer(cls(BANK.program))).divergence
    assert divergence is not None
    return divergence


def part_of(made: Binding[Any], instance: Instance = BANK) -> Part:
    return Part(At(instance.program.model), instance, made)


def run(text: str, target: Path, monkeypatch: pytest.MonkeyPatch, cls: type[BankBinding] | None) -> None:
    """Run a frozen test in this process, on a binding that its file does not have alone."""
    if cls is not None:
        monkeypatch.setattr(freezing, "load_binding", lambda path: cls)
        monkeypatch.setattr(freezing, "check", lambda path: BANK.lowering.ground.checked)
    names: dict[str, Any] = {"__file__": str(target), "__name__": "frozen"}
    exec(compile(text, str(target), "exec"), names)
    names["test_the_implementation_follows_the_spec"]()


@pytest.mark.parametrize("cls", FROZEN, ids=lambda cls: cls.__name__)
def test_it_fails_where_the_implementation_is_wrong(cls, tmp_path, monkeypatch):
    """For every kind of divergence, as the suite reports it; and passes on the correct bank."""
    target, divergence = tmp_path / "test_frozen.py", divergence_of(cls)
    text = frozen(part_of(cls(BANK.program)), HERE / "bank.py", divergence, target)
    with pytest.raises(AssertionError, match=r"^diverges: (?s:.)*frozen path"):
        run(text, target, monkeypatch, cls)
    run(text, target, monkeypatch, BankBinding)


@pytest.mark.system
def test_the_same_divergence_is_written_in_the_same_bytes(lossy, tmp_path):
    """In other processes too, whatever the order of their sets; pytest runs it, and fails with the report."""
    texts, target = set(), tmp_path / "test_frozen.py"
    for seed in ("1", "2"):
        asked = [str(lossy), "--suite", "product", "--freeze", str(target)]
        env = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-m", "specchk", "conform", *asked], check=False, env=env)
        assert done.returncode == 13
        texts.add(target.read_bytes())
    assert len(texts) == 1
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(target)]
    tested = subprocess.run(again, check=False, capture_output=True, text=True, env=env)
    assert "!! balance[a2]: the spec has 4, the implementation 3" in tested.stdout


def test_a_fault_inside_a_step_is_not_frozen(tmp_path):
    """No path of steps repeats it."""
    fault = replace(divergence_of(FROZEN[0]), kind="fault")
    with pytest.raises(CannotFreeze, match="struck inside a step"):
        frozen(part_of(BankBinding(BANK.program)), HERE / "bank.py", fault, tmp_path / "test_frozen.py")


def test_a_path_of_another_spec_is_named():
    """A step that the spec no longer enables there."""
    with pytest.raises(StaleCase, match="is not enabled at its place"):
        follow(ROOT / "docs" / "two_phase" / "binding.py", "two", {}, [("no_such_action", 0)])


def test_a_disk_that_forgets_is_frozen(tmp_path, monkeypatch):
    """The files on disk are reopened at each place of the path."""
    made = ForgetsOnDisk(BANK.program)
    replayer = Replayer(made)
    toss = next(each for each in replayer.spec.instances if each.label.action == "toss")
    start = replayer.begin()
    place = replayer.take(start, toss, replayer.spec.allowed(start.state, toss))[0]
    with pytest.raises(Diverged) as caught:
        replayer.check_reopened(place)
    divergence = shrunk(Replayer(made), caught.value.divergence)
    assert (divergence.kind, [step.action for step in divergence.trace.steps]) == ("reopened", ["toss"])
    target = tmp_path / "test_frozen.py"
    text = frozen(part_of(made), HERE / "broken.py", divergence, target)
    with pytest.raises(AssertionError, match="coin: the spec has"):
        run(text, target, monkeypatch, ForgetsOnDisk)


def test_replogs_binding_can_be_frozen(monkeypatch, tmp_path):
    """It passes on the unchanged replog, and fails with KAFKA-3083."""
    instance = instantiate(check(str(ROOT / "spec" / "replication.spec")), "one_record_at_a_time")
    right = follower.update_hw

    def hw_beyond_the_log(state, reply):
        state.log.hw = reply.high_watermark

    monkeypatch.setattr(follower, "update_hw", hw_beyond_the_log)
    made: Binding[Any] = replog_binding.ReplogBinding(instance.program)
    divergence = run_walks(Replayer(made), SuiteWalks(5, 250, 50)).divergence
    assert divergence is not None
    short = shrunk(Replayer(made), divergence)
    target = tmp_path / "test_frozen.py"
    text = frozen(part_of(made, instance), ROOT / "conformance" / "binding.py", short, target)
    with pytest.raises(AssertionError, match=r"apply_response\(b2\)"):
        run(text, target, monkeypatch, None)
    monkeypatch.setattr(follower, "update_hw", right)
    run(text, target, monkeypatch, None)
