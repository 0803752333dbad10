"""The identity of a search kept on disk: everything that determines its result.

A checkpoint and a ledger keep the identity of their search, and only a search with the same one continues
from them.  It lacks whatever does not decide the answer: budgets, workers, `strict` (which concerns the
counts at the end), where Spark took over, spans, comments.

It has parts so that a refusal can name those that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specchk import kept
from specchk.codegen import objects
from specchk.ir.program import Program
from specchk.native.compiler import ROOMS
from specchk.search.engine import Unusable
from specchk.search.symmetry import Renaming

Identity = dict[str, str]


def identity_of(
    program: Program,
    renamings: Sequence[Renaming],
    rooms: tuple[str, ...] = ROOMS,
    *,
    keep_going: bool,
    compact: bool,
) -> Identity:
    """The identity of a search, including the code of these top-level packages (`rooms`)."""
    p = program
    spec = (
        p.spec, p.sorts, p.variables, p.starts, p.inits, p.actions, p.constraints, p.deadlock_ok, p.points,
        p.horizons,
    )  # fmt: skip
    return {
        "version of specchk": kept.sources(*rooms),
        "version of LLVM": objects.version(),
        "kind of CPU": objects.processor(),
        "spec": kept.name_of(spec),
        "model": p.model,
        "constants": kept.name_of(p.constants),
        "properties": kept.name_of((p.invariants, p.step_invariants, p.witnesses, p.liveness, p.fairness)),
        # Not only whether it is on: which renamings are used depends on constants and properties.
        "ignored variables": kept.name_of(p.ignored),
        "symmetry": kept.name_of(list(renamings)),
        "--keep-going": str(keep_going),
        "--compact": str(compact),
    }


def refuse_others(what: str, known: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise `Unusable` if the data belong to another search."""
    other = [part for part in {**wanted, **known} if known.get(part) != wanted.get(part)]
    if other:
        raise Unusable(
            f"{what} belongs to another search, which differs in: {', '.join(other)}; "
            "resume that one, or choose another place"
        )
