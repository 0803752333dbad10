"""Measures how far etcd_raft.spec explains real nodes of raft, and what it notices.

    .venv/bin/python bench/raft/measure.py [--first 0] [--runs 200] [--flaws] [--history]

Needs Go and its module proxy.  Runs of 1 000 events each are explained, and corrupted copies of them refused;
`--flaws` plants each flaw, and `--history` tries the releases with and without each known bug.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT)

from conformance.etcd_raft.flaws import FLAWS, HISTORY  # noqa: E402
from conformance.etcd_raft.harness import CHANGES, NEWEST, build, drive  # noqa: E402

FOLDER = ROOT / "conformance" / "etcd_raft"


def validated(recordings: Path, *options: str, tracing: str = "raft_tracing.py") -> dict[str, Any]:
    """The report of `specchk validate`; ends the program with its errors where there is none."""
    line = (sys.executable, "-m", "specchk", "validate", str(FOLDER / tracing), str(recordings))
    done = subprocess.run(
        (*line, "--partial", "--json", *options), capture_output=True, text=True, check=False
    )
    if not done.stdout:
        sys.exit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def show(name: str, report: dict[str, Any]) -> None:
    """Print how many runs are explained, how fast, and how many corrupted copies are refused."""
    print(f"{name}: {report['accepted']} of {report['recordings']} runs explained")
    print(f"  {report['events']} events, {report['events_per_second']:.0f} a second")
    print(f"  {report['copies']} copies, {report['power']:.1%} refused {report['power_by_kind']}", flush=True)


def main() -> None:
    """Print one line for each measurement."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--first", type=int, default=0, help="the first run's seed")
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--flaws", action="store_true")
    arguments.add_argument("--history", action="store_true")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder / "newest")
        seeds = range(chosen.first, chosen.first + chosen.runs)
        drive(program, folder / "runs", seeds)
        show(NEWEST, validated(folder / "runs"))
        drive(program, folder / "changes", seeds, *CHANGES)
        show("with changes of the voters", validated(folder / "changes", tracing="changes_tracing.py"))
        for number, flaw in enumerate(FLAWS if chosen.flaws else ()):
            where = folder / f"flaw-{number}"
            drive(build(where, flaw=flaw), where / "runs", range(8), *flaw.options)
            tracing = "changes_tracing.py" if flaw.options == CHANGES else "raft_tracing.py"
            found = validated(where / "runs", "--no-power", tracing=tracing)
            print(f"{flaw.name}: {found['diverging']} of {found['recordings']} runs refused", flush=True)
        for bug in HISTORY if chosen.history else ():
            for version in (bug.bad, bug.good):
                where = folder / f"{bug.report.replace('#', '-')}-{version}"
                drive(build(where, version), where / "runs", range(100, 112), "-mode", bug.mode)
                found = validated(where / "runs", "--no-power")
                shown = sum(each["event"]["event"] == bug.event for each in found["blocked"])
                print(
                    f"{bug.report} in {version}: shown by {shown} of {found['recordings']} runs", flush=True
                )


main()
