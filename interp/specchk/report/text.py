"""Reports as text: the verdict first, then the reasons, then the next command.

The same run gives the same text, but for the seconds.  A trace shows the first state whole and
then, for each step, its action and only the places it changed.  In a counterexample, variables that
never change and that the property does not read are folded into one paragraph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from textwrap import wrap

from specchk.explore.scenario import ScenarioResult
from specchk.ir.footprint import switched_off
from specchk.ir.program import Program, Refinement
from specchk.meaning.explain import Blame
from specchk.meaning.values import show
from specchk.report.abstract import abstract_lines
from specchk.report.behaviour import ending, fair_line, length
from specchk.report.diff import changes, irrelevant, parts
from specchk.report.forecast import compared
from specchk.search.verdict import (
    Holds,
    HoldsWithin,
    Inconclusive,
    Outcome,
    Statistics,
    Symbolic,
    Trace,
    Violated,
    Violation,
    WalkCounts,
)

# A model that switches half of a spec off has dozens of them, and the verdict would scroll away.
BRANCHES_SHOWN = 3
# One variable takes no more room than the line that would fold it.
WORTH_FOLDING = 2


def headline(outcome: Outcome) -> str:
    """The verdict in one line."""
    certified = f" (certificate: {outcome.certificate})" if outcome.certificate is not None else ""
    return f"{judgement(outcome)}: {outcome.program.spec}, model {outcome.program.model}{certified}"


def judgement(outcome: Outcome) -> str:
    """The verdict with its bounds, or the violation, or the reason why there is no verdict."""
    match outcome.verdict:
        case Holds():
            unbounded = outcome.statistics.symbolic is not None and outcome.program.horizons
            return "holds for unbounded offsets" if unbounded else "holds"
        case HoldsWithin():
            return f"holds within {', '.join(outcome.verdict.bound)}"
        case Inconclusive():
            return f"inconclusive: {outcome.verdict.reason}"
        case Violated():
            return f"violated: {what(outcome.verdict.violations[0])}"


def what(violation: Violation) -> str:
    """A violation in a few words: `invariant strong_isr in 9 steps`."""
    place = length(violation.trace) if violation.trace is not None else ""
    match violation.kind:
        case "deadlock":
            return f"deadlock{place}"
        case "undefined":
            return f"undefined value in `{violation.name}`{place}"
        case "unreachable":
            within = f" within {', '.join(violation.bounds)}" if violation.bounds else ""
            return f"witness `{violation.name}` is reached by no state{within}"
        case "vacuous":
            return violation.name
    return f"{violation.kind} `{violation.name}`{place}"


def statistics(outcome: Outcome) -> list[str]:
    """The counts of a run and its limits."""
    numbers = outcome.statistics
    if numbers.queries is not None:
        steps = f"behaviours of up to {numbers.depth - 1} step{_s(numbers.depth - 1)}"
        return [
            f"{steps}, {queries(numbers.queries)}, {numbers.seconds:.2f} s",
            f"engine {outcome.engine}, unrolled",
        ]
    searching = numbers.seconds - numbers.prepared_s
    rate = numbers.distinct / searching if searching > 0 else 0
    kind = "symbolic state" if numbers.symbolic is not None else "state"
    states = f"{numbers.distinct} {kind}{_s(numbers.distinct)}"
    counts = f"{states}, {numbers.generated} transition{_s(numbers.generated)}, depth {numbers.depth}"
    seed = f", seed {outcome.seed}" if outcome.seed is not None else ""
    lines = [f"{counts}, {numbers.seconds:.2f} s ({rate:.0f} states/s)"]
    if numbers.walks is not None:
        lines = _walks(numbers, numbers.walks)
    lines.append(f"engine {outcome.engine}, symmetry {numbers.symmetry}{seed}")
    if numbers.symbolic is not None:
        lines.append(_symbolic(numbers.symbolic))
        if numbers.symbolic.hulls:
            lines.append(_joined(numbers.symbolic))
    if numbers.horizon_cuts:
        horizons = ", ".join(outcome.program.horizons)
        cuts = numbers.horizon_cuts
        lines.append(
            f"bounded: {cuts} step{_s(cuts)} past {horizons} {'was' if cuts == 1 else 'were'} not taken"
        )
    if numbers.skipped:
        count, names = numbers.skipped, outcome.program.ignored_names
        steps = f"{count} step{_s(count)} to states that differ from a known one"
        lines.append(f"skipped: {steps} in {names} only")
    if numbers.owed_at_horizon:
        count = numbers.owed_at_horizon
        bounds = ", ".join([*outcome.program.horizons, *(c.name for c in outcome.program.constraints)])
        states = f"{count} state{_s(count)}"
        lines.append(f"bounded: behaviours with an open obligation end at {bounds} in {states}")
    return lines


def _walks(numbers: Statistics, walks: WalkCounts) -> list[str]:
    """The counts of random walks."""
    searching = numbers.seconds - numbers.prepared_s
    rate = numbers.generated / searching if searching > 0 else 0
    failed = f" (number {walks.failed} failed)" if walks.failed is not None else ""
    longest = f"of at most {numbers.depth - 1} step{_s(numbers.depth - 1)}"
    states = f"{numbers.distinct} state{_s(numbers.distinct)}"
    return [
        f"{walks.ended} walk{_s(walks.ended)}{failed} {longest}, {states}",
        f"{numbers.generated} step{_s(numbers.generated)}, {numbers.seconds:.2f} s ({rate:.0f} steps/s)",
    ]


def _symbolic(numbers: Symbolic) -> str:
    """The effort of the search on open offsets."""
    share = 100 * numbers.answered / numbers.questions if numbers.questions else 100
    begun = f", restarted {numbers.refinements} times" if numbers.refinements else ""
    reach = "" if numbers.reach is None else f", differences beyond {numbers.reach} dropped"
    solver = (
        f", Z3 checked {numbers.solver_checks} and pruned {numbers.solver_pruned} branches"
        if numbers.solver_checks
        else ""
    )
    return (
        f"unbounded offsets: {numbers.questions} comparisons, {share:.1f} % already decided, "
        f"{numbers.forks} forks, {numbers.covered} states contained in others{reach}{solver}{begun}"
    )


def _joined(numbers: Symbolic) -> str:
    """The proof by joined states, in words."""
    split = f"split by {numbers.splits} comparison{_s(numbers.splits)} of offsets" if numbers.splits else ""
    return (
        f"proved by {numbers.hulls} joined states of {numbers.parts} control part{_s(numbers.parts)}"
        f"{', ' if split else ''}{split}; witnesses and coverage are those of the exact search"
    )


def queries(count: int) -> str:
    """The number of queries to a solver, in words."""
    return "1 query" if count == 1 else f"{count} queries"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 property`, `2 properties`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("y") else f"{count} {noun}s"


def selected(program: Program) -> dict[str, list[str]]:
    """The properties that a model checks, by kind."""
    return {
        "invariants": [prop.name for prop in program.invariants],
        "step_invariants": [prop.name for prop in program.step_invariants if prop.kind == "step invariant"],
        "refinements": [prop.name for prop in program.refinements],
        "witnesses": [prop.name for prop in program.witnesses],
        "liveness": [prop.name for prop in program.liveness],
        "fairness": [("strong " if f.strong else "") + f.span.text for f in program.fairness],
    }


def checked(outcome: Outcome) -> list[str]:
    """The checked properties, by kind, and the reached witnesses."""
    program, names = outcome.program, selected(outcome.program)
    reached = {name for name, _ in outcome.witnesses}
    listed = [
        ("invariants", names["invariants"]),
        ("step invariants", names["step_invariants"]),
        ("refines", [_refined(prop) for prop in program.refinements]),
        ("witnesses reached", [name for name in names["witnesses"] if name in reached]),
        ("liveness", names["liveness"]),
        ("fair", names["fairness"]),
        ("constraints", [prop.name for prop in program.constraints]),
        ("actions disabled by these constants", list(switched_off(program))),
        ("actions not taken by the walks", _not_taken(outcome)),
    ]
    lines = [f"{kind}: {', '.join(names)}" for kind, names in listed if names]
    deadlock = "allowed where `deadlock ok` holds" if program.deadlock_ok else "none allowed"
    return [*lines, f"deadlock: {deadlock}"]


def _not_taken(outcome: Outcome) -> list[str]:
    """The actions that no walk took though the constants allow them; none if a violation ended the walks."""
    walks, program = outcome.statistics.walks, outcome.program
    if walks is None or isinstance(outcome.verdict, Violated):
        return []
    names = (a.name for a, count in zip(program.actions, walks.taken, strict=True) if not count)
    return [name for name in names if name not in switched_off(program)]


def constants(program: Program) -> str:
    """The constants and sort sizes of the run."""
    from_sorts = [f"{sort.name} = {{{', '.join(sort.members)}}}" for sort in program.sorts]
    return ", ".join(from_sorts + [f"{c.name} = {show(c.value, c.type)}" for c in program.constants])


def render(outcome: Outcome, width: int = 80, command: str = "") -> str:
    """The whole report of a run; `command` repeats the run, for the last line."""
    lines = [headline(outcome)]
    lines += _indented(statistics(outcome), width)
    lines += _indented([f"constants: {constants(outcome.program) or '(none)'}", *checked(outcome)], width)
    if isinstance(outcome.verdict, Violated):
        for violation in outcome.verdict.violations:
            lines += ["", *violation_lines(outcome.program, violation, width)]
    if outcome.warnings:
        lines += ["", *(f"warning: {warning}" for warning in _folded(outcome.warnings))]
    if command:
        lines += ["", f"next: {command}"]
    if outcome.forecast is not None:
        lines += ["", compared(outcome, outcome.forecast)]
    return "\n".join(lines)


def _folded(warnings: Sequence[str]) -> list[str]:
    """The warnings, with only the first of many untaken branches, so that the verdict stays visible."""
    branches = [warning for warning in warnings if " the branch `" in warning]
    if len(branches) <= BRANCHES_SHOWN + 1:
        return list(warnings)
    kept = [warning for warning in warnings if warning not in branches[BRANCHES_SHOWN:]]
    more = len(branches) - BRANCHES_SHOWN
    return [*kept, f"{more} more branches are never taken; --html shows them in the spec, --json lists them"]


def violation_lines(program: Program, violation: Violation, width: int) -> list[str]:
    """One violation: its trace, then the part of the property that decided it."""
    lines = [f"{what(violation)}:"]
    if violation.trace is not None:
        lines += trace_lines(
            program, violation.trace, width, irrelevant(program, violation.trace, violation.name)
        )
    # Not the guards that forbid each action: at an intended end all of them are as they should be.
    if violation.kind == "deadlock":
        why = "no action is enabled here" if program.actions else "the spec has no action"
        lines.append(f"  {why}; if this deadlock is intended, declare it: `deadlock ok when ...`")
    if violation.kind == "unreachable":
        lines += wrapped(_unreached(violation.bounds), width, 2)
    if violation.blame is not None:
        lines += blame_lines(violation.blame, width)
    if violation.abstract is not None:
        lines += [
            line
            for indent, text in abstract_lines(violation.abstract)
            for line in wrapped(text, width, indent)
        ]
    lines += [line for note in violation.notes for line in wrapped(note, width, 7)]
    if violation.fairness:
        lines.append("  and it is fair:")
        lines += [line for point in violation.fairness for line in wrapped(fair_line(point), width, 7)]
    if violation.condition:
        lines.append("  the same violation holds for all offsets with:")
        lines += [line for part in violation.condition for line in wrapped(part, width, 7)]
    return lines


def _unreached(bounds: tuple[str, ...]) -> str:
    """A description of the states in which a witness was not reached."""
    if not bounds:
        return "all states were searched, and none satisfies it"
    return f"all states within {', '.join(bounds)} were searched, and none satisfies it; those beyond may"


def trace_lines(
    program: Program, trace: Trace, width: int, aside: Collection[str] = frozenset()
) -> list[str]:  # fmt: skip
    """The first state in full, the variables `aside` last; then the changes of each step."""
    lines = ["  0  initial state"]
    aside = aside if len(aside) >= WORTH_FOLDING else frozenset()
    for name, value in parts(program, trace.initial):
        lines += wrapped(f"{name} = {value}", width, 7) if name not in aside else []
    if aside:
        same = ", ".join(
            f"{name} = {value}" for name, value in parts(program, trace.initial) if name in aside
        )
        lines += wrapped(f"unchanged, and irrelevant to the failure: {same}", width, 7)
    before = trace.initial
    digits = len(str(len(trace.steps)))
    for number, step in enumerate(trace.steps, 1):
        lines.append(f"  {number:<{digits}}  {step}")
        changed = changes(program, before, step.state)
        for change in changed:
            lines += wrapped(f"{change.path}: {change.before} -> {change.after}", width, 7)
        if not changed:
            lines.append("       (nothing changes)")
        before = step.state
    if trace.loop is not None:
        lines += wrapped(ending(trace), width, 2)
    return lines


def blame_lines(blame: Blame, width: int) -> list[str]:
    """The place and the reason: the deciding part, the values of bound names, and of operands."""
    bound = ", ".join(f"{name} = {value}" for name, value in blame.bindings)
    lines = [f"  because{f', for {bound}' if bound else ''}:"]
    lines += wrapped(blame.text, width, 7)
    lines += [line for name, value in blame.values for line in wrapped(f"where {name} = {value}", width, 7)]
    return [*lines, f"       at {blame.span.where}"]


def _refined(prop: Refinement) -> str:
    fair = prop.abstract.fairness
    return f"{prop.name} (fair {', '.join(f.span.text for f in fair)})" if fair else prop.name


def scenario_lines(program: Program, result: ScenarioResult, width: int) -> list[str]:
    """A failed scenario: the line, the reason, and the steps before it."""
    failure = result.failure
    if failure is None:
        return []
    lines = [f"scenario {result.name}: {failure.span.where}: {failure.message}"]
    lines += trace_lines(program, failure.trace, width) if failure.trace is not None else []
    return lines + (blame_lines(failure.blame, width) if failure.blame is not None else [])


def _indented(lines: list[str], width: int) -> Iterator[str]:
    for line in lines:
        yield from wrapped(line, width, 2)


def wrapped(text: str, width: int, indent: int) -> list[str]:
    """A text in indented lines of a given width, with later lines indented further."""
    # Below 40 columns nearly every word would have a line; a narrower terminal breaks the lines itself.
    space = " " * indent
    return wrap(text, max(width, 40), initial_indent=space, subsequent_indent=space + "    ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
