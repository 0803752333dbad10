"""The examples in other languages, docs/lock_service and docs/ring_buffer: their bugs are found.

docs/any-language.md has more, which tests/docs run: both conform, six bugs and four failures are found.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from specchk.cli.commands.conform import load_binding
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.known_bad import BadFile
from specchk.conform.gate.tiers import BUDGETS, parts_of, run_parts
from specchk.conform.replay.divergence import as_json, drawn
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.shrink import shrunk_result
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.sources import files_of, fingerprint
from specchk.lang.frontend import check
from specchk.report.draw.text import text

DOCS = Path(__file__).parents[2] / "docs"
MOST_LINES = 60
# On a build server a missing tool is an error; elsewhere the tests are skipped, and counted.
FOLDERS = [
    pytest.param(folder, marks=pytest.mark.skipif(
        shutil.which(tool) is None and not os.environ.get("CI"), reason=f"{tool} is not installed"))
    for folder, tool in (("lock_service", "node"), ("ring_buffer", "cc"))
]  # fmt: skip
NODE = FOLDERS[0].marks[0]
C = FOLDERS[1].marks[0]


def gate(folder: str, mistake: BadFile | None = None, path: Path | None = None) -> list[SuiteResult]:
    """The results of the default tier."""
    place = path or DOCS / folder
    cls = load_binding(place / "binding.py")
    parts = parts_of(cls, check(str(place / cls.spec)), cls.gate)
    if mistake is not None:
        for part in parts:
            setattr(part.binding, "_mistake", mistake)  # noqa: B010 - of process bindings only
    results = run_parts(parts, BUDGETS["gate"], 1)
    found = next((n for n, one in enumerate(results) if one.divergence is not None), None)
    if found is not None:
        results[found] = shrunk_result(Replayer(parts[found].binding), results[found])
    return results


def finding(folder: str, mistake: BadFile) -> Divergence:
    (first, *_) = [one.divergence for one in gate(folder, mistake) if one.divergence is not None]
    assert first is not None
    return first


@pytest.mark.parametrize("folder", [pytest.param(one.values[0]) for one in FOLDERS])
def test_a_binding_is_short(folder: str):
    """So that the promise of the documents is true."""
    assert len((DOCS / folder / "binding.py").read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("folder", [pytest.param(one.values[0]) for one in FOLDERS])
def test_a_changed_file_of_another_language_changes_the_fingerprint(folder: str, tmp_path: Path):
    """The lock sees that the implementation is another one."""
    shutil.copytree(DOCS / folder, tmp_path, dirs_exist_ok=True)
    cls: type[Binding[Any]] = load_binding(tmp_path / "binding.py")
    files = files_of(tmp_path / "binding.py", cls.implementation)
    assert len(files) > 1
    before = fingerprint(files, tmp_path)
    files[1].write_text(files[1].read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert fingerprint(files, tmp_path) != before


LOCK_BUGS = {
    "last_in_first_out": ("this.queue.shift()", "this.queue.pop()", "state", "next"),
    "two_leases": (
        'require_(this.holder === null, "the lock is held");\n    require_(this.queue.length > 0',
        "require_(this.queue.length > 0", "accepted", "next"),
}  # fmt: skip


@NODE
@pytest.mark.parametrize("bug", LOCK_BUGS)
def test_a_bug_of_the_lock_service_is_found_by_the_default_tier(bug: str):
    """Each is a line of JavaScript; the divergence names the step, and the guard that forbids it."""
    was, now, kind, step = LOCK_BUGS[bug]
    found = finding("lock_service", BadFile(bug, "lock.js", was, now, "two"))
    assert kind in ("", found.kind)
    assert found.step is not None
    assert step in ("", found.step.action)
    assert found.kind != "accepted" or "the spec forbids it: " in found.reason


@NODE
def test_a_failure_of_the_lock_service_is_a_finding():
    """With its last words, in every form of the report."""
    was = 'require_(this.holder !== null, "the lock is free");\n    this.holder = null;'
    found = finding("lock_service", BadFile("exits", "lock.js", was, "process.exit(3);", "two"))
    assert (found.kind, str(found.step)) == ("died", "expire()")
    reason = "it exited with code 3"
    assert reason in found.reason
    cls = load_binding(DOCS / "lock_service" / "binding.py")
    instance = instantiate(check(str(DOCS / "lock_service" / cls.spec)), cls.model)
    assert reason in text(drawn(instance, found))
    assert as_json(instance.program, found)["kind"] == "died"


@C
def test_a_crash_of_the_ring_buffer_is_a_finding():
    """A signal has its name."""
    bug = BadFile("crash", "ring.c", "count -= 1;", "count -= 1; abort();", "small")
    found = finding("ring_buffer", bug)
    assert (found.kind, str(found.step), "killed by SIGABRT" in found.reason) == ("died", "pop()", True)
