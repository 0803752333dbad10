"""A spec's text and a changed one, on an engine: the relation promised by the change holds."""

from __future__ import annotations

from pathlib import Path

from zoned import search_zones as zones

from agreement.both import in_time, program_of
from agreement.every_engine import DEPTH, LIMIT, QUERY_SECONDS, UNROLLED, ZONES, OnSpark
from agreement.metamorphic import Relation, Said, broken
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options, Unsupported
from specchk.search.verdict import Outcome
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.encode.scope import Unencodable
from specchk.symbolic.zones.engine import ZoneOptions

ENGINES = ("reference", "native", "symbolic", "depth", "spark")


def answer(
    engine: str, program: Program, *, symmetry: bool, keep_going: bool, on_spark: OnSpark | None = None
) -> Outcome | None:
    """An engine's result; None if it refuses the program, or takes too long."""
    try:
        match engine:
            case "reference":
                return in_time(reference.search(program, Options(LIMIT, symmetry, keep_going)))
            case "native":
                return in_time(
                    native.search(program, native.NativeOptions(LIMIT, symmetry, keep_going, workers=2))
                )
            case "symbolic":
                return in_time(zones(program, ZoneOptions(ZONES, symmetry, keep_going, workers=1)))
            case "depth":
                return in_time(bounded(program, DEPTH, UNROLLED, QUERY_SECONDS))
        return on_spark(program, symmetry, keep_going) if on_spark is not None else None
    except (SpecError, Unencodable, Unsupported):
        return None


def disagreement(
    engine: str,
    texts: tuple[str, str],
    relation: Relation,
    folder: Path,
    *,
    symmetry: bool,
    keep_going: bool,
    on_spark: OnSpark | None = None,
) -> list[str] | None:
    """The violated parts of the relation; None if there is nothing to compare."""
    programs = [program_of(text, folder) for text in texts]
    found = [
        answer(engine, program, symmetry=symmetry, keep_going=keep_going, on_spark=on_spark)
        for program in programs if program is not None
    ]  # fmt: skip
    said = [Said.of(outcome) for outcome in found if outcome is not None]
    if len(said) < 2:
        return None
    if engine == "depth":
        return _unrolled(*said, relation)
    return broken(*said, relation, counts=engine != "symbolic")


def _unrolled(first: Said, other: Said, relation: Relation) -> list[str] | None:
    """For --depth: it finds one violation of several, and gives no verdict if it finds none."""
    if relation.is_partial and (first.is_undefined or other.is_undefined):
        return None
    if first.shortest == other.shortest:
        return []
    return [f"a violation in {first.shortest} steps became one in {other.shortest}"]
