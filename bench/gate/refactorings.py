"""Refactorings of replog, one at a time, held to the whole gate.

    python bench/gate/refactorings.py [--only ID] [--keep FOLDER]

A change that keeps behaviour must leave `make gate` green: suites, controls, locks, files and recordings.
Each refactoring of `refactorings` is applied to the files of a copy of this checkout, as a colleague
would edit them, and `make gate` is run there, as a colleague would run it.

Prints the parts that failed, for each refactoring; none is expected to.  Exits with 1 if one did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from specchk.conform.mutation.mutants import Mutant, load
from specchk.conform.mutation.patches import Patch, patched

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent / "refactorings"


def copied(place: Path, refactoring: Mutant) -> None:
    """Make a copy of the checkout with a refactoring in its files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)
    patches: dict[str, list[Patch]] = defaultdict(list)
    for patch in refactoring.patches:
        patches[patch.module].append(patch)
    for module, of_module in patches.items():
        path = place / "impl" / (module.replace(".", "/") + ".py")
        path.write_text(patched(path.read_text(encoding="utf-8"), of_module), encoding="utf-8")


def gate(place: Path) -> str:
    """Run the gate of a copy by this checkout's environment; its verdict.  Exits where it did not end."""
    environment = Path(sys.executable).parents[1]
    # Before the editable installation's own folders.
    sources = os.pathsep.join(str(place / folder) for folder in ("interp", "impl"))
    if not (environment / ".tested").exists():
        raise SystemExit(f"{environment} has no .tested: run this by an environment that make has made")
    # Else make would install the copy there, where this checkout is installed: its project file is newer.
    run = subprocess.run(
        ["make", "--old-file=pyproject.toml", "gate", f"VENV={environment}", f"REPORTS={place / 'reports'}"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    (place / "gate.txt").write_text(run.stdout + run.stderr)
    verdict = next((line for line in run.stdout.splitlines() if line.startswith("== gate:")), "")
    if not verdict or (run.returncode == 0) != verdict.endswith("none failed"):
        raise SystemExit(f"the gate did not end: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return verdict.removeprefix("== gate: ")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", type=Path, help="copies stay in this folder")
    arguments = parser.parse_args()
    failed = 0
    for refactoring in load(FOLDER):
        if arguments.only and refactoring.id not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = (arguments.keep or Path(folder)) / refactoring.id
            copied(place, refactoring)
            verdict = gate(place)
        failed += not verdict.endswith("none failed")
        print(f"{refactoring.id}: {verdict}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
