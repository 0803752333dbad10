"""An omission in a cache's name, a module or an engine is named by a law: each test plants a gap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from agreement import test_contract, toy_engine
from agreement.both import program_of
from laws import sources, test_floors, test_kept, test_sizes
from specchk.conform.covers import cache
from specchk.lang.syntax import kept_trees, tables
from specchk.native import compiler, engine
from specchk.search.engine import Options
from specchk.search.verdict import Holds, Outcome, Violated
from specchk.spark import engine as spark_engine
from specchk.symbolic.kernels import loading

# A room, and who keeps something that depends on it, under a name that has the sources of its rooms.
ROOMS = [
    (tables, "lang"), (kept_trees, "lang"), (compiler, "codegen"), (compiler, "ir"), (compiler, "native"),
    (loading, "codegen"), (cache, "meaning"), (cache, "conform/covers"),
    (engine, "native"), (spark_engine, "spark"),
]  # fmt: skip
# Edits of a module that leave something out, or let something in, and the law that names it.
EDITS: list[tuple[str, str, str, ModuleType, Callable[[], object]]] = [
    ("native.compiler", "program.fairness, ", "", test_kept,
     test_kept.test_a_kernel_s_name_has_all_of_a_program_that_is_compiled),
    ("native.compiler", "program.constraints, ", "", test_kept,
     test_kept.test_a_kernel_s_name_has_all_of_a_program_that_is_compiled),
    ("ir.walk", "", "def _keep():\n    kept.write(None, b'')\n", test_kept,
     test_kept.test_only_the_listed_modules_keep_something),
    ("report.text", "", "def _write(path):\n    path.write_text('')\n", test_kept,
     test_kept.test_files_are_written_whole_or_not_at_all),
    ("ir.nodes", "", "from specchk.search import engine\n", test_floors,
     test_floors.test_a_room_imports_only_rooms_below_it),
    ("meaning.step", "", "import z3\n", test_floors,
     test_floors.test_heavy_libraries_stay_in_their_rooms),
    ("cli.clarity", "", "def _hide():\n    import json\n", test_floors,
     test_floors.test_imports_are_at_the_top_except_the_listed_ones),
    ("search.findings", "", "_SEEN = {}\n", test_sizes,
     lambda: test_sizes.check(test_sizes.module_state(), "module_state", rewrite=False)),
]  # fmt: skip
SKIPS: dict[str, Callable[[Outcome], Outcome]] = {
    "a warning": lambda found: replace(found, warnings=found.warnings[1:]),
    "coverage": lambda found: replace(found, coverage=(0,) * len(found.coverage)),
    "a witness": lambda found: replace(found, witnesses=()),
    "a violation": lambda found: replace(found, verdict=_without_one(found)),
    "all violations": lambda found: replace(found, verdict=Holds()),
    "a level": lambda found: replace(
        found, statistics=replace(found.statistics, levels=found.statistics.levels[:-1])
    ),
    "a repeated state": lambda found: replace(
        found, statistics=replace(found.statistics, generated=found.statistics.distinct)
    ),
    "a step of a trace": lambda found: replace(
        found, witnesses=tuple((name, replace(t, steps=t.steps[1:])) for name, t in found.witnesses)
    ),
}
SPEC = """spec several
var n : 0..3 = 0
var m : bool = false
action up():
    n' = if n == 3 then 0 else n + 1
action flip():
    require n == 2
    m' = not m
action never():
    require n > 3
    m' = true
invariant low: n < 3
invariant calm: not m
reachable two: n == 2
"""


def _without_one(found: Outcome) -> Violated:
    assert isinstance(found.verdict, Violated)
    assert len(found.verdict.violations) > 1
    return replace(found.verdict, violations=found.verdict.violations[1:])


@pytest.mark.parametrize(("keeper", "room"), ROOMS, ids=lambda part: getattr(part, "__name__", part))
def test_a_room_missing_in_a_name_is_named(
    keeper: ModuleType, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result kept under a name without it would outlive a change of the room."""
    listed = test_kept.KEEPERS if keeper.__name__ in test_kept.KEEPERS else test_kept.RESUMED
    others = tuple(one for one in listed[keeper.__name__] if one != room)
    monkeypatch.setitem(listed, keeper.__name__, others or ("identity",))
    with pytest.raises(AssertionError):
        test_kept.test_a_name_has_every_module_that_decides(keeper.__name__)


@pytest.mark.parametrize("number", range(len(EDITS)), ids=lambda number: f"{EDITS[number][0]}-{number}")
def test_an_edit_that_leaves_something_out_is_named(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one module, with all others unchanged; without the edit the law holds, as its own test shows."""
    name, old, new, laws, law = EDITS[number]
    known = sources.modules()
    (module,) = (one for one in known if one.name == f"specchk.{name}")
    assert old in module.text
    text = module.text.replace(old, new) if old else module.text + new
    edited = sources.parsed(module.name, module.path, text)
    monkeypatch.setattr(laws, "modules", lambda: tuple(edited if one is module else one for one in known))
    with pytest.raises(AssertionError):
        law()


@pytest.mark.parametrize("skip", SKIPS)
def test_an_engine_that_skips_something_is_named(skip: str, tmp_path: Path) -> None:
    """By the contract of engines, in which an engine that skips nothing agrees."""
    program = program_of(SPEC, tmp_path)
    assert program is not None
    found = toy_engine.search(program, Options(keep_going=True))
    assert found.warnings
    assert found.witnesses
    test_contract.agrees(test_contract.TOY, found, program, keep_going=True)
    with pytest.raises(AssertionError):
        test_contract.agrees(test_contract.TOY, SKIPS[skip](found), program, keep_going=True)
