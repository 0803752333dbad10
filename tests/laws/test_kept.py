"""Files kept between runs: their names depend on everything that determines them, and they are complete."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from laws.sources import PACKAGES, last_name, modules
from specchk import kept
from specchk.conform.behaviour import transcripts
from specchk.conform.covers import cache
from specchk.conform.gate import controls
from specchk.conform.mutation import mutate
from specchk.lang.syntax import kept_trees, tables
from specchk.native import compiler, engine
from specchk.native.compiler import _essence
from specchk.spark import engine as spark_engine
from specchk.spark import ledger
from specchk.spark.worker.probe import write_archive
from specchk.symbolic.kernels import loading

TOP = PACKAGES["specchk"]
# The modules that keep something, or use what was kept, with the rooms whose sources its name has.
KEEPERS = {
    tables.__name__: tables.ROOMS,
    kept_trees.__name__: kept_trees.ROOMS,
    compiler.__name__: compiler.ROOMS,
    loading.__name__: loading.ROOMS,
    cache.__name__: cache.ROOMS,
    controls.__name__: (),  # the case to try first, under a name made of its suite's (`cache.ROOMS`)
    transcripts.__name__: transcripts.ROOMS,
    "specchk.conform.mutation.outcomes": (),  # named by `mutate`, of all of specchk
}
# What computes it, where that is not the module itself.
COMPUTE = {"specchk.conform.mutation.outcomes": mutate.__name__}
# Modules that write files of their own: why each may do so without `kept`.
WRITERS = {
    "specchk.kept": "keeps",
    "specchk.conform.adapter.workshop": "a private copy for one process, in a folder that nothing else reads",
    "specchk.export.storage": "slices and ledgers have their own trailers",
    "specchk.native.checkpoint": "so have checkpoints",
    "specchk.native.tiers": "the output of a process, which is a stream",
    "specchk.mcp.jobs": "likewise, and what the process reads, in a folder that nothing else reads",
}
ABOUT_SEARCH = {
    "engine",
    "simulation",
    "explain",
    "scout",
    "store",
    "visited",
    "checkpoint",
    "exchange",
    "mapped",
    "memory",
    "claims",
    "identity",
}
# What goes on with a search on disk, with the rooms whose sources are in the identity of that search.
RESUMED = {engine.__name__: compiler.ROOMS, spark_engine.__name__: ledger.ROOMS}


def behind(name: str) -> set[str]:
    """A module and all that it imports, directly or not."""
    graph = {module.name: {one.module for one in module.imports} for module in modules()}
    found, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one in graph and one not in found:
            found.add(one)
            todo += graph[one]
    return found


@pytest.mark.parametrize("keeper", [*KEEPERS, *RESUMED])
def test_a_name_has_every_module_that_decides(keeper: str) -> None:
    """A module that changes the result, and not its name, would leave an old answer in use."""
    rooms = {**KEEPERS, **RESUMED}[keeper]
    assert all((TOP / room).is_dir() for room in rooms)  # of anything else there are no sources
    assert not left_out(keeper, rooms)


def left_out(keeper: str, rooms: Sequence[str]) -> set[Path]:
    """The modules that determine a kept result, and are in none of these rooms."""
    files = {module.name: module.path for module in modules()}
    deciding = {files[name] for name in behind(COMPUTE.get(keeper, keeper)) if name != "specchk"}
    assert len(deciding) >= 3
    known = [TOP / name for name in rooms]
    # Files at the top are always in.
    deciding = {path for path in deciding if path.parent != TOP}
    return {path for path in deciding if rooms and not any(map(path.is_relative_to, known))}


@pytest.mark.parametrize("room", [room for room in cache.ROOMS if room != "compile"])
def test_a_room_that_a_suite_s_name_lacks_is_reported(room: str) -> None:
    """For each except that which creates the programs, which are given: the search for imports detects it."""
    assert left_out(cache.__name__, [known for known in cache.ROOMS if known != room])


def test_a_suite_is_cached_under_nothing_that_takes_it() -> None:
    """A change of how suites are replayed, locked or reported keeps them valid."""
    assert {room for room in cache.ROOMS if room.startswith("conform")} == {"conform/covers"}


def test_the_sources_of_rooms_are_all_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is changed, added, renamed or removed changes the digest, of any kind."""
    monkeypatch.setattr(kept, "SPECCHK", tmp_path)
    for name in ("lang/a.py", "lang/codes/b.py", "lang/grammar.lark", "ir/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    found = [digest("lang")]
    (tmp_path / "ir" / "c.py").write_text("changed")
    assert digest("lang") == found[0]
    for name in ("lang/codes/b.py", "lang/grammar.lark"):
        (tmp_path / name).write_text("changed")
        found.append(digest("lang"))
    (tmp_path / "lang" / "a.py").rename(tmp_path / "lang" / "z.py")
    found.append(digest("lang"))
    (tmp_path / "lang" / "z.py").unlink()
    found.append(digest("lang"))
    assert len(set(found)) == len(found)
    assert digest("lang", "ir") != digest("lang") != digest()


def test_files_that_come_and_go_are_no_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other runs compile modules meanwhile, each under a passing name first, and editors save beside."""
    monkeypatch.setattr(kept, "SPECCHK", tmp_path)
    (tmp_path / "lang" / "__pycache__").mkdir(parents=True)
    (tmp_path / "lang" / "a.py").write_text("a")
    found = digest("lang")
    for name in ("__pycache__/a.cpython-311.pyc.140213", "__pycache__/a.cpython-311.pyc", ".a.py.swp"):
        (tmp_path / "lang" / name).write_text("passing")
        assert digest("lang") == found
    # Of any other name, it may be gone when it is read.
    (tmp_path / "lang" / "4913").symlink_to(tmp_path / "gone")
    assert digest("lang") == found


def test_the_sources_in_a_zip_file_are_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors import specchk from a zip file, and keep results like others."""
    archive = tmp_path / "specchk.zip"
    monkeypatch.setattr(kept, "SPECCHK", archive / "specchk")
    found = set()
    for text in (b"one", b"two"):
        write_archive(archive, [("specchk/lang/a.py", text)])
        found.add(digest("lang"))
    assert len(found) == 2


def digest(*rooms: str) -> str:
    return kept.sources.__wrapped__(*rooms)


def test_only_the_listed_modules_keep_something() -> None:
    """A new cache is listed above, or its name would not be checked."""
    users = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and last_name(node.func) in ("place", "write", "read")
        and ast.unparse(node.func) in ("kept.place", "kept.write", "kept.read")
    }
    assert users == set(KEEPERS)


