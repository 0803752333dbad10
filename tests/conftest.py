"""Common parts of all tests: which slow ones run, how Hypothesis searches, `--rewrite` for golden texts.

- `--part` chooses: `unit`, `agreement` (all engines, the same answers) or `system` (processes, Spark,
  browsers, documents, mutants and planted bugs, whole specs, further seeds of random ones, and every slow
  test).  `make test` runs the first two, `make system` the third.
- `--slow` runs every test marked `slow`.  Without it a sample of them runs, one in `SAMPLE`, chosen
  by `--sample-seed`, so that one seed always means the same tests; the header names it.
- Hypothesis draws the same examples in every run, on every machine: profile `same`.  With
  `--random-seed N` (`make test RANDOM=N`, `make nightly`) it draws those of a seed, profile `random`.
  Neither keeps examples between runs, so what failed yesterday does not decide what is tried today; and
  the constants of whatever is loaded beside a test are not drawn, which would depend on what ran before.
- What fails is repeated by the line that the summary has for it.
- `--rewrite` writes what the product says now into golden files and docs, to be read in the diff.
- Ctrl-C is heard, also where a shell started the tests in the background with it ignored: the processes
  that tests interrupt would inherit that, and never end.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import shlex
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from hypothesis import core, settings
from hypothesis.internal.conjecture import providers

SAMPLE = 180  # one slow test in so many
TESTS = Path(__file__).parent
PARTS = ("unit", "agreement", "system")
# Files and folders of the parts; all others are `unit`.
AGREEMENT = ("agreement",)
SYSTEM = (
    "agreement/test_planted_bugs.py", "agreement/test_planted_sparse_bugs.py",
    "agreement/test_planted_walks.py", "browser", "cli/test_interrupts.py", "cli/test_process.py",
    "conform/test_adapter.py",
    "conform/test_crews.py", "conform/test_faults.py", "conform/test_gate.py", "conform/test_guard.py",
    "conform/test_languages.py", "conform/test_link.py", "conform/test_mutants_replog.py",
    "conform/test_named_flaws.py", "conform/test_plugin.py",
    "conform/test_replog.py", "conform/test_replog_behaviour.py", "conform/test_small_bindings.py",
    "conform/test_two_phase.py", "conform/test_validate_replog.py", "conform/test_workshop.py", "docs",
    "export/test_object_store.py", "export/test_whole.py", "real_kafka/test_cluster.py",
    "real_kafka/test_chaos.py", "real_kafka/test_dumps.py", "real_kafka/test_folders.py",
    "real_kafka/test_real_stories.py",
    "real_kafka/test_replog_beside.py",
    "lang/test_worst_input.py", "laws/test_bench.py", "laws/test_planted_gaps.py", "laws/test_repeatable.py",
    "mcp/test_server.py", "mcp/test_agent.py",
    "native/test_checkpoints.py", "native/test_claims.py", "replog/cli",
    "replog/demo", "replog/sim/test_planted.py", "replog/sim/test_run.py", "report/draw/test_documents.py",
    "report/draw/test_files.py", "report/draw/test_pictures.py", "spark", "specs",
)  # fmt: skip

SYSTEM_MARK = re.compile("slow|system|few_of", re.IGNORECASE)

UNFREEZE = gc.unfreeze

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("random", derandomize=False, deadline=None, database=None)
settings.load_profile("same")
providers.is_local_module_file = lambda path: False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("specchk")
    group.addoption("--part", action="append", choices=PARTS, help="Only this part; may be repeated.")
    group.addoption("--slow", action="store_true", help="Run every slow test, not a sample of them.")
    group.addoption("--sample-seed", default="0", help="Which slow tests the sample has.")
    group.addoption("--random-seed", type=int, help="Other examples than always: those of a seed.")
    group.addoption("--rewrite", action="store_true", help="Write golden files and docs anew.")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--random-seed")
    if seed is not None:
        settings.load_profile("random")
        core.global_force_seed = seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed, sample = config.getoption("--random-seed"), config.getoption("--sample-seed")
    slow = f"a sample of 1 in {SAMPLE}, --sample-seed={sample}"
    examples = "the same in every run" if seed is None else f"--random-seed={seed}"
    return [
        f"slow tests: {'all' if config.getoption('--slow') else slow}",
        f"examples: {examples} (Hypothesis {hypothesis.__version__})",
    ]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files of another part: loading a file may take as long as its tests."""
    parts, at = config.getoption("--part"), collection_path
    if not parts or not at.is_relative_to(TESTS):
        return None
    is_system = at.relative_to(TESTS).as_posix().startswith(SYSTEM)
    if parts == ["system"] and not is_system and at.name.startswith("test_"):
        return None if may_be_system(at) else True
    return True if is_system and "system" not in parts else None


