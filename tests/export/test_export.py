"""An export has the states, steps and counts of its search, from any engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agreement.both import of_seed, program_of
from agreement.further_specs import further_spec
from export.exported import TABLES, exported, graph, of_text, program, rows
from specchk.export import listed, packed, parts, sources
from specchk.export.export import export
from specchk.export.manifest import opened
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.undefined import Undefined
from specchk.native import engine as native
from specchk.native.machine.layout import layout_of
from specchk.native.machine.loaded import Loaded
from specchk.native.tiers import load_edges
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, Unsupported
from specchk.search.verdict import Inconclusive, Outcome, Violated

MODELS = (
    ("two_round_fetch.spec", "small"), ("examples/two_phase_commit.spec", None), ("delivery.spec", "b13"),
    ("kafka/truncate_to_hw.spec", "loss"), ("kafka/ledger.spec", "b16"), ("kafka/kip320.spec", "small"),
    ("kafka/kip101.spec", "fast_failover"), ("isr_timing.spec", "today"), ("placement.spec", None),
    ("kafka/kip101.spec", "small"),
)  # fmt: skip
LIMIT = Budget(max_states=600)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)


Whole = Callable[[str, bool], Path]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Complete exports of one model, by engine and use of symmetry; each is created once."""

    @cache
    def made(engine: str, symmetry: bool) -> Path:
        place = tmp_path_factory.mktemp("whole") / "N"
        exported(program("kafka/kip320.spec", "small"), engine, place, Options(symmetry=symmetry))
        return place

    return made


def check_counts(outcome: Outcome, place: Path) -> None:
    """Check that the counts of the report are those of the tables."""
    found, counts = outcome.program, outcome.statistics
    (run,) = rows(place, "run")
    assert len(rows(place, "states")) == run["states"] == counts.distinct
    levels = [row["states"] for row in rows(place, "levels")]
    assert levels == list(counts.levels)[: len(levels)]
    assert sum(levels) == counts.distinct
    assert len(rows(place, "edges")) == run["edges"] == counts.generated - len(initial_states(found))
    assert [row["count"] for row in rows(place, "coverage")] == list(outcome.coverage)
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    assert [(row["kind"], row["property"]) for row in rows(place, "violations")] == [
        (one.kind, one.name) for one in violations
    ]
    traced = [len(one.trace.states) for one in violations if one.trace is not None]
    traced += [len(trace.states) for _, trace in outcome.witnesses]
    assert len(rows(place, "traces")) == sum(traced)
    about = opened(place)
    assert tuple(about.files) == TABLES
    assert about.about["states"] == counts.distinct


@pytest.mark.parametrize(("file", "model"), MODELS, ids=lambda part: str(part))
def test_counts_are_those_of_the_report(file: str, model: str | None, tmp_path: Path) -> None:
    """Ten models, natively: states, levels, steps, coverage, violations and traces."""
    check_counts(exported(program(file, model), "native", tmp_path / "N"), tmp_path / "N")


