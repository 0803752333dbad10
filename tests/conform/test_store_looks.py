"""The gate's checks of replog's store when the power fails in a call, by errors that only these show.

The binding's controls are held to classes of steps, in which no call is interrupted.
"""

from __future__ import annotations

import pytest

from laws.sources import ROOT
from replog.store.partition import PartitionLog
from replog.store.recovery.recovery import save_survey
from replog.store.segments.segment import Segment
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.known_bad import BadCode, planted
from specchk.conform.contract.load import load_binding
from specchk.conform.replay.faults import run_faults
from specchk.conform.replay.replay import Replayer
from specchk.lang.frontend import check

ONE_EPOCH = {"MaxEpoch": "0"}
ERRORS = (
    BadCode("a new segment has no durable name", PartitionLog._roll, "self._names_synced = False", "pass",
            "power_in_writes", ONE_EPOCH),
    BadCode("a start leaves names unsynced", save_survey, "fs.fsync_dir(directory)", "pass",
            "power_in_writes", ONE_EPOCH),
    BadCode("retention leaves names unsynced", PartitionLog.advance_log_start,
            "self._fs.fsync_dir(self._directory)", "pass", "power_in_retention"),
    BadCode("a log goes before its indexes", Segment.delete, "(*INDEX_SUFFIXES, LOG_SUFFIX)",
            "(LOG_SUFFIX, *INDEX_SUFFIXES)", "power_in_retention"),
    BadCode("a reset does not list what it drops", PartitionLog.reset, "_removals(self._segments)", "()",
            "power_in_resets"),
    BadCode("a log is cut before what follows goes", PartitionLog._cut,
            "while self._segments[-1] is not holder:",
            "holder.truncate(contents)\n    while self._segments[-1] is not holder:", "power_in_cuts"),
)  # fmt: skip


@pytest.mark.parametrize("mistake", ERRORS, ids=lambda mistake: mistake.name.replace(" ", "-"))
def test_an_order_of_writes_is_compared(mistake: BadCode) -> None:
    """Each is in a suite of the gate, which passes without it."""
    cls = load_binding(ROOT / "conformance" / "store" / "binding.py")
    suites = [(at.model, dict(at.bounds)) for at in cls.gate if at.suite == "faults"]
    assert mistake.model in [model for model, _ in suites]
    program = instantiate(
        check(str(ROOT / "spec" / "store.spec")), mistake.model, dict(mistake.bounds)
    ).program
    with planted(mistake):
        found = run_faults(Replayer(cls(program))).divergence
    assert found is not None
    assert found.kind == "outside"
