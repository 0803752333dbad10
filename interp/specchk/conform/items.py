"""Cases as pytest items: `conformance/binding.py::two_brokers MaxOffset=1::5c04bb6c35-serve_fetch`.

Files called `binding.py` or `*_binding.py` are collected.  The ids are the cases' own, with the action that
a case ends with, so they are the same in every run, on every machine and in every worker of
pytest-xdist; a case that diverges fails with
the report that `specchk conform` would print.  Suites that are not made of cases are one item each,
and so is each control, which passes when the gate finds it wrong.

Properties for JUnit: the spec, the steps taken and the classes of a case.  What needs all cases
together (coverage, the lock) is for `specchk conform --lock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.known_bad import Control, NoSuchText
from specchk.conform.contract.load import NoBinding, load_binding
from specchk.conform.gate.choices import NAME, BadChoices, read
from specchk.conform.gate.controls import trial_of, try_control
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.tiers import BUDGETS, MADE_OF_CASES, Part, SuiteBudget, parts_of, run_part
from specchk.conform.replay.cases import Suite, SuiteCase
from specchk.conform.replay.replay import Divergence, Replayer
from specchk.conform.replay.runner import Runner, run_suite
from specchk.conform.replay.shrink import shrunk_result
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import render
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.lang.text.diagnostics import render as told


class Diverges(Exception):
    """A case's outcome; the report is its text."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the files that are called like bindings."""
    if file_path.name == "binding.py" or file_path.name.endswith("_binding.py"):
        file: BindingFile = BindingFile.from_parent(parent, path=file_path)
        return file
    return None


class BindingFile(pytest.File):
    """A binding: a collector for each suite of the tier, and the controls."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """All suites of the tier, and the controls with those of the gate."""
        tier = self.config.getoption("--specchk-tier")
        budget = BUDGETS[tier]
        try:
            cls = load_binding(self.path)
            checked = check(str(self.path.parent / cls.spec))
            parts = parts_of(cls, checked, cls.tier(tier), read(self.path.parent / NAME))
            for part in parts:
                Replayer(part.binding)  # says what does not fit
        except (NoBinding, BindingError, BadChoices) as error:
            raise self.CollectError(str(error)) from None
        except SpecError as error:
            raise self.CollectError("\n".join(told(one) for one in error.diagnostics)) from None
        for part in parts:
            yield PartCollector.from_parent(self, name=part.name, run=Run(part, budget))
        for control in cls.controls:
            bound = BoundSpec(self.path, cls, checked)
            yield ControlItem.from_parent(self, name=f"control: {control.name}", bound=bound, control=control)


@dataclass
class Run:
    """One suite in this process: its cases share what they have in common."""

    part: Part
    budget: SuiteBudget

    @cached_property
    def suite(self) -> Suite:
        """The cases."""
        return self.part.suite(self.budget)

    @cached_property
    def runner(self) -> Runner[Any]:
        """Takes the cases that are run in this process."""
        return Runner(Replayer(self.part.binding), self.suite)

    def report(self, case: SuiteCase, found: Divergence) -> str:
        """The report of a case that diverges, on as short a path as can be found."""
        # With a replayer of its own: the report is then what `specchk conform --case` prints for this case
        # alone.
        alone = run_suite(Replayer(self.part.binding), self.suite, cases=[case])
        result = replace(alone, suite=f"case {case.id}", divergence=alone.divergence or found, coverage=None)
        return self.render(result)

    def render(self, result: SuiteResult) -> str:
        """The report of a result."""
        short = shrunk_result(Replayer(self.part.binding), result)
        return render(self.part, short)


class PartCollector(pytest.Collector):
    """A suite: an item for each case, or one for all of it."""

    def __init__(self, *, run: Run, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run

    def collect(self) -> Iterator[pytest.Item]:
        """The cases in the suite's order."""
        if self.run.part.at.suite not in MADE_OF_CASES:
            yield WholeItem.from_parent(self, name=self.run.part.at.suite, run=self.run)
            return
        for case in self.run.suite.cases:
            yield CaseItem.from_parent(self, name=case.name, run=self.run, case=case)


class ReportItem(pytest.Item):
    """An item whose failure is a report."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report alone; another exception with its traceback."""
        if isinstance(excinfo.value, Diverges):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is from, for the heading of a failure."""
        return self.path, None, self.nodeid


class CaseItem(ReportItem):
    """One case."""

    def __init__(self, *, run: Run, case: SuiteCase, **rest: Any) -> None:
        super().__init__(**rest)
        self.run, self.case = run, case

    def runtest(self) -> None:
        """Take the case; a comparison that does not notice a wrong value fails too."""
        runner, case = self.run.runner, self.case
        found = runner.run(case)
        spec = self.run.part.instance.program.path
        self.user_properties += [("spec", spec), ("steps", found.taken), ("classes", len({
            number for classes in case.classes for number in classes}))]  # fmt: skip
        if found.divergence is not None:
            raise Diverges(self.run.report(case, found.divergence))
        # Each case carries the check of the comparison, since pytest may run any of them alone.
        if runner.done.blind_to:
            raise Diverges(f"vacuous: a wrong value of {', '.join(runner.done.blind_to)} was not detected")


class WholeItem(ReportItem):
    """A suite that is not made of cases."""

    def __init__(self, *, run: Run, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run

    def runtest(self) -> None:
        """Run the suite; one that is vacuous, or that a budget has cut, fails too."""
        result = run_part(self.run.part, self.run.budget)
        self.user_properties += [("states", result.states), ("steps", result.steps)]
        if result.divergence is not None or result.vacuous or not result.complete:
            raise Diverges(self.run.render(result))


class ControlItem(ReportItem):
    """A control of the gate."""

    def __init__(self, *, bound: BoundSpec, control: Control, **rest: Any) -> None:
        super().__init__(**rest)
        self.bound, self.control = bound, control

    def runtest(self) -> None:
        """Something must be found wrong."""
        number = self.bound.cls.controls.index(self.control)
        trial = trial_of(self.bound.cls, self.bound.checked, number, BUDGETS["gate"].max_states)
        try:
            tried = try_control(self.bound.cls, trial)
        except NoSuchText as error:
            raise Diverges(f"the control is outdated: {error}") from None
        self.user_properties.append(("found", tried.told))
        if not tried.told:
            raise Diverges("vacuous: no divergence was found with this control")
