"""What real nodes of go.etcd.io/raft do is explained by etcd_raft.spec; known bugs and planted flaws are not.

The nodes are driven by conformance/etcd_raft/go; the samples are runs of v3.7.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from conformance.etcd_raft.flaws import FLAWS, HISTORY, Bug
from conformance.etcd_raft.harness import CHANGES, NEWEST, Flaw, Unavailable, build, drive

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import At, mistakes
from specchk.conform.contract.load import load_binding, load_tracing
from specchk.conform.contract.recording import parse
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.validate import Explained, Validator
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import SuiteWalks, run_walks
from specchk.lang.frontend import check

FOLDER = ROOT / "conformance" / "etcd_raft"
SAMPLE = (FOLDER / "sample.ndjson").read_text(encoding="utf-8").splitlines()
OF_CHANGES = (FOLDER / "sample_changes.ndjson").read_text(encoding="utf-8").splitlines()

# In 1 and 3 of 12 runs, which are others each time: releases up to v3.5.0 draw timeouts by the clock.
RARE = {"etcd#9204", "etcd#8243"}


@cache
def tracing_of(changes: bool) -> type[Tracing]:
    return load_tracing(FOLDER / ("changes_tracing.py" if changes else "raft_tracing.py"))


@cache
def validator(tracing: type[Tracing], constants: tuple[tuple[str, str], ...]) -> Validator:
    spec = check(str(FOLDER / tracing.spec))
    return Validator(instantiate(spec, tracing.model, dict(constants)))


def explained(lines: Sequence[str]) -> Explained:
    recording = parse("a run", lines)
    tracing = tracing_of(recording.header.get("changes", False))
    of = validator(tracing, tuple(sorted(tracing.constants(recording).items())))
    return of.explain(tracing(of.program, recording), recording)


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


@pytest.mark.parametrize("lines", [SAMPLE, OF_CHANGES], ids=["", "changes"])
def test_a_run_of_real_nodes_is_explained_by_one_state_at_a_time(lines: list[str]) -> None:
    """No step is silent, and nothing is left open."""
    found = explained(lines)
    assert (found.blocked, found.consumed, found.most) == (None, len(lines) - 2, 1)


@pytest.mark.parametrize(
    ("lines", "old", "new"),
    [
        (SAMPLE, '"commit":1,', '"commit":2,'),
        (SAMPLE, '"kind":"MsgVoteResp"', '"kind":"MsgAppResp"'),
        (SAMPLE, '"role":"StateLeader"', '"role":"StateCandidate"'),
        (SAMPLE, '"elapsed":2', '"elapsed":1'),
        (SAMPLE, '"match":{"s1":1', '"match":{"s1":2'),
        (OF_CHANGES, '"applied":[1]', '"applied":[2]'),
        (OF_CHANGES, '"outgoing":["s1",', '"outgoing":['),
        (OF_CHANGES, '"event":"leave"', '"event":"propose"'),
    ],
)
def test_a_line_that_says_something_else_is_refused(lines: list[str], old: str, new: str) -> None:
    """Where it occurs first."""
    text = "\n".join(lines)
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
def test_runs_that_change_the_voters_are_explained(tmp_path: Path) -> None:
    """Through joint configurations, too; of five nodes three vote at first."""
    for found in runs(tmp_path, range(100, 104), NEWEST, None, *CHANGES):
        assert (found.blocked, found.most) == (None, 1)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("flaw", FLAWS, ids=lambda flaw: flaw.name)
def test_a_flaw_in_a_copy_is_noticed(flaw: Flaw, tmp_path: Path) -> None:
    """By one of eight runs at least."""
    assert any(found.blocked is not None for found in runs(tmp_path, range(8), NEWEST, flaw, *flaw.options))


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


NODES = load_binding(FOLDER / "binding.py")
SPEC = check(str(FOLDER / NODES.spec))


def walked(folder: Path, model: str, bounds: Mapping[str, str], flaw: Flaw | None = None) -> str:
    """The kind of divergence of real nodes from the spec, in walks with all that is forbidden; or nothing."""
    try:
        program = build(folder, NEWEST, flaw)
    except Unavailable as missing:
        pytest.skip(f"raft cannot be built: {missing}")
    command = {"build": (), "command": (str(program), "-serve")}
    binding = type("BuiltNodes", (NODES,), command)(instantiate(SPEC, model, bounds).program)
    found = run_walks(Replayer(binding), SuiteWalks(0, 8, 40)).divergence
    return "" if found is None else found.kind


def test_the_binding_fits_its_spec() -> None:
    """In each model of its gate."""
    for at in NODES.gate:
        assert mistakes(NODES, instantiate(SPEC, at.model, at.bounds).program) == ()


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize("at", NODES.gate, ids=lambda at: at.model)
def test_real_nodes_take_the_steps_of_the_spec_and_no_others(at: At, tmp_path: Path) -> None:
    """Each step is one input of one node."""
    assert walked(tmp_path, at.model, at.bounds) == ""


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("votes for older logs", "two_terms"),
        ("forgets its vote", "timed"),
        ("half is a majority", "two_terms"),
        ("votes twice", "timed"),
    ],
)
def test_walks_of_the_spec_notice_a_flaw(name: str, model: str, tmp_path: Path) -> None:
    """A step that the node takes otherwise, or that it must not take."""
    (flaw,) = (flaw for flaw in FLAWS if flaw.name == name)
    bounds = {"timed": {"Timeout": "3"}}.get(model, {})
    assert walked(tmp_path, model, bounds, flaw) != ""
