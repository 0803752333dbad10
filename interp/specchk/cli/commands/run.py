"""`specchk run`: check one model of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any

import click

from specchk.cli.common import Limits, ModelChoice, rejections
from specchk.cli.engines import CheckpointChoice, EngineChoice, explore
from specchk.cli.groups import GroupedCommand, option, takes
from specchk.cli.options.certificate import CertificateChoice
from specchk.cli.options.export import ExportChoice
from specchk.cli.options.forms import ClarityChoice, Outputs, finish, presented
from specchk.cli.options.prove import ProofChoice, finish_proof
from specchk.cli.options.repeating import watched
from specchk.cli.options.spark import ClusterSearch
from specchk.ir.ignored import refuse_ignored
from specchk.search.engine import Options
from specchk.search.engines import NAMES
from specchk.search.proof import Proof
from specchk.search.verdict import Outcome, Violated


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """The options of a search."""

    no_symmetry: bool = option("--no-symmetry", help="Count states that differ only by renaming as distinct.")
    keep_going: bool = option(
        "--keep-going", help="Continue after a violation; report a shortest one for each property."
    )
    strict: bool = option(
        "--strict",
        help="Fail if an action is never enabled, the left side of an implication is never true, the set of "
        "a `forall` is always empty, or no step is a step of a refined spec.",
    )


@click.command("run", cls=GroupedCommand)
@takes(
    choice=ModelChoice, engine=EngineChoice, way=SearchChoice, outputs=Outputs, limits=Limits,
    clarity=ClarityChoice, unbounded=ProofChoice, certificate=CertificateChoice,
    checkpoints=CheckpointChoice, cluster=ClusterSearch, exporting=ExportChoice,
)  # fmt: skip
@watched
def command(
    choice: ModelChoice, engine: EngineChoice, way: SearchChoice, outputs: Outputs, limits: Limits,
    clarity: ClarityChoice, unbounded: ProofChoice, certificate: CertificateChoice,
    checkpoints: CheckpointChoice, cluster: ClusterSearch, exporting: ExportChoice,
) -> None:  # fmt: skip
    """Check the properties of one model of the spec FILE; - is standard input.

    The whole state space is searched breadth first, so counterexamples are as short as possible.
    Exit codes: 0 holds, 10 violated, 11 deadlock, 20 stopped by a budget, 21 inconclusive for another
    reason, 30 the spec was rejected.
    """
    outputs.check()
    unbounded.check(outputs)
    certificate.check(engine.engine, proves=unbounded.prove, k=unbounded.k)
    cluster.check(engine.engine, resume=checkpoints.resume)
    exporting.check(engine.engine, proves=unbounded.is_requested)
    parts: list[Any] = []
    chosen = cluster.applied(checkpoints.applied(engine.chosen()), resume=checkpoints.resume)
    chosen = certificate.applied(chosen, parts)
    chosen, exported = exporting.applied(chosen)
    with limits.watched(spills=checkpoints.spill is not None) as budget:
        instance = choice.instance(as_json=outputs.as_json, is_verified=unbounded.is_requested)
        if exporting.export is not None:
            with rejections(as_json=outputs.as_json):
                refuse_ignored(instance.program, "an export has")
        shown = outputs.shown(instance)  # before the search: a mistake in one is reported at once
        if unbounded.is_requested:
            answer = unbounded.answer(instance, budget, engine.workers, as_json=outputs.as_json)
        else:
            # A certificate lists states unchanged, and its checker does not support renamings.
            symmetry = not way.no_symmetry and certificate.certificate is None
            options = Options(budget, symmetry, way.keep_going, way.strict, lowered=instance.lowered)
            answer = explore(instance.program, options, engine=chosen, quiet=outputs.as_json)
    if isinstance(answer, Proof):
        with certificate.of_proof(choice, instance, answer) as proof:
            finish_proof(proof, as_json=outputs.as_json)
    chosen_from = None if unbounded.is_requested else clarity
    instance, outcome = presented(instance, answer, limits, budget, shown, chosen_from)
    if unbounded.is_requested:
        finish(instance, outcome, outputs, "")
    again = _next(choice, engine.engine, outcome, outputs)
    with exported.reported(), certificate.of_search(choice, instance, outcome, parts) as certified:
        finish(instance, certified, outputs, again)


def _next(choice: ModelChoice, engine: str, outcome: Outcome, outputs: Outputs) -> str:
    """The next command for the user: none if the page is written, or the spec came from standard input."""
    if not isinstance(outcome.verdict, Violated) or outputs.html is not None or choice.file == "-":
        return ""
    words = ["specchk", "run", *choice.words]
    if engine != NAMES[0]:
        words += ["--engine", engine]
    words += [word for text in outputs.show for word in ("--show", quote(text))]
    return " ".join([*words, "--html", "report.html"])
