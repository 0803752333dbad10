"""Machines of a snapshot are copied at their first use; this hides no bug.

Each bug of `hidden_states` is planted twice: under the binding as it is, and with whole copies that are all
projected after a refused step.
"""

from __future__ import annotations

from typing import Any

import pytest
from hidden_states import IN_MEMORY, ON_FILES, Bug

from binding import ReplogBinding
from laws.sources import ROOT
from on_files import FilesBinding
from replog_cluster import Cluster
from specchk.compile.instantiate import instantiate
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import run_product
from specchk.lang.frontend import check

SPEC = check(str(ROOT / "spec" / "replication.spec"))
# A step before changes the controller of what was kept.  It is noticed at the first refused step that runs
# the controller, and with projections at the first that is refused by anybody.
NOTICED_LATER = frozenset({"the controller's brokers are shared"})
# Not found in the first states, by either kind of copy: there no leader holds a fetch back.
NOT_FOUND = frozenset({"fetches that wait are shared"})


def found(cls: type[ReplogBinding], limit: int) -> tuple[Any, ...] | None:
    """The divergence of the first states of a model: its kind, its step and its depth."""
    program = instantiate(SPEC, "two_brokers", {"MaxOffset": "1"}).program
    divergence = run_product(Replayer(cls(program)), limit).divergence
    if divergence is None:
        return None
    return divergence.kind, divergence.step and divergence.step.action, len(divergence.trace.steps)


def copy_whole(patch: pytest.MonkeyPatch) -> None:
    """Every copy of a cluster has its own copies of all machines and the controller at once."""
    copy = Cluster.copy

    def whole(self: Cluster) -> Cluster:
        twin = copy(self)
        assert all(twin.nodes[broker] is not node for broker, node in enumerate(self.nodes.seen))
        assert twin.controller is not None
        return twin

    patch.setattr(Cluster, "copy", whole)


def found_with_whole_copies(cls: type[ReplogBinding], bug: Bug, limit: int) -> tuple[Any, ...] | None:
    with pytest.MonkeyPatch.context() as patch:
        copy_whole(patch)
        patch.setattr(Replayer, "_is_unchanged", lambda *_: False)
        bug(patch)
        return found(cls, limit)


@pytest.mark.system
@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_bug_is_found_with_shared_machines_as_with_whole_copies(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State that branches share: the same divergence, at the same step, at the same depth."""
    expected = found_with_whole_copies(ReplogBinding, IN_MEMORY[name], 300)
    IN_MEMORY[name](monkeypatch)
    divergence = found(ReplogBinding, 300)
    if name in NOTICED_LATER and expected and divergence:
        assert (divergence[0], divergence[2]) == (expected[0], expected[2])
    else:
        assert divergence == expected
    assert (expected is None) == (name in NOT_FOUND)


@pytest.mark.system
@pytest.mark.parametrize("name", ON_FILES)
def test_a_bug_of_files_is_found_as_with_whole_copies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The projection opens the files of a shared machine; the effects of that are seen as well."""
    expected = found_with_whole_copies(FilesBinding, ON_FILES[name], 80)
    ON_FILES[name](monkeypatch)
    assert found(FilesBinding, 80) == expected
    assert expected is not None


def test_a_machine_that_is_reached_is_the_cluster_s_own() -> None:
    """The basis of the comparison: whole copies share nothing, the others share the unused machines."""
    program = instantiate(SPEC, "two_brokers", {"MaxOffset": "1"}).program
    cluster = ReplogBinding(program).start()
    first = cluster.copy()
    twin = first.copy()
    assert twin.nodes.seen[0] is first.nodes.seen[0]
    assert twin.nodes[0] is not first.nodes.seen[0]
    assert twin.controller is not first.controller
