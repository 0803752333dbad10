"""Snapshots of a partition share the parts that handle no event; this hides no bug.

A bug of `hidden_states` is planted twice: under the bindings as they are, and with whole copies and every
log read again.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hidden_states import IN_MEMORY, ON_FILES, Bug

from laws.sources import ROOT
from replog.core.log.logview import LogView
from replog_controlled import Shared
from replog_partition import Disk
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.load import load_binding
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.lang.frontend import check

MODELS = MappingProxyType({
    "log_start": ("slow_follower", {"MaxOffset": "1", "MaxEpoch": "0", "MaxShrinks": "1"}),
    "reassignment": ("removed_and_added", {"MaxVersion": "5"}),
})  # fmt: skip
PLACES = 60
BUGS = MappingProxyType({**IN_MEMORY, **ON_FILES})


def bound(folder: str) -> Binding[Any]:
    program = instantiate(check(str(ROOT / "spec" / f"{folder}.spec")), *MODELS[folder]).program
    return load_binding(ROOT / "conformance" / folder / "binding.py")(program)


def found(binding: Binding[Any]) -> tuple[Any, ...] | None:
    """The divergence of the first states of a model: its kind, its step and its depth."""
    divergence = run_product(Replayer(binding), PLACES).divergence
    if divergence is None:
        return None
    return divergence.kind, divergence.step and divergence.step.action, len(divergence.trace.steps)


def copy_whole(patch: pytest.MonkeyPatch) -> None:
    """Every snapshot has its own copies of all parts at once, and a start reads its disk."""
    copy = Shared.copy

    def whole(self: Shared[Any]) -> Shared[Any]:
        twin = copy(self)
        assert all(twin[number] is not part for number, part in enumerate(self.seen))
        return twin

    def read(self: Disk) -> LogView:
        return self._storage.copy().recover().log

    patch.setattr(Shared, "copy", whole)
    patch.setattr(Disk, "recovered", read)


def found_with_whole_copies(binding: Binding[Any], bug: Bug) -> tuple[Any, ...] | None:
    with pytest.MonkeyPatch.context() as patch:
        copy_whole(patch)
        bug(patch)
        return found(binding)


# The bugs that the first states show, by either kind of copy.
BOTH = (
    "remotes of a leader are shared", "the leader's state is shared", "the log is shared",
    "the batches are shared", "the epoch cache is shared", "the state of a replica is shared",
    "the controller's partitions are shared", "the high watermark is a class's",
    "messages are counted in a module", "a controller never forgets whom it fenced",
)  # fmt: skip
SHOWN = MappingProxyType({
    "log_start": (*BOTH, "the fetcher is shared", "copies have one disk"),
    "reassignment": BOTH,
})  # fmt: skip


@pytest.mark.system
@pytest.mark.parametrize(("folder", "name"), [(folder, name) for folder in SHOWN for name in SHOWN[folder]])
def test_a_bug_is_found_as_with_whole_copies(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """State that branches share: the same divergence, at the same step, at the same depth."""
    binding = bound(folder)
    expected = found_with_whole_copies(binding, BUGS[name])
    BUGS[name](monkeypatch)
    assert found(binding) == expected
    assert expected is not None


@pytest.mark.parametrize("folder", MODELS)
def test_what_is_run_is_the_cluster_s_own(folder: str) -> None:
    """The basis of the comparison: a used part belongs to one cluster, the others to several."""
    cluster = bound(folder).start()
    twin = cluster.copy()
    assert twin.brokers.seen[0] is cluster.brokers.seen[0]
    before = cluster.brokers.seen[0]
    assert twin.brokers[0] is not before
    assert cluster.brokers[0] is not before, "the snapshot may be restored again"
    assert twin.controller is not cluster.registry
    assert twin.disks.seen[0] is cluster.disks.seen[0]
