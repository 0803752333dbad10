"""Proof by k-induction over unbounded offsets: the queries, their processes, and their answers.

    initiation    the first k states of every behaviour satisfy every invariant (`bmc`)
    consecution   k states in a row that do are followed by states that do only (`induct`)

All invariants of the model are the hypothesis together, so an invariant that exists only for the
proof is an ordinary one.  Actions whose arguments differ by a renaming of sort elements that no
action and no invariant distinguishes are checked once.  Not checked: witnesses, deadlocks, liveness.
"""

from __future__ import annotations

from collections.abc import Container, Generator
from contextlib import closing
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from specchk.ir.nodes import Apply, Choose, Const, Expr, Or, Var
from specchk.ir.ops import Op
from specchk.ir.program import Program, Property, Same, nowhere, without_ends
from specchk.ir.types import BOOL, Map
from specchk.ir.typing import sorts_in
from specchk.ir.verify import judged
from specchk.ir.walk import inside, roots
from specchk.meaning.values import State, universe
from specchk.parallel import results_of
from specchk.search.budget import Budget, Meter
from specchk.search.engine import Options, Search, explore
from specchk.search.proof import Failure, Proof, ProofCosts, Unanswered
from specchk.search.reference import ReferenceEngine
from specchk.search.replay import ReplayFailed
from specchk.search.symmetry import Renaming, decisive_sorts, renamer, renamings_of
from specchk.search.verdict import (
    Holds,
    HoldsWithin,
    Inconclusive,
    Trace,
    Verdict,
    Violated,
    Violation,
    stopped_by,
)
from specchk.symbolic.confirmation import confirm
from specchk.symbolic.induction.bmc import is_whole, unrolled
from specchk.symbolic.induction.encode.steps import arguments
from specchk.symbolic.induction.encode.trees import plain
from specchk.symbolic.induction.induct import Induction, InductionWork, ObligationResult
from specchk.symbolic.induction.models import interrupt_at_limit
from specchk.symbolic.replay import Replay, ReplayPath

LOOK = Budget(max_seconds=5.0)  # for finding counterexamples to induction among the enumerated states
EACH = 8  # instances per task: each task encodes the hypothesis once
MAY_BE_LONG = "this may not be a shortest counterexample: a search without --prove shows one"
NO_INVARIANTS = "the model has no invariant to prove"


class ProofOptions(Struct, frozen=True):
    """The options of a proof: the length of induction, processes, and seconds for each query."""

    k: int = 1
    workers: int = 1
    query_seconds: float = 60.0
    budget: Budget = Budget()


def prove(program: Program, options: ProofOptions) -> Proof:
    """Try to prove the invariants and step invariants of a program by induction.

    Raises `Unencodable` where the program has something that has no encoding.
    """
    meter = Meter(options.budget)
    interrupt_at_limit(options.budget)
    try:
        return _tried(program, options, meter)
    except KeyboardInterrupt as interrupt:
        return _proof(program, options, stopped_by(interrupt), InductionWork(), (0, 0), meter)


def _tried(program: Program, options: ProofOptions, meter: Meter) -> Proof:
    goals = (*program.invariants, *program.step_invariants)
    if not goals:
        return _proof(
            program, options, Inconclusive(NO_INVARIANTS, budget=False), InductionWork(), (0, 0), meter
        )
    # k - 1 steps give the first k states: the base of the induction (Sheeran, Singh, Stalmarck, 2000).
    start = unrolled(without_ends(program), options.k - 1, options.budget)
    # If the first k states were not all checked, induction from them would prove nothing.
    if not is_whole(start, options.k - 1):
        return _proof(program, options, start.verdict, InductionWork(), (0, 0), meter)
    instances, alike = representatives(program)
    work, stopped = _all_work(program, options, instances, meter)
    proved = () if stopped else _proved(program, options, instances, work, meter)
    if proved:
        unproved = {(goal.kind, goal.name) for goal in goals if goal.name not in proved}
        confirm(without_ends(_without(program, unproved)))
    return _concluded(program, options, work, (len(instances), alike), meter, stopped, proved)


def _without(program: Program, dropped: Container[tuple[str, str]]) -> Program:
    """A program without the invariants and step invariants of these kinds and names."""
    invariants, steps = (
        tuple([prop for prop in props if (prop.kind, prop.name) not in dropped])
        for props in (program.invariants, program.step_invariants)
    )
    return replace(program, invariants=invariants, step_invariants=steps)


