"""What real nodes of go.etcd.io/raft do is explained by etcd_raft.spec; known bugs and planted flaws are not.

The nodes are driven by conformance/etcd_raft/go; `sample.ndjson` is a run of v3.7.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from conformance.etcd_raft.flaws import FLAWS, HISTORY, Bug
from conformance.etcd_raft.harness import NEWEST, Flaw, Unavailable, build, drive
from conformance.etcd_raft.raft_tracing import RaftTracing

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.recording import parse
from specchk.conform.recordings.validate import Explained, Validator
from specchk.lang.frontend import check

SAMPLE = (ROOT / "conformance" / "etcd_raft" / "sample.ndjson").read_text(encoding="utf-8").splitlines()

# In 1 and 3 of 12 runs, which are others each time: releases up to v3.5.0 draw timeouts by the clock.
RARE = {"etcd#9204", "etcd#8243"}


@cache
def validator(constants: tuple[tuple[str, str], ...]) -> Validator:
    spec = check(str(ROOT / "spec" / "raft" / "etcd_raft.spec"))
    return Validator(instantiate(spec, RaftTracing.model, dict(constants)))


def explained(lines: Sequence[str]) -> Explained:
    recording = parse("a run", lines)
    of = validator(tuple(sorted(RaftTracing.constants(recording).items())))
    return of.explain(RaftTracing(of.program, recording), recording)


def runs(
    folder: Path, seeds: range, version: str, flaw: Flaw | None = None, *options: str
) -> list[Explained]:
    """Runs of 1 000 events."""
    try:
        program = build(folder, version, flaw)
    except Unavailable as missing:
        pytest.skip(f"raft {version} cannot be built: {missing}")
    drive(program, folder / "runs", seeds, *options)
    return [explained(path.read_text(encoding="utf-8").splitlines()) for path in (folder / "runs").iterdir()]


def test_a_run_of_real_nodes_is_explained_by_one_state_at_a_time() -> None:
    """No step is silent, and nothing is left open."""
    found = explained(SAMPLE)
    assert (found.blocked, found.consumed, found.most) == (None, len(SAMPLE) - 2, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"commit":1,', '"commit":2,'),
        ('"kind":"MsgVoteResp"', '"kind":"MsgAppResp"'),
        ('"role":"StateLeader"', '"role":"StateCandidate"'),
        ('"elapsed":2', '"elapsed":1'),
        ('"match":{"s1":1', '"match":{"s1":2'),
    ],
)
def test_a_line_that_says_something_else_is_refused(old: str, new: str) -> None:
    """Where it occurs first."""
    text = "\n".join(SAMPLE)
    assert old in text
    found = explained(text.replace(old, new, 1).splitlines())
    assert found.blocked is not None


@pytest.mark.slow
@pytest.mark.system
def test_runs_of_the_newest_release_are_explained(tmp_path: Path) -> None:
    """With pre-votes and a quorum check, with either, and with none."""
    for found in runs(tmp_path, range(4), NEWEST):
        assert (found.blocked, found.consumed) == (None, 1000)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("flaw", [flaw for flaw in FLAWS if flaw.name != "commits what it was not shown"],
                         ids=lambda flaw: flaw.name)  # fmt: skip
def test_a_flaw_in_a_copy_is_noticed(flaw: Flaw, tmp_path: Path) -> None:
    """The one left out needs a tail of an old leader and a late append; no schedule tried has shown it."""
    assert any(found.blocked is not None for found in runs(tmp_path, range(8), NEWEST, flaw))


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(
    "bug", [bug for bug in HISTORY if bug.report not in RARE], ids=lambda bug: bug.report
)
def test_a_bug_of_a_release_is_noticed_there_and_not_later(bug: Bug, tmp_path: Path) -> None:
    """By the event of the report."""
    for version, has_it in ((bug.bad, True), (bug.good, False)):
        found = runs(tmp_path / version, range(100, 112), version, None, "-mode", bug.mode)
        assert (
            any(run.blocked is not None and run.blocked.event["event"] == bug.event for run in found)
            == has_it
        )
