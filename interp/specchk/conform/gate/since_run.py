"""Runs what a change concerns, and proves on demand that nothing was left out wrongly.

Where everything is concerned, everything is run with its calls noted, and the map is kept for the
next time.  An audit runs each case that was left out, alone and with its calls noted: its steps must
run no function that has changed, and with all that can be probed on its way it must not diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from specchk.conform.gate.calls import CallTracer, Function, attributed, texts
from specchk.conform.gate.gate import BoundSpec
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.since import (
    CallMap,
    Revision,
    SincePlan,
    concerned,
    map_path,
    plan_since,
    read_map,
    write_map,
)
from specchk.conform.gate.tiers import MADE_OF_CASES, Part, SuiteBudget, run_part, run_parts
from specchk.conform.replay.cases import SuiteCase
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import PASSING, Runner, run_suite
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.work.forks import cores, each
from specchk.conform.work.sources import files_of, shown

ELSEWHERE = "the implementation is a process, whose calls are not recorded"
Calls = Mapping[str, frozenset[Function]]


@dataclass(frozen=True, slots=True)
class Since:
    """A run of the cases that a change affects: `results` of the parts, of `ran` of `all` cases."""

    plan: SincePlan
    parts: tuple[Part, ...]
    results: tuple[SuiteResult, ...]
    ran: int
    all: int


@dataclass(frozen=True, slots=True)
class _Code:
    """The implementation's files, by their shown paths."""

    folder: Path
    files: tuple[Path, ...]

    def names(self) -> dict[str, str]:
        return {str(path): shown(path, self.folder) for path in self.files}

    def sources(self) -> dict[str, str]:
        return {shown(path, self.folder): path.read_text(encoding="utf-8") for path in self.files}


def run_since(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, revision: str) -> Since:
    """Run the cases that the changes since a revision concern; raises `NoRevision`."""
    code = _code(bound)
    if bound.cls.runs_elsewhere:
        Revision(code.folder, revision).check()
        whole = run_parts(parts, budget)
        return Since(SincePlan(None, ELSEWHERE), tuple(parts), tuple(whole), _ran(whole), _ran(whole))
    path = map_path(bound.path, _about(bound, parts, budget))
    found = plan_since(code.folder, revision, code.files, read_map(path), code.sources())
    everything = sum(_cases(part, budget) for part in parts)
    if found.actions is None:
        results, calls = _traced(bound, parts, budget, code)
        # A run that ended early has not seen all calls, and a map of it would leave cases out that matter.
        if all(one.complete and not one.vacuous for one in results):
            noted = {action: tuple(sorted(ran)) for action, ran in calls.items()}
            write_map(path, CallMap(noted, texts(code.sources())))
        return Since(found, tuple(parts), tuple(results), _ran(results), everything)
    chosen = [(part, _concerned(part, budget, found.actions)) for part in parts]
    # Suites that are not made of cases have no steps to look at: they run as soon as anything is concerned.
    kept = [(part, cases) for part, cases in chosen if cases or (cases is None and found.actions)]
    results = each([_task(part, cases, budget) for part, cases in kept], cores(), PASSING)
    return Since(found, tuple(part for part, _ in kept), tuple(results), _ran(results), everything)


def _code(bound: BoundSpec) -> _Code:
    return _Code(bound.path.resolve().parent, files_of(bound.path, bound.cls.implementation))


def _about(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget) -> str:
    """All dependencies of a map besides the implementation: the spec, and the cases."""
    suites = [part.suite(budget) for part in parts if part.at.suite in MADE_OF_CASES]
    ids = [(suite.label, [case.id for case in suite.cases], suite.probes) for suite in suites]
    others = [(part.label, part.at.suite, budget) for part in parts]
    return sha256(repr((of_spec(bound.checked)[0], ids, others)).encode()).hexdigest()


def _cases(part: Part, budget: SuiteBudget) -> int:
    return len(part.suite(budget).cases) if part.at.suite in MADE_OF_CASES else 1


def _ran(results: Sequence[SuiteResult]) -> int:
    """The number of cases that were run; a suite that is not made of cases is one."""
    return sum(len(one.passed) + len(one.failures) or 1 for one in results)