def _proved(
    program: Program, options: ProofOptions, instances: list[tuple[int, int]], work: InductionWork,
    meter: Meter,
) -> tuple[str, ...]:  # fmt: skip
    """The properties whose obligations hold with only invariants among them as hypotheses.

    A property proved with the help of an open invariant may be false.  So open invariants are dropped and the
    others tried again, until none is open (Houdini: Flanagan and Leino, 2001).  Queries are added to those of
    `work`.
    """
    open_ = work.open
    while True:
        # While a step may be undefined, the states after it are not considered, and nothing is proved.
        if any(kind == "undefined" for kind, _ in open_):
            return ()
        kept = _without(program, open_)
        goals = tuple([prop.name for prop in (*kept.invariants, *kept.step_invariants)])
        # Step invariants are goals, not hypotheses, so dropping some of them does not affect the others.
        if not goals or kept.invariants == program.invariants:
            return goals
        # Each round drops an invariant, so this terminates; and as unions of inductive sets are inductive,
        # the rest is the largest set that proves itself, except for those that the solver gave up on.
        program = kept
        again, stopped = _all_work(program, options, instances, meter)
        work.add(replace(again, answers=[]))  # its costs: the answers are those of the first round
        if stopped:
            return ()
        open_ = again.open


def representatives(program: Program) -> tuple[list[tuple[int, int]], int]:
    """One instance of each class of renamed copies, as (action, position), and the number left out."""
    renamings = _renamings(program)
    kept: list[tuple[int, int]] = []
    left_out = 0
    for index, action in enumerate(program.actions):
        seen: set[tuple[object, ...]] = set()
        for position, given in enumerate(arguments(program, action, "")):
            values = tuple([plain(tree) for tree in given.trees])
            # The first instance represents its class; the others are counted as renamed copies.
            if values in seen:
                left_out += 1
                continue
            for renaming in renamings:
                renames = [renamer(param.type, renaming) for param in action.params]
                seen.add(tuple([
                    rename(value) if value is not None else None
                    for rename, value in zip(renames, values, strict=True)
                ]))  # fmt: skip
            kept.append((index, position))
    return kept, left_out


def _renamings(program: Program) -> list[Renaming]:
    """The renamings that no action, invariant or constraint detects; initial states may be affected."""
    bodies = [root for action in program.actions for root in roots(action.body)]
    # Initial states play no part in consecution, so they may name elements.
    bodies += [prop.body for prop in judged(program)]
    nodes = [node for body in bodies for node in inside(body)]
    chosen = [node.local for node in nodes if isinstance(node, Choose) and not node.unique]
    fixed = {*decisive_sorts(Same(program)), *chain.from_iterable(sorts_in(one.type) for one in chosen)}
    constants = {(node.type, node.value) for node in nodes if isinstance(node, Const)}
    # The keys of a map literal are the places of its values, so it names all of them without a `Const`.
    maps = [node.type for node in nodes if isinstance(node, Apply) and node.op is Op.MAP]
    keyed = {kind.key for kind in maps if isinstance(kind, Map)}
    constants |= {(key, value) for key in keyed for value in universe(key)}
    free = [sort for sort in program.sorts if sort.name not in fixed]
    # A renaming that keeps every constant of the code maps steps to steps and invariants to themselves, so
    # that a counterexample for one instance, renamed, is one for the other (Ip and Dill, 1996).
    candidates = renamings_of(program, free)
    return [r for r in candidates if all(renamer(kind, r)(value) == value for kind, value in constants)]


def instance_work(program: Program, options: ProofOptions, todo: list[tuple[int, int]]) -> InductionWork:
    """The results for all goals of some instances; run in a worker process."""
    induction = Induction(program, options.k, options.query_seconds)
    for index, position in todo:
        induction.check(index, position)
    return induction.work


def _all_work(
    program: Program, options: ProofOptions, instances: list[tuple[int, int]], meter: Meter
) -> tuple[InductionWork, Inconclusive | None]:
    total = InductionWork()
    try:
        # Closed on the way out, which ends the processes.
        with closing(_results(program, options, instances)) as results:
            for work in results:
                total.add(work)
                limit = meter.exceeded(0)
                if limit is not None:
                    return total, Inconclusive(limit, budget=True)
    except KeyboardInterrupt as interrupt:
        return total, stopped_by(interrupt)
    return total, None


def _results(
    program: Program, options: ProofOptions, instances: list[tuple[int, int]]
) -> Generator[InductionWork]:
    """The results of all tasks, in order.

    The counterexample that the solver finds depends on its earlier queries, so each task has a process of its
    own, whatever their number: the answers are the same on any number of processors.
    """
    tasks = [instances[first : first + EACH] for first in range(0, len(instances), EACH)]
    # With a single task, the number of processes cannot matter.
    if len(tasks) < 2:
        yield from (instance_work(program, options, task) for task in tasks)
        return
    given = [(program, options, task) for task in tasks]
    yield from results_of(instance_work, given, options.workers)


