"""Reports of proofs by induction: the verdict, the proved properties, and the steps not excluded.

Such a step starts in a state that satisfies all invariants, reachable or not; the report never calls
it a violation unless the state is known to be reached.
"""

from __future__ import annotations

from typing import Any

from specchk.ir.program import Program, allows_any_end
from specchk.ir.types import has_horizon
from specchk.report import text
from specchk.report.json import model_json, trace_json, violation_json
from specchk.search.proof import Failure, Proof, Suggestion
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Violated, name_of, violations_of

SCHEMA = "specchk.proof/1"


def render_proof(proof: Proof, width: int) -> str:
    """The whole report of `--prove`."""
    lines = [_headline(proof), *text.paragraphs(_details(proof), width, 2)]
    # A state that was reached comes first: it is an error of the spec, not of the proof.
    for violation in violations_of(proof.verdict):
        lines += ["", *text.violation_lines(proof.program, violation, width)]
    if proof.suggestion is not None:
        lines += ["", *_suggestion_lines(proof.suggestion, width)]
    for failure in proof.failures:
        if not failure.reached:
            lines += ["", *_failure_lines(proof, failure, width)]
    lines += [
        f"  unknown: {u.kind} `{u.name}` after `{u.action}`: the solver gave up ({u.reason})"
        for u in proof.unanswered
    ]
    return "\n".join(lines)


def _headline(proof: Proof) -> str:
    name = f"{proof.program.spec}, model {proof.program.model}"
    by = "induction" if proof.k == 1 else f"{proof.k}-induction"
    match proof.verdict:
        case Holds():
            certified = f" (certificate: {proof.certificate})" if proof.certificate is not None else ""
            return f"holds by {by}, {_offsets(proof) or 'in every state'}: {name}{certified}"
        case HoldsWithin():
            parts = [f"holds within {', '.join(proof.verdict.bound)} by {by}", _offsets(proof)]
            return f"{', '.join(filter(None, parts))}: {name}"
        case Inconclusive():
            return f"inconclusive: {proof.verdict.reason}: {name}"
        case Violated():
            return f"violated: {text.what(proof.verdict.violations[0])}: {name}"
    raise AssertionError(proof.verdict)


def _offsets(proof: Proof) -> str:
    named = [horizon.partition("=")[0] for horizon in proof.program.horizons if "=" in horizon]
    plain = [horizon for horizon in proof.program.horizons if "=" not in horizon]
    parts = {"for every value of": named, "beyond": plain}
    return " and ".join(f"{words} {', '.join(names)}" for words, names in parts.items() if names)


def _details(proof: Proof) -> list[str]:
    effort, program = proof.effort, proof.program
    copies = f" ({effort.alike} more are renamed copies)" if effort.alike else ""
    asked = [
        ("proved", proof.proved),
        ("not proved", [name for name in goals(program) if name not in proof.proved]),
        ("constraints", [prop.name for prop in program.constraints]),
        ("not checked", not_proved_by_induction(program)),
        ("omitted by the model", list(program.left_out)),
    ]
    seconds = f"{effort.seconds:.2f} s ({effort.seconds_solver:.2f} s in Z3)"
    settled = f"{text.counted(effort.settled, 'obligation')} settled without a query"
    many = effort.instances
    actions = "1 action with its arguments" if many == 1 else f"{many} actions with their arguments"
    return [
        f"{text.counted(effort.queries, 'query')}, {settled}, {actions}{copies}, {seconds}",
        "engine symbolic, induction",
        f"constants: {text.chosen_constants(program)}",
        *[f"{kind}: {', '.join(names)}" for kind, names in asked if names],
    ]


def not_proved_by_induction(program: Program) -> list[str]:
    """The claims of a model that an induction over its invariants does not decide."""
    deadlocks = [] if allows_any_end(program) else ["deadlock"]
    return [*[f"witness {prop.name}" for prop in program.witnesses], *deadlocks]


