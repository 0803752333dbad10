"""Suites cached on disk (`kept`), under a name made of all their dependencies.

That is: the program with the words of its spec (classes are told in them), the kind of suite and its
bounds, and the sources of the rooms that compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specchk import kept
from specchk.conform.covers.cases import Suite, as_json, from_json
from specchk.conform.covers.cover import build_suite
from specchk.conform.covers.lassos import ROUNDS
from specchk.conform.covers.tours import MOST_SEQUENCES
from specchk.ir.program import Program
from specchk.ir.walk import expressions

# Whose sources decide what a suite is: those that make a program with its spans, of which a name has only the
# texts, and those that cover it, with the components that lassos are of.  What takes, locks or reports a
# suite does not.
ROOMS = ("lang", "ir", "meaning", "compile", "search/liveness", "conform/covers")


def cached_suite(
    program: Program,
    kind: str = "classes",
    bounds: Sequence[tuple[str, str]] = (),
    max_states: int | None = None,
    sequences: int = MOST_SEQUENCES,
    rounds: int = ROUNDS,
) -> Suite:
    """As `build_suite`, from the cache where it is there."""
    key = suite_key(program, kind, bounds, (max_states, sequences, rounds))
    path = kept.place("suites", key)
    data = kept.read(path)
    if data is not None:
        return replace(from_json(data.decode()), key=key)
    suite = build_suite(program, kind, bounds, max_states, sequences, rounds)
    kept.write(path, as_json(suite).encode())
    return replace(suite, key=key)


def suite_key(
    program: Program, kind: str, bounds: Sequence[tuple[str, str]], limits: tuple[int | None, ...]
) -> str:  # fmt: skip
    """A name for all dependencies of a suite."""
    # Classes are described in words of the source, so that a change of names alone makes another suite.
    spans = [*(action.span for action in program.actions), *(expr.span for expr in expressions(program))]
    texts = sorted({span.source.text for span in spans})
    about = (
        program.model, program.sorts, program.variables, program.starts, program.inits, program.actions,
        program.constraints, program.points, texts, kind, tuple(bounds), limits,
    )  # fmt: skip
    return kept.name_of(kept.sources(*ROOMS), about)