def _concerned(part: Part, budget: SuiteBudget, actions: frozenset[str]) -> list[SuiteCase] | None:
    """The cases to run; None for a part that is not made of cases."""
    return concerned(part.suite(budget), actions) if part.at.suite in MADE_OF_CASES else None


def _task(part: Part, cases: Sequence[SuiteCase] | None, budget: SuiteBudget) -> Callable[[], SuiteResult]:
    def run() -> SuiteResult:
        if cases is None:
            return run_part(part, budget)
        suite = part.suite(budget)
        found = run_suite(Replayer(part.binding), suite, cases=cases)
        return replace(found, complete=found.divergence is None and suite.complete, coverage=None)

    return run


def _traced(
    bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, code: _Code
) -> tuple[list[SuiteResult], dict[str, set[Function]]]:
    """Run everything; the functions that ran, by action."""
    names = code.names()

    def task(part: Part) -> Callable[[], tuple[SuiteResult, Calls]]:
        def run() -> tuple[SuiteResult, Calls]:
            tracer = CallTracer()
            binding = attributed(bound.cls(part.instance.program), tracer)
            with tracer.running():
                # In this process alone (one worker): calls in another one would not be noted.
                result = run_part(replace(part, binding=binding), budget)
            return result, tracer.functions(names)

        return run

    found = each([task(part) for part in parts], cores(), PASSING)
    calls: dict[str, set[Function]] = {}
    for _, ran in found:
        for action, functions in ran.items():
            calls.setdefault(action, set()).update(functions)
    return [result for result, _ in found], calls


def audit(bound: BoundSpec, parts: Sequence[Part], budget: SuiteBudget, found: SincePlan) -> tuple[str, ...]:
    """The cases that a plan wrongly omitted; empty if there are none."""
    actions = found.actions
    if actions is None:
        return ()
    names = _code(bound).names()
    tasks = [_audit_task(bound, part, budget, actions, (found.changed, names)) for part in parts]
    return tuple(line for lines in each(tasks, cores(), PASSING) for line in lines)


def _audit_task(
    bound: BoundSpec, part: Part, budget: SuiteBudget, actions: frozenset[str],
    changed: tuple[frozenset[Function], Mapping[str, str]],
) -> Callable[[], list[str]]:  # fmt: skip
    def run() -> list[str]:
        if part.at.suite not in MADE_OF_CASES:
            return [] if actions else _audit_whole(bound, part, budget, changed)
        suite = part.suite(budget)
        kept = {case.id for case in concerned(suite, actions)}
        left_out = [case for case in suite.cases if case.id not in kept]
        return [line for case in left_out for line in _audit_case(bound, part, budget, case, changed)]

    return run


def _audit_case(
    bound: BoundSpec, part: Part, budget: SuiteBudget, case: SuiteCase,
    changed: tuple[frozenset[Function], Mapping[str, str]],
) -> list[str]:  # fmt: skip
    tracer = CallTracer()
    binding = attributed(bound.cls(part.instance.program), tracer)
    suite = part.suite(budget)
    with tracer.running():  # a runner of its own, so that it shares no steps with another case
        Runner(Replayer(binding), suite, "none").run(case)
    lines = [f"{part.label} {case.id} runs {name}" for name in _changed_names(tracer, *changed)]
    # Once more without the tracer and with all probes: more than the case that was left out would have
    # tried.
    found = run_suite(Replayer(part.binding), suite, cases=[case]).divergence
    if found is not None:
        lines.append(f"{part.label} {case.id} diverges: {found.kind} {found.step or ''}")
    return lines


def _audit_whole(
    bound: BoundSpec, part: Part, budget: SuiteBudget, changed: tuple[frozenset[Function], Mapping[str, str]]
) -> list[str]:
    tracer = CallTracer()
    binding = attributed(bound.cls(part.instance.program), tracer)
    with tracer.running():
        result = run_part(replace(part, binding=binding), budget)
    lines = [f"{part.label} {part.at.suite} runs {name}" for name in _changed_names(tracer, *changed)]
    return lines if result.divergence is None else [*lines, f"{part.label} {part.at.suite} diverges"]


def _changed_names(
    tracer: CallTracer, changed: frozenset[Function], names: Mapping[str, str]
) -> Sequence[str]:
    ran = frozenset().union(*tracer.functions(names).values())
    return sorted(f"{function} of {file}" for file, function in ran & changed)
