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

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import NoBinding, load_binding
from specchk.conform.covers.cases import MADE_OF_CASES, Suite, SuiteCase
from specchk.conform.gate.controls import trials, try_control
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.tiers import BUDGETS, Part, SuiteBudget, parts_of, run_part
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import Runner, run_suite
from specchk.conform.replay.shrink import shrunk_result
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.suite import render
from specchk.conform.work.lock_file import NAME, BadLock, read
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.lang.text.diagnostics import render as rendered
from specchk.lang.text.visible import visible

Properties = list[tuple[str, object]]  # of an item, for JUnit


class Diverges(Exception):
    """The outcome of a diverging case; the report is its text."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the files that are named like bindings."""
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
            parts = parts_of(cls, checked, cls.tier(tier), read(self.path.parent / NAME).choices)
            for part in parts:
                Replayer(part.binding)  # raises for a binding that does not fit
        except (NoBinding, BindingError, BadLock) as error:
            raise self.CollectError(str(error)) from None
        except SpecError as error:
            raise self.CollectError("\n".join(map(rendered, error.diagnostics))) from None
        for part in parts:
            yield PartCollector.from_parent(self, name=part.name, run=Run(part, budget))
        bound = BoundSpec(self.path, cls, checked)
        for number, control in enumerate(cls.controls):
            runs = partial(_check_control, bound, number)
            yield CheckItem.from_parent(self, name=f"control: {control.name}", check=runs)


class Run(Struct, dict=True):
    """One suite in this process, whose cases share common work."""

    part: Part
    budget: SuiteBudget

    @cached_property
    def suite(self) -> Suite:
        """The cases."""
        return self.part.suite(self.budget)

    @cached_property
    def runner(self) -> Runner[Any]:
        """The runner for the cases run in this process."""
        return Runner(Replayer(self.part.binding), self.suite)

    def check_case(self, case: SuiteCase, properties: Properties) -> None:
        """Run a case; a comparison that does not detect a wrong value also fails."""
        runner = self.runner
        result = runner.run(case)
        classes = {number for classes in case.classes for number in classes}
        spec = self.part.instance.program.path
        properties += [("spec", spec), ("steps", result.taken), ("classes", len(classes))]
        if result.divergence is not None:
            raise Diverges(self._report(case, result.divergence))
        # Each case carries the check of the comparison, since pytest may run any of them alone.
        if runner.done.blind_to:
            raise Diverges(f"vacuous: a wrong value of {', '.join(runner.done.blind_to)} was not detected")

    def _report(self, case: SuiteCase, divergence: Divergence) -> str:
        """The report of a diverging case, on the shortest path found."""
        # With its own replayer: the report is then the output of `specchk conform --case` for this case
        # alone.
        alone = run_suite(Replayer(self.part.binding), self.suite, cases=[case])
        diverged = alone.divergence or divergence
        return self._render(replace(alone, suite=f"case {case.id}", divergence=diverged, coverage=None))

    def check_whole(self, properties: Properties) -> None:
        """Run a suite that does not consist of cases; one that is vacuous or ended by a budget also fails."""
        result = run_part(self.part, self.budget)
        properties += [("states", result.states), ("steps", result.steps)]
        if result.divergence is not None or result.vacuous or not result.complete:
            raise Diverges(self._render(result))

    def _render(self, result: SuiteResult) -> str:
        return visible(render(self.part, shrunk_result(Replayer(self.part.binding), result)))


def _check_control(bound: BoundSpec, number: int, properties: Properties) -> None:
    """Run a control of the gate, which must detect the error."""
    trial = trials(bound.checked, BUDGETS["gate"].max_states)(bound.cls, number)
    tried = try_control(bound.cls, trial)
    if tried.outdated:
        raise Diverges(f"the control is outdated: {tried.outdated}")
    properties.append(("found", tried.divergence))
    if not tried.divergence:
        raise Diverges("vacuous: no divergence was found with this control")


class PartCollector(pytest.Collector):
    """A suite: an item for each case, or one for the whole suite."""

    def __init__(self, *, run: Run, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = run

    def collect(self) -> Iterator[pytest.Item]:
        """The cases in the suite's order."""
        run = self.run
        if run.part.at.suite not in MADE_OF_CASES:
            yield CheckItem.from_parent(self, name=run.part.at.suite, check=run.check_whole)
            return
        for case in run.suite.cases:
            yield CheckItem.from_parent(self, name=case.name, check=partial(run.check_case, case))


class CheckItem(pytest.Item):
    """A check whose failure is a report; it receives the list to which it adds its properties."""

    def __init__(self, *, check: Callable[[Properties], None], **rest: Any) -> None:
        super().__init__(**rest)
        self.check = check

    def runtest(self) -> None:
        """Run the check."""
        with contained():
            self.check(self.user_properties)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report alone; for other exceptions, the traceback."""
        if isinstance(excinfo.value, Diverges):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The origin of the item, for the heading of a failure."""
        return self.path, None, self.nodeid
