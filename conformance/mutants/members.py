"""The members that may kill a mutant of replog, cheapest first: recordings, suites, simulations, tests.

The parts of `make gate` are all among them, as it runs them; the controls aside, which are about the gate.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replog.sim.faults.profiles import profile
from replog.sim.recording.record_run import record
from replog.sim.run import Simulation
from replog_rules import GATE
from specchk.conform.contract.binding import At
from specchk.conform.contract.load import load_tracing
from specchk.conform.covers.cases import label_of
from specchk.conform.mutation.members import Bench, Outside, Reporter, SuiteMember, each_seed
from specchk.conform.mutation.other_gates import AcceptedRuns, OtherGate
from specchk.conform.mutation.recorded import Recorded
from specchk.conform.recordings.campaign import run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.replay.faults import run_faults
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import SuiteWalks
from specchk.lang.frontend import check

TESTS = Path(__file__).parents[2] / "tests" / "replog"
STORE = ("power", "faults", "crashes", "recovery", "checkpoint", "partition", "damage", "manifest", "repair")
SCENARIOS = ("scenarios", "clients", "world")
# As in the Makefile.
FILES = (At("two_brokers", {"MaxOffset": "1", "MaxEpoch": "0"}, "faults"),)
# All but the one that drives another system's code, which no mutant of replog changes.
OTHERS = sorted({path.parent.name for path in Path(__file__).parents[1].glob("*/binding.py")} - {"etcd_raft"})
RECORDED = range(40)
ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
ROOT = TESTS.parents[1]
WATCHED = (  # the tests, the scenarios that they read, and how pytest and Hypothesis are set up
    *sorted(path for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts),
    *sorted((ROOT / "impl" / "replog" / "stories").glob("*.txt")),
    ROOT / "tests" / "conftest.py",
    ROOT / "pyproject.toml",
)


class Told:
    """A pytest plugin that reports each test, and stops when no more are needed."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Measure the work of each test, including its setup and cleanup."""
        with self.reporter.limit():
            yield

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests that ran, and those that failed before they could."""
        if report.when == "call" or report.failed:
            reason = str(report.longrepr).strip().splitlines()[-1] if report.failed else ""
            self.reporter.note(report.nodeid.rpartition("/")[2], reason)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be collected."""
        if report.failed:
            self.reporter.note(report.nodeid, str(report.longrepr).strip().splitlines()[-1])

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Stop early."""
        if not self.reporter.needs_more:
            item.session.shouldstop = "enough"


class NotTested(Exception):
    """Pytest did not run the tests."""


def pytest_on(*names: str) -> Any:
    """Return a function that runs test files of replog: only fast tests, always with the same examples."""

    def run(reporter: Reporter) -> None:
        paths = [str(TESTS / name) for name in names]
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(ROOT)]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # for the campaign's imports
        before = reporter.tests
        code = pytest.main([*paths, *options], plugins=[Told(reporter)])
        if code not in ENDED or reporter.tests == before:
            raise NotTested(f"pytest ended with {code!r} after {reporter.tests - before} tests")

    return run


def simulated(name: str, seeds: range) -> Any:
    """Return a function that runs simulations under a profile, checked by the oracles."""

    def broken(seed: int) -> str:
        report = Simulation(seed, profile(name)).run()
        return f"{report.oracle}: {report.detail}" if report.is_failure else ""

    return each_seed(seeds, broken)


def walks(model: str, bounds: dict[str, str], count: int) -> SuiteMember:
    """Return random walks over a model, at its own bounds except for these."""
    return SuiteMember(f"walks {model}", At(model, bounds, "walks"), walks=SuiteWalks(5, count, 50))


def faults_strike(bench: Bench) -> str:
    """Check that crashes inside steps reach the files."""
    program = bench.instance(At("two_brokers", {"MaxOffset": "1"})).program
    result = run_faults(Replayer(bench.binding("on_files.py")(program)), 8)
    return result.divergence.reason if result.divergence else result.vacuous


def simulations_have_faults(bench: Bench) -> str:
    """Check that brokers crash and messages are lost in simulations."""
    del bench
    report = Simulation(1, profile("all")).run()
    went_wrong = report.counters.crashes and report.faults["message-loss"]
    return "" if went_wrong else "nothing went wrong in a simulation"


def recordings_are_read(bench: Bench) -> str:
    """Check that recordings are explained completely, and that corrupted copies of them are not."""
    tracing = load_tracing(bench.folder / "tracing.py")
    checked = check(str((bench.folder / tracing.spec).resolve()))
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{seed}.ndjson" for seed in range(12)]
        for seed, path in enumerate(paths):
            path.write_text("\n".join(record(seed)))
        found = run_campaign(tracing, checked, paths, CampaignOptions())
    unexplained = [one.name for one in found.results if not one.accepted]
    return "; ".join([*found.vacuous, *(f"{name} is not explained" for name in unexplained)])


SELF_CHECKS = (
    ("crashes inside steps", faults_strike),
    ("faults of simulations", simulations_have_faults),
    ("recordings and corrupted copies", recordings_are_read),
)
TARGETS = tuple(
    f"replog.core.{name}"
    for name in (
        "controller.controller",
        "controller.election",
        "log.epochs",
        "broker.follower",
        "broker.isr",
        "broker.leader",
        "broker.purgatory",
        "log.logview",
        "broker.replica",
        "broker.state",
    )
)
MEMBERS = (
    Recorded("recordings", "tracing.py", record, RECORDED),
    Outside("simulation all", simulated("all", range(40)), ("replog",)),
    *(
        SuiteMember(f"classes {label_of(at.model, [*at.bounds.items()])}", at, limit=200_000)
        for at in GATE
        if at.suite == "classes"
    ),
    *(OtherGate(f"gate of {name}", f"{name}/binding.py") for name in OTHERS),
    OtherGate("crashes on files", "on_files.py", FILES),
    OtherGate("walks and loops", "binding.py", tuple(at for at in GATE if at.suite != "classes")),
    Outside("simulation store", simulated("store", range(20)), ("replog",)),
    Outside("simulation flush", simulated("flush", range(20)), ("replog",)),
    Outside("store tests", pytest_on(*(f"store/test_{name}.py" for name in STORE)), ("replog.store",)),
    Outside("scenarios", pytest_on(*(f"sim/test_{name}.py" for name in SCENARIOS)), ("replog",)),
    Outside("core tests", pytest_on("core"), ("replog.core",)),
    Recorded("further recordings", "tracing.py", record, range(40, 60)),
    walks("three_epochs", {}, 30),
    walks("one_record_at_a_time", {}, 20),
    walks("slow_follower", {"MaxFences": "1"}, 20),
    walks("three_brokers", {"MaxShrinks": "1", "MaxCrashes": "1", "MaxFences": "1"}, 20),
    # Last: any change of behaviour makes one more test fail, and would hide the other tests that detect it.
    AcceptedRuns("behaviour", "behaviour/behaviours.py"),
)