def _proof(
    program: Program, options: ProofOptions, verdict: Verdict, work: InductionWork, counts: tuple[int, int],
    meter: Meter, failures: tuple[Failure, ...] = (), proved: tuple[str, ...] = (),
) -> Proof:  # fmt: skip
    unanswered = tuple([
        Unanswered(a.kind, a.name, program.actions[a.action].name, a.found)
        for a in work.answers
        if isinstance(a.found, str)
    ])  # fmt: skip
    effort = ProofCosts(work.queries, work.settled, *counts, meter.seconds, work.seconds_solver)
    return Proof(program, options.k, verdict, proved, failures, unanswered, effort)


def _concluded(
    program: Program, options: ProofOptions, work: InductionWork, counts: tuple[int, int], meter: Meter,
    stopped: Inconclusive | None, proved: tuple[str, ...],
) -> Proof:  # fmt: skip
    failures = _failures(program, work.answers)
    # Failures of properties that were tried in time are looked up in the time that is left.
    ways, is_whole = _looked_up(program, failures, meter) if failures else ({}, True)
    # Of a search that was cut short, only the findings are known.
    looks = [index in ways or (False if is_whole else None) for index in range(len(failures))]
    failures = tuple([replace(f, reached=look) for f, look in zip(failures, looks, strict=True)])
    open_ = work.open
    verdict: Verdict
    if ways:
        verdict = Violated(tuple(sorted(ways.values(), key=_length)))
    elif failures:
        shown = ", ".join(f"`{name}`" for name in dict.fromkeys(f.name for f in failures))
        verdict = Inconclusive(f"induction does not prove {shown}", budget=False)
    elif stopped is not None:
        verdict = stopped
    elif open_:
        shown = ", ".join(f"`{name}`" for _, name in sorted(open_))
        verdict = Inconclusive(f"the solver gave up on {shown}", budget=False)
    else:
        # The hypothesis takes no step from a state outside the constraints, so nothing is known about the
        # states after it.
        within = tuple([prop.name for prop in program.constraints])
        verdict = HoldsWithin(within) if within else Holds()
    return _proof(program, options, verdict, work, counts, meter, failures, proved)


def _failures(program: Program, answers: list[ObligationResult]) -> tuple[Failure, ...]:
    """One failure for each property, the first one found, replayed."""
    failures: dict[tuple[str, str], Failure] = {}
    for answer in answers:
        path, key = answer.found, (answer.kind, answer.name)
        if isinstance(path, ReplayPath) and key not in failures:
            replay = Replay.along(program, path)
            trace = replay.trace(path.states)
            # A property that does not hold after a step may be false or undefined; the replay shows which.
            reasons = [(kind, blame) for kind, name, blame in replay.failed(trace) if name == answer.name]
            if not reasons:
                raise ReplayFailed(f"`{answer.name}` does not fail where the solver found it to")
            kind, blame = reasons[0]
            failures[key] = Failure(kind, answer.name, trace, blame)
    return tuple(failures.values())


def _length(violation: Violation) -> int:
    return len(violation.trace.steps) if violation.trace is not None else 0


def _looked_up(
    program: Program, failures: tuple[Failure, ...], meter: Meter
) -> tuple[dict[int, Violation], bool]:
    """The failures that are reachable, by number, and whether all states were enumerated.

    One search by the reference engine for all of them and for their first states, ended after a few seconds.
    """
    span = nowhere(program)
    differ = [
        Property("invariant", str(index), _differs(program, failure.trace.initial), 0, span)
        for index, failure in enumerate(failures)
    ]
    proved = {(p.kind, p.name) for p in (*program.invariants, *program.step_invariants)}
    tried = _without(program, proved - {(failure.kind, failure.name) for failure in failures})
    # "The state is not this one" as an invariant: its violation is a trace to the state.
    searched = without_ends(replace(tried, invariants=(*tried.invariants, *differ)))
    options = Options(meter.within(LOOK), symmetry=False, keep_going=True)
    search = Search(searched, options)
    explore(ReferenceEngine(search))
    found, ways = search.findings.found, dict[int, Violation]()
    for index, failure in enumerate(failures):
        way = found.get(("invariant", str(index)))
        if (shortest := found.get((failure.kind, failure.name))) is not None:
            ways[index] = shortest
        elif way is not None and way.trace is not None:
            trace = Trace(way.trace.initial, (*way.trace.steps, *failure.trace.steps))
            # The search would have met the failure itself, had it not been ended.
            ways[index] = Violation(failure.kind, failure.name, trace, failure.blame, notes=(MAY_BE_LONG,))
    return ways, not search.is_stopped


def _differs(program: Program, state: State) -> Expr:
    parts = tuple([
        Apply(BOOL, v.span, Op.NE, (Var(v.type, v.span, slot, primed=False), Const(v.type, v.span, value)))
        for slot, (v, value) in enumerate(zip(program.variables, state, strict=True))
    ])  # fmt: skip
    return Or(BOOL, nowhere(program), parts)
