"""Runs the cases that a change affects, and proves on request that no case was wrongly omitted.

Where everything is concerned, everything is run with its calls noted, and the map is kept for the
next time.  An audit runs each case that was left out, alone and with its calls noted: its steps must
run no function that has changed, and with all that can be probed on its way it must not diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.covers.cases import MADE_OF_CASES, Suite, SuiteCase
from specchk.conform.gate import since
from specchk.conform.gate.calls import LASTING, REST, CallTracer, Function, attributed, texts
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.lasting import changed_values, imported, lasting_values, own_values
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.since import CallMap, Revision, SincePlan, concerned
from specchk.conform.gate.tiers import Part, SuiteBudget, run_part, run_parts
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import PASSING, Runner, run_suite
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.forks import each
from specchk.conform.work.sources import files_of, shown
from specchk.processes import cores

ELSEWHERE = "the implementation is a process, whose calls are not recorded"
T = TypeVar("T")
Calls = Mapping[str, frozenset[Function]]


class Since(Struct, frozen=True):
    """A run of the cases that a change affects: `results` of the parts, of `ran` of `all` cases."""

    plan: SincePlan
    parts: tuple[Part, ...]
    results: tuple[SuiteResult, ...]
    ran: int
    all: int


class _Code(Struct, frozen=True):
    """The implementation's files, by displayed path."""

    folder: Path
    files: tuple[Path, ...]

    def names(self) -> dict[str, str]:
        return {str(path): shown(path, self.folder) for path in self.files}

    def sources(self) -> dict[str, str]:
        return {shown(path, self.folder): path.read_text(encoding="utf-8") for path in self.files}


def run_since(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, revision: str) -> Since:
    """Run the cases affected by the changes since a revision; raises `NoRevision`."""
    code = _code(bound)
    if bound.cls.runs_elsewhere:
        Revision(code.folder, revision).check()
        whole = run_parts(parts, budget)
        return Since(SincePlan(None, ELSEWHERE), tuple(parts), tuple(whole), _ran(whole), _ran(whole))
    path = since.map_path(bound.path, _about(bound, parts, budget))
    plan = since.plan_since(code.folder, revision, code.files, since.read_map(path), code.sources())
    everything = sum(len(part.suite(budget).cases) if part.at.suite in MADE_OF_CASES else 1 for part in parts)
    if plan.actions is None:
        results, calls = _all_traced(bound, parts, budget, code)
        # A run that ended early has not seen all calls, and a map of it would leave cases out that matter.
        if all(result.complete and not result.vacuous for result in results):
            noted = {action: tuple(sorted(ran)) for action, ran in calls.items()}
            since.write_map(path, CallMap(noted, texts(code.sources())))
        return Since(plan, tuple(parts), tuple(results), _ran(results), everything)
    chosen = [
        (part, concerned(part.suite(budget), plan.actions) if part.at.suite in MADE_OF_CASES else None)
        for part in parts
    ]
    # Suites without cases have no steps to compare: they run as soon as anything is affected.
    kept = [(part, cases) for part, cases in chosen if cases or (cases is None and plan.actions)]
    results = each([partial(_run, part, cases, budget) for part, cases in kept], cores(), PASSING)
    return Since(plan, tuple(part for part, _ in kept), tuple(results), _ran(results), everything)


def _code(bound: BoundSpec) -> _Code:
    return _Code(bound.path.resolve().parent, files_of(bound.path, bound.cls.implementation))


def _about(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget) -> str:
    """All dependencies of a map besides the implementation: the spec, and the cases."""
    suites = [part.suite(budget) for part in parts if part.at.suite in MADE_OF_CASES]
    ids = [(suite.label, [case.id for case in suite.cases], suite.probes) for suite in suites]
    others = [(part.label, part.at.suite, budget) for part in parts]
    return sha256(repr((of_spec(bound.checked)[0], ids, others)).encode()).hexdigest()


def _ran(results: Sequence[SuiteResult]) -> int:
    """The number of cases that were run; a suite that does not consist of cases counts as one."""
    return sum(len(result.passed) + (result.failed is not None) or 1 for result in results)