def _suggestion_lines(suggestion: Suggestion, width: int) -> list[str]:
    """The lemmas as written in a spec, and how they were found."""
    counts = f"{suggestion.tried} candidates, {suggestion.held} hold in {suggestion.states} enumerated states"
    counts += f", {suggestion.inductive} of these are inductive"
    if not suggestion.lemmas:
        return text.wrapped(f"no suggestion: of {counts}, and none helps", width, 0)
    head = text.wrapped(f"suggested: of {counts}, and the proof uses {len(suggestion.lemmas)}", width, 0)
    return [*head, *[f"  invariant {prop.name}: {lemma}" for prop, lemma in suggestion.lemmas]]


def goals(program: Program) -> list[str]:
    """The properties to be proved."""
    return [prop.name for prop in (*program.invariants, *program.step_invariants)]


def _failure_lines(proof: Proof, failure: Failure, width: int) -> list[str]:
    """The state before, the action, its changes, and the reason for the failure."""
    name = f"`{failure.name}`"
    claim = f"{name} may be undefined" if failure.kind == "undefined" else f"{name} is not inductive"
    # Every state of the model was enumerated; with horizons, there are more beyond.
    ends = any(has_horizon(variable.type) for variable in proof.program.variables)
    reach = {
        # Induction begins anywhere: that a state is reached is said only where a search has found it.
        None: "the first may be unreachable",
        False: "the first lies beyond the horizons" if ends else "the first is unreachable",
    }.get(failure.reached, "")
    states = "a state that satisfies" if len(failure.trace.steps) <= 1 else "states that satisfy"
    lines = [f"{claim}: {states} all invariants, and a step; {reach}:"]
    shown = text.trace_lines(proof.program, failure.trace, width)
    lines += ["  0  satisfies all invariants", *shown[1:]]
    return lines + (text.blame_lines(failure.blame, width) if failure.blame is not None else [])


def proof_json(proof: Proof, exit_code: int) -> dict[str, Any]:
    """The object that `specchk run --prove --json` prints."""
    program, verdict, effort = proof.program, proof.verdict, proof.effort
    return {
        "schema": SCHEMA,
        "spec": program.path,
        **model_json(program),
        "engine": "symbolic",
        "verdict": name_of(verdict),
        "bounds": list(verdict.bound) if isinstance(verdict, HoldsWithin) else [],
        "by": "induction",
        "k": proof.k,
        "reason": verdict.reason if isinstance(verdict, Inconclusive) else None,
        "certificate": proof.certificate,
        "proved": list(proof.proved),
        "not_checked": not_proved_by_induction(program),
        "left_out": list(program.left_out),
        "not_proved": [name for name in goals(program) if name not in proof.proved],
        "violations": [violation_json(program, violation) for violation in violations_of(verdict)],
        "counterexamples_to_induction": [
            {
                "kind": failure.kind,
                "property": failure.name,
                "first_state_reached": failure.reached,
                "trace": trace_json(program, failure.trace),
            }
            for failure in proof.failures
        ],
        "unknown": [
            {"kind": u.kind, "property": u.name, "action": u.action, "reason": u.reason}
            for u in proof.unanswered
        ],
        **({} if proof.suggestion is None else {"suggested": _suggestion_json(proof.suggestion)}),
        "queries": effort.queries,
        "settled": effort.settled,
        "instances": effort.instances,
        "renamed_copies": effort.alike,
        "seconds": round(effort.seconds, 6),
        "seconds_solver": round(effort.seconds_solver, 6),
        "exit_code": exit_code,
    }


def _suggestion_json(suggestion: Suggestion) -> dict[str, Any]:
    return {
        "invariants": [{"name": prop.name, "text": lemma} for prop, lemma in suggestion.lemmas],
        "candidates": suggestion.tried,
        "hold": suggestion.held,
        "states": suggestion.states,
        "inductive": suggestion.inductive,
    }
