"""Faults inside steps, and replog on its real store."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from binding import ReplogBinding
from laws.sources import ROOT
from on_files import FilesBinding
from replog.core.effects import Effect, StoreHighWatermark, Truncate
from replog.run.files import FileStorage
from replog.store.files.errors import DamagedLogError
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import BindingError, OutsideSpec
from specchk.conform.contract.load import load_binding
from specchk.conform.replay.faults import run_faults
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.lang.frontend import check

SPEC = check(str(ROOT / "spec" / "replication.spec"))
SMALL = {"MaxOffset": "1"}


def replayer(cls: type[ReplogBinding], model: str, overrides: Mapping[str, str]) -> Replayer[Any]:
    return Replayer(cls(instantiate(SPEC, model, overrides).program))


@pytest.mark.slow
def test_a_crash_in_any_disk_change_of_a_whole_model():
    """All 10 875 states of the main model, one record long; `make gate` has those of one epoch."""
    result = run_faults(replayer(FilesBinding, "two_brokers", SMALL))
    assert (result.divergence, result.vacuous, result.complete) == (None, "", True)


def test_a_step_that_a_crash_finds_half_done_diverges(monkeypatch):
    """A truncation that drops the whole log and writes the rest again passes every crash between steps."""
    whole = FileStorage._perform

    def in_two(storage: FileStorage, effect: Effect) -> None:
        log = storage._log()
        if isinstance(effect, Truncate) and effect.offset > 0:
            kept = b"".join(log.read(base, 1) for base in range(effect.offset))
            log.truncate_to(0)
            log.append_as_follower(kept)
        else:
            whole(storage, effect)

    monkeypatch.setattr(FileStorage, "_perform", in_two)
    result = run_faults(replayer(FilesBinding, "two_brokers", {}), limit=4000)
    assert result.divergence is not None
    assert result.divergence.kind == "fault"
    struck = r"crash\(b2\) struck inside apply_response\(b2\), in `(write|fsync|truncate|create|rename) .*`\n"
    assert re.match(struck, result.divergence.reason)


def fails(*_: Any) -> Any:
    raise DamagedLogError("planted")


def differs(*_: Any) -> Any:
    raise OutsideSpec("planted")


@pytest.mark.parametrize(("failure", "kind"), [(fails, "raised"), (differs, "outside")])
def test_whatever_a_store_does_after_a_fault_is_a_finding(failure, kind, monkeypatch):
    """A truncation that is repeated after a power failure, and raises, is a divergence and no traceback."""
    cls = load_binding(ROOT / "conformance" / "store" / "binding.py")
    program = instantiate(check(str(ROOT / "spec" / "store.spec")), "power_in_cuts", {}).program
    machine = sys.modules["store_machine"].Machine
    monkeypatch.setattr(machine, "_cut_again", failure)
    found = run_faults(Replayer(cls(program))).divergence
    assert found is not None
    assert found.kind == kind
    assert found.reason.startswith("where lose_power() struck inside truncate(")
    assert "planted" in found.reason.removeprefix("where lose_power() struck inside truncate(")


def test_without_faults_that_strike_the_suite_is_vacuous(monkeypatch):
    """A fault plan that never fires is not a success."""
    monkeypatch.setattr(FilesBinding, "dies", _never)
    result = run_faults(replayer(FilesBinding, "two_brokers", SMALL), limit=50)
    assert result.vacuous == "no fault struck inside a step"


def _never(self, cluster, broker, moment, step):
    return False


_never._specchk_binds = FilesBinding.dies._specchk_binds


def test_a_binding_without_interruptions_is_told_so():
    with pytest.raises(BindingError, match="no interruption"):
        run_faults(replayer(ReplogBinding, "two_brokers", SMALL))


def test_every_edge_of_a_model_is_taken_on_files():
    """The real store under the cores: the disk and the spec agree at every state."""
    result = run_product(replayer(FilesBinding, "two_brokers", {**SMALL, "MaxCrashes": "0"}))
    assert (result.divergence, result.vacuous, result.complete, result.states) == (None, "", True, 300)


def test_a_checkpoint_that_is_not_written_is_found_on_files(monkeypatch):
    """The store's part of the binding has power: the loss of one of its writes diverges."""
    whole = FileStorage._perform

    def forgets(storage: FileStorage, effect: Effect) -> None:
        if not isinstance(effect, StoreHighWatermark):
            whole(storage, effect)

    monkeypatch.setattr(FileStorage, "_perform", forgets)
    result = run_product(replayer(FilesBinding, "two_brokers", SMALL), limit=2000)
    assert result.divergence is not None
    assert result.divergence.step is not None
    assert result.divergence.step.action == "checkpoint_hw"


def test_models_with_power_losses_are_not_for_files():
    with pytest.raises(BindingError, match="power losses"):
        replayer(FilesBinding, "page_cache_lost", {})
