"""`specchk run --prove` and `--depth K`: verdicts of the symbolic engine on logs of any length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import click
from msgspec.structs import replace

from specchk.cli.common import leave, rejections, width
from specchk.cli.engines import loaded, refuse_temporal
from specchk.cli.exits import of_verdict
from specchk.cli.groups import option
from specchk.cli.options.forms import Outputs
from specchk.compile.instantiate import Instance
from specchk.processes import cores
from specchk.report.proof import proof_json, render_proof
from specchk.search.budget import Budget
from specchk.search.proof import Proof, ProofCosts, Suggestion
from specchk.search.verdict import Inconclusive, Outcome, Statistics


@dataclass(frozen=True, slots=True)
class ProofChoice:
    """A proof, or a check of all behaviours of some length, for unbounded offsets."""

    heading: ClassVar[str] = "Unbounded offsets"
    prove: bool = option("--prove", help="Prove the invariants by induction, for unbounded offsets.")
    k: int | None = option("--k", help="With --prove: use k-induction with k = N.")
    suggest: bool = option("--suggest", help="With --prove: search for invariants that complete the proof.")
    depth: int | None = option(
        "--depth",
        type=click.IntRange(min=0),
        metavar="K",
        help="Check every behaviour of up to K steps, for unbounded offsets.",
    )
    query_seconds: float = option(
        "--query-seconds", default=60.0, help="Time limit for each query to the solver."
    )

    @property
    def is_requested(self) -> bool:
        """Whether one of these two was requested."""
        return self.prove or self.depth is not None

    def check(self, outputs: Outputs) -> None:
        """Reject incompatible options."""
        if self.prove and self.depth is not None:
            raise click.UsageError("--prove is for all lengths and --depth for bounded ones: give only one")
        if self.k is not None and not self.prove:
            raise click.UsageError("--k is the length of the induction; it requires --prove")
        if self.suggest and (not self.prove or (self.k or 1) > 1):
            raise click.UsageError("--suggest completes a proof by induction from one state: with --prove")
        if self.prove and (outputs.itf or outputs.draw or outputs.html or outputs.show):
            raise click.UsageError("a proof has no counterexample to show: with --prove, use --json")

    def answer(
        self, instance: Instance, budget: Budget, workers: int | None, *, as_json: bool
    ) -> Outcome | Proof:
        """The result of the unrolling or the proof; exits where there is neither."""
        refuse_temporal(instance.program, "--prove" if self.prove else "--depth", as_json=as_json)
        if self.depth is not None:
            return _bounded(instance, self, budget, as_json=as_json)
        return _proof(instance, self, budget, workers or cores(), as_json=as_json)


def finish_proof(proof: Proof, *, as_json: bool) -> NoReturn:
    """Report a proof, and exit with the code of its verdict."""
    code = of_verdict(proof.verdict)
    leave(
        code, as_json=as_json, json=lambda: proof_json(proof, int(code)),
        text=lambda: render_proof(proof, width()),
    )  # fmt: skip


def _proof(
    instance: Instance, unbounded: ProofChoice, limits: Budget, workers: int, *, as_json: bool
) -> Proof:
    engine = loaded("specchk.symbolic.induction.prove")
    options = engine.ProofOptions(unbounded.k or 1, workers, unbounded.query_seconds, limits)
    try:
        program, suggestion = instance.program, None
        # Before the proof: with the lemmas among the invariants it is a proof of these as well, so that a
        # wrong one fails and proves nothing.
        if unbounded.suggest:
            suggestion = _suggestion(instance, limits)
            lemmas = tuple([prop for prop, _ in suggestion.lemmas])
            program = replace(program, invariants=(*program.invariants, *lemmas))
        proof: Proof = replace(engine.prove(program, options), suggestion=suggestion)
    except loaded("specchk.symbolic.induction.encode.scope").Unencodable as reason:
        verdict = _unencodable(instance, reason, as_json=as_json)
        return Proof(instance.program, options.k, verdict, (), (), (), ProofCosts(0, 0, 0, 0, 0.0, 0.0))
    return proof


def _suggestion(instance: Instance, limits: Budget) -> Suggestion:
    """Lemmas for the model's invariants, as invariants of the model."""
    words = loaded("specchk.symbolic.induction.templates").Vocabulary(
        instance.lowering.named_types(), instance.lowering.definitions()
    )
    suggestion: Suggestion = loaded("specchk.symbolic.induction.suggest").suggest(
        instance.program, instance.expression, limits, words
    )
    return suggestion


def _unencodable(instance: Instance, reason: Exception, *, as_json: bool) -> Inconclusive:
    """The verdict without an encoding; for an unbounded offset, exit with S701 as in a search."""
    with rejections(as_json=as_json):
        loaded("specchk.symbolic.legality").check(instance.program)
    return Inconclusive(f"this model cannot be encoded: {reason}", budget=False)


def _bounded(instance: Instance, unbounded: ProofChoice, limits: Budget, *, as_json: bool) -> Outcome:
    engine = loaded("specchk.symbolic.induction.bmc")
    program = instance.program
    try:
        outcome: Outcome = engine.bounded(program, unbounded.depth, limits, unbounded.query_seconds)
    except loaded("specchk.symbolic.induction.encode.scope").Unencodable as reason:
        verdict = _unencodable(instance, reason, as_json=as_json)
        nothing = Statistics(distinct=0, generated=0, depth=1, levels=(), seconds=0.0, queries=0)
        return Outcome(program, "symbolic", verdict, nothing, (0,) * len(program.points))
    return outcome