@pytest.mark.parametrize(("file", "symmetry"), [("two_round_fetch.spec", False), ("kafka/kip320.spec", True)])
def test_optimised_code_exports_the_same(
    file: str, symmetry: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long search optimises the code of its export, too: the same files, byte for byte."""
    monkeypatch.setenv(
        "XDG_CACHE_HOME", str(tmp_path / "cache")
    )  # whose optimised code a short one would take
    levels: list[bool] = []
    monkeypatch.setattr(sources, "load_edges", noted(levels))
    for name, after in (("quick", native.LONG), ("optimised", 0)):
        place = tmp_path / name
        options = native.NativeOptions(
            symmetry=symmetry, workers=1, optimise_after=after,
            on_end=lambda found, outcome, place=place: export(found, outcome, place),
        )  # fmt: skip
        native.search(program(file), options)
    assert levels == [False, True]
    quick, optimised = (
        {file.relative_to(place): file.read_bytes() for file in place.rglob("*.parquet")}
        for place in (tmp_path / "quick", tmp_path / "optimised")
    )
    assert quick.keys() == optimised.keys()
    # The table of the run has its seconds.
    assert {name.parts[0] for name in quick if quick[name] != optimised[name]} <= {"run"}


def noted(levels: list[bool]) -> Callable[..., Loaded]:
    """`load_edges`, recording whether its code is optimised."""

    def load(*args: Any, is_long: bool) -> Loaded:
        loaded = load_edges(*args, is_long=is_long)
        levels.append(loaded.is_optimised)
        return loaded

    return load


@pytest.mark.parametrize("file", ["two_round_fetch.spec", "kafka/kip101.spec", "delivery.spec"])
def test_the_engines_export_the_same_graph(file: str, tmp_path: Path) -> None:
    """State by state, and step by step with action and arguments; with symmetry, the same counts."""
    checked = program(file)
    for engine in ("native", "reference"):
        outcome = exported(checked, engine, tmp_path / engine, Options(symmetry=False))
        check_counts(outcome, tmp_path / engine)
        exported(checked, engine, tmp_path / f"{engine}-classes")
    assert graph(tmp_path / "native") == graph(tmp_path / "reference")
    for table in ("levels", "coverage"):
        assert rows(tmp_path / "native", table) == rows(tmp_path / "reference", table)
    classes = [rows(tmp_path / f"{engine}-classes", "levels") for engine in ("native", "reference")]
    assert classes[0] == classes[1]


def check_graphs(found: Program | None, folder: Path) -> None:
    """Native and reference export the same graph of a random spec; no two states have the same row."""
    assume(found is not None)
    assert found is not None
    try:
        layout_of(found)
        assume(len(initial_states(found)) > 0)
    except (Unsupported, Undefined):
        assume(False)
    wanted = Options(symmetry=False, keep_going=True, budget=Budget(max_states=3000))
    try:
        outcomes = [exported(found, engine, folder / engine, wanted) for engine in ("native", "reference")]
    except Unsupported:
        assume(False)
    assume(not any(isinstance(outcome.verdict, Inconclusive) for outcome in outcomes))
    check_counts(outcomes[0], folder / "native")
    known, steps = graph(folder / "native")
    assert (known, steps) == graph(folder / "reference")
    assert len(set(known)) == len(known)


@pytest.mark.system
@settings(max_examples=25, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_random_specs_export_the_same_graph(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every kind of type and statement that random specs have, those with constraints included."""
    folder = tmp_path_factory.mktemp("random")
    check_graphs(of_seed(seed, folder), folder)


@pytest.mark.system
@settings(max_examples=15, suppress_health_check=SHARED, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_further_specs_export_the_same_graph(
    random: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Types of any width and depth, and keys of any type."""
    folder = tmp_path_factory.mktemp("further")
    check_graphs(program_of(further_spec(random), folder), folder)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_budget_that_ran_out_is_in_the_data(engine: str, whole: Whole, tmp_path: Path) -> None:
    """The reason, the incompleteness, and the expanded states, each with all of its steps."""
    all_of_it, part = whole(engine, False), tmp_path / "part"
    checked = program("kafka/kip320.spec", "small")
    outcome = exported(checked, engine, part, Options(LIMIT, symmetry=False))
    check_counts(outcome, part)
    (run,) = rows(part, "run")
    assert not run["complete"]
    assert run["verdict"] == "inconclusive"
    assert run["reason"] == "the limit of 600 states (--max-states) was reached"
    warning = opened(part).warning
    assert warning is not None
    assert warning.endswith(f"does not have all reachable states: {run['reason']}")
    expanded = {row["id"] for row in rows(part, "states") if row["expanded"]}
    assert 0 < len(expanded) == run["expanded"] < run["states"]
    assert {row["source"] for row in rows(part, "edges")} <= expanded  # some have no steps
    (run,) = rows(all_of_it, "run")
    assert run["complete"]
    assert opened(all_of_it).warning is None
    if engine == "native":  # whose ids are the same in all exports of a model
        steps = [row for row in rows(all_of_it, "edges") if row["source"] in expanded]
        key = str
        assert sorted(steps, key=key) == sorted(rows(part, "edges"), key=key)


def test_a_violation_leaves_its_level_unexpanded(tmp_path: Path) -> None:
    """The search ended there, as `complete` and `expanded` show; the trace ends in a state of that level."""
    exported(program("kafka/kip101.spec", "fast_failover"), "native", tmp_path / "N")
    (run,) = rows(tmp_path / "N", "run")
    assert (run["verdict"], run["complete"]) == ("violated", False)
    found = {row["id"]: row for row in rows(tmp_path / "N", "states")}
    trace = [row for row in rows(tmp_path / "N", "traces") if row["kind"] == "invariant"]
    assert [found[row["id"]]["level"] for row in trace] == list(range(1, 12))
    assert not found[trace[-1]["id"]]["expanded"]


CUT = """\
spec cut
var n : 0..9 = 0
var id : 0..1 = 0
var ID : 0..1 = 1
action up():
    n' = n + 1
action down():
    require n > 2
    n' = n - 1
deadlock ok
constraint low: n < 5
"""


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_step_out_of_a_constraint_has_no_target(engine: str, tmp_path: Path) -> None:
    """Its state is neither counted nor expanded; names that readers cannot distinguish are changed."""
    exported(of_text(CUT, tmp_path), engine, tmp_path / "N")
    found = rows(tmp_path / "N", "states")
    assert [row["n"] for row in sorted(found, key=lambda row: row["n"])] == [0, 1, 2, 3, 4]
    assert {(row["id_"], row["ID__"]) for row in found} == {(0, 1)}
    last = next(row["id"] for row in found if row["n"] == 4)
    away = [row for row in rows(tmp_path / "N", "edges") if row["target"] is None]
    assert [(row["source"], row["action"]) for row in away] == [(last, "up")]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_trace_that_leaves_a_constraint_ends_without_an_id(engine: str, tmp_path: Path) -> None:
    """The last state was checked, and is not among the exported ones."""
    exported(of_text(f"{CUT}invariant few: n < 5\n", tmp_path), engine, tmp_path / "N")
    known = {row["id"] for row in rows(tmp_path / "N", "states")}
    ids = [row["id"] for row in rows(tmp_path / "N", "traces")]
    assert ids[-1] is None
    assert known.issuperset(ids[:-1])


MANY_ARGUMENTS = """\
spec many
type Pair = { a: 0..9, b: bool }
var n : 0..5 = 0
action pick(number: 0..4999, pair: Pair, other: 1..3):
    require number % 1000 == other and pair.a == n and pair.b
    n' = n + 1
action skip_one():
    n' = n + 2
deadlock ok
constraint low: n < 5
"""


def test_steps_of_many_arguments_have_their_texts(tmp_path: Path) -> None:
    """More texts than a dictionary should list; all are in it, for one file or several."""
    checked = of_text(MANY_ARGUMENTS, tmp_path)
    for engine in ("native", "reference"):
        check_counts(exported(checked, engine, tmp_path / engine), tmp_path / engine)
    assert graph(tmp_path / "native") == graph(tmp_path / "reference")


def test_row_groups_and_parts_of_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The boundaries of blocks, parts of blocks, lists of steps and parts change nothing."""
    checked = program("kafka/kip320.spec", "small")
    exported(checked, "native", tmp_path / "whole", Options(symmetry=False))
    monkeypatch.setattr(packed, "BLOCK", 100)
    monkeypatch.setattr(packed, "UNPACKED", 1 << 5)
    monkeypatch.setattr(listed, "STEPS", 300)
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    exported(checked, "native", tmp_path / "small", Options(symmetry=False))
    for table in ("states", "edges"):
        assert len(opened(tmp_path / "small").files[table]) > 4
        both = [sorted(map(str, rows(tmp_path / place, table))) for place in ("whole", "small")]
        assert both[0] == both[1]


def test_statistics_of_row_groups_are_those_of_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers skip row groups by them: wrong ones would omit states from an answer."""
    monkeypatch.setattr(packed, "BLOCK", 100)
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    exported(program("kafka/kip320.spec", "small"), "native", tmp_path, Options(symmetry=False))
    checked = 0
    for name in opened(tmp_path).files["states"]:
        file = pq.ParquetFile(tmp_path / name)
        for number in range(file.num_row_groups):
            values = file.read_row_group(number, columns=["level"]).column("level").to_pylist()
            index = file.schema_arrow.names.index("level")
            found = file.metadata.row_group(number).column(index).statistics
            assert (found.min, found.max, found.null_count) == (min(values), max(values), 0)
            checked += found.min < found.max
    assert checked > 0
    whole = rows(tmp_path, "states")
    for level in {row["level"] for row in whole}:
        count = pq.read_table(tmp_path / "states", filters=[("level", "=", level)]).num_rows
        assert count == sum(row["level"] == level for row in whole)


def test_the_same_search_has_the_same_ids_on_any_number_of_workers(whole: Whole, tmp_path: Path) -> None:
    """A native id is a hash of the state, so that exports can be joined."""
    checked, random = program("kafka/kip320.spec", "small"), Random(7)
    exported(checked, "native", tmp_path / "B", Options(Budget(max_states=random.randrange(1000, 2000))))
    first = {row["id"]: row for row in rows(whole("native", True), "states")}
    for row in rows(tmp_path / "B", "states"):
        assert first[row["id"]] | {"expanded": row["expanded"]} == row


def test_a_resumed_search_is_exported_whole(whole: Whole, tmp_path: Path) -> None:
    """The states of the checkpoint, too, with the steps of all states that either run expanded."""
    checked = program("kafka/kip320.spec", "small")
    place = tmp_path / "checkpoint"
    first = native.NativeOptions(LIMIT, workers=2, checkpoint=place, checkpoint_every_s=0.0)
    assert isinstance(native.search(checked, first).verdict, Inconclusive)
    again = native.NativeOptions(
        workers=1, checkpoint=place, resume=True,
        on_end=lambda found, outcome: export(found, outcome, tmp_path / "R"),
    )  # fmt: skip
    check_counts(native.search(checked, again), tmp_path / "R")
    assert graph(tmp_path / "R") == graph(whole("native", True))


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_interrupted_search_is_exported_as_far_as_it_went(
    engine: str, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C in the middle of a level: every found state is exported, with what is known of it."""
    checked = program("kafka/kip320.spec", "small")
    all_of_it = whole(engine, False)  # before `look` is another one
    real = Search.look

    def look(self: Search, states: int, generated: int, frontier: int) -> bool:
        if states > 1000:
            raise KeyboardInterrupt
        return real(self, states, generated, frontier)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "look", look)
        outcome = exported(checked, engine, tmp_path / "part", Options(symmetry=False))
    assert isinstance(outcome.verdict, Inconclusive)
    (run,) = rows(tmp_path / "part", "run")
    assert (run["complete"], run["reason"]) == (False, "it was interrupted")
    assert run["states"] == len(rows(tmp_path / "part", "states")) == outcome.statistics.distinct
    known, part = ({_bare(row) for row in rows(place, "states")} for place in (all_of_it, tmp_path / "part"))
    assert part < known
    assert 0 < run["expanded"] < run["states"]
    assert run["edges"] + 1 == run["generated"]


def _bare(row: dict[str, Any]) -> str:
    """A state without the parts that differ between exports."""
    return str({name: value for name, value in row.items() if name not in ("id", "expanded")})