def test_files_are_written_whole_or_not_at_all() -> None:
    """A full disk, or a second run, leaves the old file or the new one: any other writer has a reason."""
    writers = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if module.name.startswith("specchk.") and isinstance(node, ast.Call) and _writes(node)
    }
    assert writers == set(WRITERS)


def _writes(call: ast.Call) -> bool:
    name = last_name(call.func)
    if name == "open" and "os." not in ast.unparse(call.func):
        modes = [
            one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
        ]
        return any(mode[:1] in "wxa" for mode in modes)
    own = isinstance(call.func, ast.Attribute)  # a function of that name is another's
    return own and name in ("write_text", "write_bytes", "NamedTemporaryFile", "mkstemp")


def test_a_kernel_s_name_has_all_of_a_program_that_is_compiled() -> None:
    """Every field of a program that emitting code reads is part of the name."""
    (essence,) = (
        node for module in modules() for name, node in module.functions() if name == _essence.__name__
    )
    named = set(_fields(essence))
    read = {
        field
        for module in modules()
        if module.room == "specchk.native" and module.name.rsplit(".", 1)[-1] not in ABOUT_SEARCH
        for field in _fields(module.tree)
    }
    assert read - {"spec"} == named  # the spec's name is that of the module, no more
    assert {"actions", "constraints", "variables"} <= named


def _fields(tree: ast.AST) -> list[str]:
    """The fields read of any variable called a program."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [node.attr for node in found if last_name(node.value) == "program"]
