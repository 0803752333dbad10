"""Suites cached on disk (`kept`), by a name derived from all their dependencies.

That is: the texts of the spec and the parser's sources, the model with its constants, the suite's kind and
bounds, and the sources of the rooms that compute it.  The program is not read, since these determine it.
"""

from __future__ import annotations

from collections.abc import Sequence

from specchk import kept
from specchk.compile.instantiate import Instance
from specchk.conform.covers.cases import Suite, as_json, from_json
from specchk.conform.covers.cover import build_suite
from specchk.conform.covers.lassos import ROUNDS
from specchk.conform.covers.tours import MOST_SEQUENCES
from specchk.lang.syntax.kept_trees import PARSER

# The sources that determine a suite: those that compile a program from texts, and those that cover it, with
# the components of lassos.  Code that executes, locks or reports a suite does not matter.
ROOMS = ("lang", "ir", "meaning", "compile", "search/liveness", "conform/covers")


def cached_suite(
    instance: Instance,
    kind: str = "classes",
    bounds: Sequence[tuple[str, str]] = (),
    max_states: int | None = None,
    sequences: int = MOST_SEQUENCES,
    rounds: int = ROUNDS,
) -> Suite:
    """As `build_suite`, from the cache if available."""
    path = kept.place("suites", suite_key(instance, kind, bounds, (max_states, sequences, rounds)))
    data = kept.read(path)
    if data is not None:
        return from_json(data.decode())
    suite = build_suite(instance.program, kind, bounds, max_states, sequences, rounds)
    kept.write(path, as_json(suite).encode())
    return suite


def suite_key(
    instance: Instance, kind: str, bounds: Sequence[tuple[str, str]], limits: tuple[int | None, ...]
) -> str:
    """A name that identifies all dependencies of a suite."""
    # Whole texts: classes are described in words of the source, so that a change of names alone makes another
    # suite.
    texts = [source.text for source in instance.lowering.ground.checked.spec.all_sources()]
    model = instance.model
    about = (
        texts, model.name, model.bindings, model.actions, model.properties, model.ignored, model.members,
        kind, tuple(bounds), limits, PARSER,
    )  # fmt: skip
    return kept.name_of(kept.sources(*ROOMS), about)