@cache
def may_be_system(path: Path) -> bool:
    """Whether a file names a mark of the part `system`; without its name, it has no test of that part."""
    return SYSTEM_MARK.search(path.read_text(encoding="utf-8")) is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if len(config.args) == 1 and "::" in config.args[0]:
        return  # a test that is named is wanted
    parts, every, seed = (
        config.getoption("--part"),
        config.getoption("--slow"),
        config.getoption("--sample-seed"),
    )
    wanted = {
        id(item)
        for item in items
        if (not parts or part(item) in parts)
        and (every or not item.get_closest_marker("slow") or sampled(item.nodeid, seed))
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in wanted])
    items[:] = [item for item in items if id(item) in wanted]
    # Those that use Spark first: idle workers take tests from the end, so one worker alone starts Java.
    items.sort(key=lambda item: "spark" not in item.nodeid)


def pytest_collection_finish() -> None:
    """Freeze loaded objects for the garbage collector: they stay until the end, and are millions.

    Specs, trees and programs are made by the hundred thousand and have few cycles, so that looking for cycles
    every 700 objects took an eighth of the tests' processor time.  It stays so where the product undoes a
    `freeze` of its own: a campaign of 100 recordings visited all that 6000 tests have loaded, 100 times.
    """
    spare()
    gc.set_threshold(20_000, 20, 20)
    pytest.MonkeyPatch().setattr(gc, "unfreeze", lambda: None)


@pytest.fixture
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Thaw the collector's objects during a test, as in a process that has run no test."""
    monkeypatch.setattr(gc, "unfreeze", UNFREEZE)
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Freeze the objects that a file leaves, too: modules, and values computed for several tests.

    The laws alone keep the trees of all sources, and a collection of all that the files before left took up
    to three seconds.
    """
    yield
    if nextitem is not None and nextitem.path != item.path:
        spare()


def spare() -> None:
    """Free all cycles of garbage, and leave what is alive out of later collections."""
    gc.collect()
    gc.freeze()


def part(item: pytest.Item) -> str:
    """The part of the suite to which a test belongs."""
    name = item.path.relative_to(TESTS).as_posix()
    if name.startswith(SYSTEM):
        return "system"
    if item.get_closest_marker("slow") or item.get_closest_marker("system"):
        assert may_be_system(item.path), f"{name} names no mark: it would not be collected"
        return "system"
    return "agreement" if name.startswith(AGREEMENT) else "unit"


def sampled(nodeid: str, seed: str) -> bool:
    """Whether the sample of a seed includes a test; independent of the other tests."""
    digest = hashlib.sha256(f"{seed} {nodeid}".encode()).digest()
    return int.from_bytes(digest) % SAMPLE == 0


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report for each failure the command that repeats it, on one line."""
    failed = [one for kind in ("failed", "error") for one in terminalreporter.stats.get(kind, ())]
    for nodeid in dict.fromkeys(one.nodeid for one in failed):
        terminalreporter.write_line(repetition(nodeid, config.getoption("--random-seed")))


def repetition(nodeid: str, seed: int | None) -> str:
    """The command that repeats a test."""
    hashes = os.environ.get("PYTHONHASHSEED")
    before = f"PYTHONHASHSEED={hashes} " if hashes else ""
    after = "" if seed is None else f" --random-seed={seed}"
    return f"repeat: {before}{os.path.relpath(sys.executable)} -m pytest {shlex.quote(nodeid)}{after}"
