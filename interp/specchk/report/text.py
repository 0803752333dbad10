"""Reports as text: the verdict first, then the reasons, then the next command.

The same run gives the same text, but for the seconds.  A trace shows the first state whole and
then, for each step, its action and only the places it changed.  In a counterexample, variables that
never change and that the property does not read are folded into one paragraph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from textwrap import wrap
from types import MappingProxyType

from specchk.explore.scenario import ScenarioResult
from specchk.ir.footprint import switched_off
from specchk.ir.program import Constant, Program, Refinement
from specchk.meaning.explain import Blame
from specchk.meaning.values import show
from specchk.report.behaviour import ending, fair_line, length
from specchk.report.diff import changes, equations, irrelevant, parts
from specchk.search.verdict import (
    AbstractStep,
    Holds,
    HoldsWithin,
    Inconclusive,
    Obstacle,
    Outcome,
    Statistics,
    Symbolic,
    Trace,
    Violated,
    Violation,
    WalkCounts,
    violations_of,
)

# A model that switches half of a spec off has dozens of warnings, and the verdict would scroll away.
SHOWN_OF_A_KIND = 3
# A part of such a warning -> what there is more than `SHOWN_OF_A_KIND` of.
_KINDS = MappingProxyType({
    " the branch `": "branches are never taken", "` is never enabled": "actions are never enabled",
    " the antecedent `": "antecedents are never true", "` is ever checked": "sets are always empty",
})  # fmt: skip
# One variable takes no more room than the line that would fold it.
WORTH_FOLDING = 2
LONGEST_EXPRESSION = 80  # of its text; more would not help, at the place that is given
OBSTACLES_SHOWN = 8  # actions, the nearest first


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
        steps = "no behaviours"
        if numbers.depth:
            steps = f"behaviours of up to {counted(numbers.depth - 1, 'step')}"
        return [
            f"{steps}, {counted(numbers.queries, 'query')}, {numbers.seconds:.2f} s",
            f"engine {outcome.engine}, unrolled",
        ]
    seed = f", seed {outcome.seed}" if outcome.seed is not None else ""
    lines = _counts(numbers) if numbers.walks is None else _walks(numbers, numbers.walks)
    lines.append(f"engine {outcome.engine}, symmetry {numbers.symmetry}{seed}")
    if numbers.symbolic is not None:
        lines.append(_symbolic(numbers.symbolic))
        if numbers.symbolic.hulls:
            lines.append(_joined(numbers.symbolic))
    if numbers.horizon_cuts:
        horizons = ", ".join(outcome.program.horizons)
        were = "was" if numbers.horizon_cuts == 1 else "were"
        lines.append(f"bounded: {counted(numbers.horizon_cuts, 'step')} past {horizons} {were} not taken")
    if numbers.skipped:
        steps = f"{counted(numbers.skipped, 'step')} to states that differ from a known one"
        lines.append(f"skipped: {steps} in {outcome.program.ignored_names} only")
    if numbers.owed_at_horizon:
        bounds = ", ".join([*outcome.program.horizons, *(c.name for c in outcome.program.constraints)])
        states = counted(numbers.owed_at_horizon, "state")
        lines.append(f"bounded: behaviours with an open obligation end at {bounds} in {states}")
    return lines


def _counts(numbers: Statistics) -> list[str]:
    states = counted(numbers.distinct, "symbolic state" if numbers.symbolic is not None else "state")
    counts = f"{states}, {counted(numbers.generated, 'transition')}, depth {numbers.depth}"
    return [f"{counts}, {_paced(numbers, numbers.distinct, 'states')}"]


def _walks(numbers: Statistics, walks: WalkCounts) -> list[str]:
    """The counts of random walks."""
    failed = f" (number {walks.failed} failed)" if walks.failed is not None else ""
    longest = f"of at most {counted(numbers.depth - 1, 'step')}"
    return [
        f"{counted(walks.ended, 'walk')}{failed} {longest}, {counted(numbers.distinct, 'state')}",
        f"{counted(numbers.generated, 'step')}, {_paced(numbers, numbers.generated, 'steps')}",
    ]


def _paced(numbers: Statistics, count: int, unit: str) -> str:
    """The seconds, and the rate after the preparation."""
    searching = numbers.seconds - numbers.prepared_s
    return f"{numbers.seconds:.2f} s ({count / searching if searching > 0 else 0:.0f} {unit}/s)"


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
    split = f", split by {counted(numbers.splits, 'comparison')} of offsets" if numbers.splits else ""
    return (
        f"proved by {numbers.hulls} joined states of {counted(numbers.parts, 'control part')}{split}; "
        "witnesses and coverage are those of the exact search"
    )


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
    """The constants, the checked properties, by kind, and the reached witnesses."""
    lines = [f"{kind}: {', '.join(names)}" for kind, names in _lists(outcome)]
    return [f"constants: {constants(outcome.program)}", *lines, _deadlock(outcome.program)]


def _lists(outcome: Outcome) -> list[tuple[str, list[str]]]:
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
    return [(kind, names) for kind, names in listed if names]


def _deadlock(program: Program) -> str:
    return f"deadlock: {'allowed where `deadlock ok` holds' if program.deadlock_ok else 'none allowed'}"


def _not_taken(outcome: Outcome) -> list[str]:
    """The actions that no walk took though the constants allow them; none if a violation ended the walks."""
    walks, program = outcome.statistics.walks, outcome.program
    if walks is None or isinstance(outcome.verdict, Violated):
        return []
    names = (a.name for a, count in zip(program.actions, walks.taken, strict=True) if not count)
    return [name for name in names if name not in switched_off(program)]


def constants(program: Program) -> str:
    """The constants and sort sizes of the run."""
    return _constants(program, program.constants)


def chosen_constants(program: Program) -> str:
    """The constants without those of the default value, which are counted if they are many."""
    chosen = [const for const in program.constants if not const.is_default]
    others = len(program.constants) - len(chosen)
    if others <= SHOWN_OF_A_KIND:
        return constants(program)
    return f"{_constants(program, chosen)}; {others} {'more ' if chosen else ''}have their default values"


def _constants(program: Program, shown: Sequence[Constant]) -> str:
    from_sorts = [f"{sort.name} = {{{', '.join(sort.members)}}}" for sort in program.sorts]
    values = [f"{const.name} = {show(const.value, const.type)}" for const in shown]
    return ", ".join(from_sorts + values) or "(none)"


def render(outcome: Outcome, width: int = 80, command: str = "") -> str:
    """The whole report of a run; `command` repeats the run, for the last line."""
    program = outcome.program
    facts = [*statistics(outcome), f"constants: {chosen_constants(program)}"]
    facts += [_on_a_line(kind, names, width - 2) for kind, names in _lists(outcome)]
    lines = [headline(outcome), *paragraphs([*facts, _deadlock(program)], width, 2)]
    for violation in violations_of(outcome.verdict):
        if violation.kind != "vacuous":  # of which there is a warning
            lines += ["", *violation_lines(program, violation, width)]
    if outcome.warnings:
        lines += ["", *(f"warning: {warning}" for warning in _folded(outcome.warnings))]
    if command:
        lines += ["", f"next: {command}"]
    return "\n".join(lines)


def _folded(warnings: Sequence[str]) -> list[str]:
    """The warnings, with one line for many of a kind, so that the verdict stays visible."""
    for part, fault in _KINDS.items():
        alike = [warning for warning in warnings if part in warning]
        if len(alike) > SHOWN_OF_A_KIND:
            line = f"{len(alike)} {fault}; --html shows them in the spec, --json lists them"
            warnings = [*(warning for warning in warnings if warning not in alike), line]
    return list(warnings)


def _on_a_line(kind: str, names: Sequence[str], width: int) -> str:
    """A list of names, the last of which are counted if they do not fit on a line."""
    text = f"{kind}: {', '.join(names)}"
    for left in range(1, len(names)):
        if len(text) <= width:
            break
        text = f"{kind}: {', '.join(names[:-left])}, and {left} more"
    return text


def violation_lines(program: Program, violation: Violation, width: int) -> list[str]:
    """One violation: its trace, then the part of the property that decided it."""
    lines = [f"{what(violation)}:"]
    if violation.trace is not None:
        aside = irrelevant(program, violation.trace, violation.name)
        lines += trace_lines(program, violation.trace, width, aside)
    if violation.kind == "undefined" and violation.blame is not None:
        lines += _undefined(program, violation, violation.blame)
    # Not the guards that forbid each action: at an intended end all of them are as they should be.
    if violation.kind == "deadlock":
        why = "no action is enabled here" if program.actions else "the spec has no action"
        lines.append(f"  {why}; if this deadlock is intended, declare it: `deadlock ok when ...`")
    if violation.kind == "unreachable":
        within = f" within {', '.join(violation.bounds)}" if violation.bounds else ""
        beyond = "; those beyond may" if violation.bounds else ""
        lines += wrapped(f"all states{within} were searched, and none satisfies it{beyond}", width, 2)
    if violation.blame is not None:
        lines += blame_lines(violation.blame, width)
    if violation.abstract is not None:
        lines += abstract_lines(violation.abstract, width)
    lines += paragraphs(violation.notes, width, 7)
    if violation.fairness:
        lines += ["  and it is fair:", *paragraphs(map(fair_line, violation.fairness), width, 7)]
    if violation.condition:
        lines.append("  the same violation holds for all offsets with:")
        lines += paragraphs(violation.condition, width, 7)
    return lines


def trace_lines(
    program: Program, trace: Trace, width: int, aside: Collection[str] = frozenset()
) -> list[str]:  # fmt: skip
    """The first state in full, the variables `aside` last; then the changes of each step."""
    aside = aside if len(aside) >= WORTH_FOLDING else frozenset()
    initial = parts(program, trace.initial)
    shown = [f"{name} = {value}" for name, value in initial if name not in aside]
    if aside:
        same = ", ".join(f"{name} = {value}" for name, value in initial if name in aside)
        shown.append(f"unchanged, and irrelevant to the failure: {same}")
    lines = ["  0  initial state", *paragraphs(shown, width, 7)]
    digits = len(str(len(trace.steps)))
    for number, before, step in trace.numbered:
        lines.append(f"  {number:<{digits}}  {step}")
        changed = [change.text() for change in changes(program, before, step.state)]
        lines += paragraphs(changed or ["(nothing changes)"], width, 7)
    if trace.loop is not None:
        lines += wrapped(ending(trace), width, 2)
    return lines


def _undefined(program: Program, violation: Violation, blame: Blame) -> list[str]:
    """The expression, below its step, which has no end, if it is one of an action."""
    text = " ".join(blame.span.text.split())
    text = text if len(text) <= LONGEST_EXPRESSION else f"{text[: LONGEST_EXPRESSION - 3]}..."
    lines = [f"       `{text}` is undefined"]
    if violation.trace is not None and any(action.name == violation.name for action in program.actions):
        args = ", ".join(value for _, value in blame.bindings)
        return [f"  {len(violation.trace.steps) + 1}  {violation.name}({args})", *lines]
    return lines


def blame_lines(blame: Blame, width: int) -> list[str]:
    """The place and the reason: the deciding part, the values of bound names, and of operands."""
    bound = ", ".join(f"{name} = {value}" for name, value in blame.bindings)
    reasons = [blame.text, *(f"where {name} = {value}" for name, value in blame.values)]
    return [
        f"  because{f', for {bound}' if bound else ''}:",
        *paragraphs(reasons, width, 7),
        f"       at {blame.span.where}",
    ]


def abstract_lines(step: AbstractStep, width: int) -> list[str]:
    """The two states of the refined spec, and why no action leads from one to the other."""
    program, name = step.program, step.program.spec
    if step.before is None:
        head = wrapped(f"as a state of `{name}`:", width, 2)
        return [*head, *paragraphs(equations(program, step.after), width, 7)]
    obstacles = [f"{each.action} {'; '.join(_reasons(each))}" for each in step.obstacles[:OBSTACLES_SHOWN]]
    if len(step.obstacles) > OBSTACLES_SHOWN:
        obstacles.append(f"{len(step.obstacles) - OBSTACLES_SHOWN} more do not allow it either")
    return [
        *wrapped(f"as a step of `{name}`, from", width, 2),
        *paragraphs(equations(program, step.before), width, 7),
        "  to",
        *paragraphs([each.text() for each in changes(program, step.before, step.after)], width, 7),
        "  and of its actions",
        *paragraphs(obstacles, width, 7),
    ]


def _reasons(obstacle: Obstacle) -> Iterator[str]:
    for variable, given, image in obstacle.differs:
        yield f"makes `{variable}` {given}, not {image}"
    for guard in obstacle.guards:
        values = ", ".join(f"{name} = {value}" for name, value in (*guard.bindings, *guard.values))
        where = f" with {values}" if values else ""
        yield f"is not enabled: `{guard.text}`{where} ({guard.span.where})"


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


def paragraphs(texts: Iterable[str], width: int, indent: int) -> list[str]:
    """The lines of several texts, each as `wrapped`."""
    return [line for text in texts for line in wrapped(text, width, indent)]


def wrapped(text: str, width: int, indent: int) -> list[str]:
    """A text in indented lines of a given width, with later lines indented further."""
    # Below 40 columns nearly every word would have a line; a narrower terminal breaks the lines itself.
    space = " " * indent
    return wrap(text, max(width, 40), initial_indent=space, subsequent_indent=space + "    ",
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