def _run(part: Part, cases: Sequence[SuiteCase] | None, budget: SuiteBudget) -> SuiteResult:
    if cases is None:
        return run_part(part, budget)
    suite = part.suite(budget)
    result = run_suite(Replayer(part.binding), suite, cases=cases)
    return replace(result, complete=result.divergence is None and suite.complete, coverage=None)


def _traced(bound: BoundSpec, part: Part, run: Callable[[Part], T]) -> tuple[T, CallTracer]:
    """The result of running a part with a binding of its own, and the calls made."""
    tracer = CallTracer()
    with tracer.running():
        # Inside: objects that it creates exist in each case.
        binding = attributed(bound.cls(part.instance.program), tracer)
        return run(replace(part, binding=binding)), tracer


def _all_traced(
    bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, code: _Code
) -> tuple[list[SuiteResult], dict[str, set[Function]]]:
    """Run everything; return the functions that ran, by action."""
    names = code.names()
    before = imported(bound.path, names)

    # In this process alone (one worker): calls in another one would not be noted.
    def whole(one: Part) -> tuple[SuiteResult, list[str]]:
        own = own_values(one.binding, names)
        result = run_part(one, budget)
        return result, changed_values(own, own_values(one.binding, names))

    def run(part: Part) -> tuple[SuiteResult, Calls]:
        (result, changed), tracer = _traced(bound, part, whole)
        changed += changed_values(before.values, lasting_values(bound.cls, names))
        calls = tracer.functions(names)
        lasting = {(LASTING, name) for name in changed}
        return result, {**calls, REST: calls.get(REST, frozenset()) | lasting}

    traced = each([partial(run, part) for part in parts], cores(), PASSING)
    calls: dict[str, set[Function]] = {REST: set(before.calls)}
    for _, ran in traced:
        for action, functions in ran.items():
            calls.setdefault(action, set()).update(functions)
    return [result for result, _ in traced], calls


def audit(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, plan: SincePlan) -> tuple[str, ...]:
    """The cases that a plan wrongly omitted; empty if there are none."""
    if plan.actions is None:
        return ()
    names = _code(bound).names()
    tasks = [_Audit(bound, part, budget, plan.actions, plan.changed, names) for part in parts]
    return tuple(line for lines in each(tasks, cores(), PASSING) for line in lines)


class _Audit(Struct, frozen=True):
    """The audit of one part: a line for each error of a plan with the affected `actions`."""

    bound: BoundSpec
    part: Part
    budget: SuiteBudget
    actions: frozenset[str]
    changed: frozenset[Function]
    names: Mapping[str, str]

    def __call__(self) -> list[str]:
        if self.part.at.suite not in MADE_OF_CASES:
            return [] if self.actions else list(self._whole())
        suite = self.part.suite(self.budget)
        kept = {case.id for case in concerned(suite, self.actions)}
        return [line for case in suite.cases if case.id not in kept for line in self._case(suite, case)]

    def _case(self, suite: Suite, case: SuiteCase) -> Iterator[str]:
        def alone(part: Part) -> None:  # a separate runner, so that it shares no steps with another case
            Runner(Replayer(part.binding), suite, is_probing=False).run(case)

        yield from self._changed_calls(_traced(self.bound, self.part, alone)[1], case.id)
        # Again without the tracer and with all probes: more than the omitted case would have
        # tried.
        divergence = run_suite(Replayer(self.part.binding), suite, cases=[case]).divergence
        if divergence is not None:
            yield f"{self.part.label} {case.id} diverges: {divergence.kind} {divergence.step or ''}"

    def _whole(self) -> Iterator[str]:
        result, tracer = _traced(self.bound, self.part, lambda part: run_part(part, self.budget))
        yield from self._changed_calls(tracer, self.part.at.suite)
        if result.divergence is not None:
            yield f"{self.part.label} {self.part.at.suite} diverges"

    def _changed_calls(self, tracer: CallTracer, what: str) -> Iterator[str]:
        ran = frozenset().union(*tracer.functions(self.names).values())
        for name in sorted(f"{function} of {file}" for file, function in ran & self.changed):
            yield f"{self.part.label} {what} runs {name}"
