"""Permitted imports: the floors of ARCHITECTURE.md, compared with the imports themselves."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Set

from laws.sources import PACKAGES, Import, Module, modules

# Each room may import itself and the rooms (or parts of rooms) named here; `cli` may import everything of its
# package.  Every room with a floor under it may compare and describe what has an identity.
IDENTITY = "specchk.identity"
ROOMS = {
    IDENTITY: set(),
    "specchk.sealed": set(),
    "specchk.kept": {"specchk.sealed"},
    "specchk.processes": set(),
    "specchk.guardian": set(),
    "specchk.parallel": {"specchk.processes"},
    "specchk.children": {"specchk.processes"},
    "specchk.codegen": set(),
    "specchk.lang": {"specchk.kept", "specchk.sealed"},
    "specchk.ir": {"specchk.lang.text"},
    "specchk.meaning": {"specchk.ir", "specchk.lang.text"},
    "specchk.compile": {"specchk.meaning", "specchk.ir", "specchk.lang"},
    "specchk.search": {"specchk.meaning", "specchk.ir", "specchk.lang.syntax", "specchk.lang.text"},
    "specchk.explore": {"specchk.search", "specchk.compile", "specchk.meaning", "specchk.ir", "specchk.lang"},
    "specchk.report": {"specchk.explore", "specchk.search", "specchk.meaning", "specchk.ir", "specchk.lang",
                       "specchk.kept", "specchk.sealed"},
    "specchk.native": {"specchk.explore", "specchk.search", "specchk.compile", "specchk.meaning",
                       "specchk.ir", "specchk.lang", "specchk.codegen", "specchk.kept",
                       "specchk.sealed", "specchk.processes"},
    "specchk.symbolic": {"specchk.search", "specchk.meaning", "specchk.ir", "specchk.lang.text",
                         "specchk.codegen", "specchk.kept", "specchk.processes", "specchk.parallel"},
    "specchk.export": {"specchk.native", "specchk.search", "specchk.meaning", "specchk.ir", "specchk.kept",
                       "specchk.guardian"},
    "specchk.spark": {"specchk.export", "specchk.native", "specchk.explore", "specchk.search",
                      "specchk.meaning", "specchk.ir", "specchk.kept", "specchk.sealed",
                      "specchk.processes", "specchk.guardian"},
    "specchk.lsp": {"specchk.compile", "specchk.meaning", "specchk.lang", "specchk.guardian",
                    "specchk.children"},
    "specchk.conform": {"specchk.report", "specchk.explore", "specchk.search", "specchk.compile",
                        "specchk.meaning", "specchk.ir", "specchk.lang", "specchk.kept", "specchk.sealed",
                        "specchk.processes", "specchk.parallel", "specchk.guardian"},
    "specchk.mcp": {"specchk.lang", "specchk.kept", "specchk.guardian", "specchk.children"},
    "specchk.review": {"specchk.conform", "specchk.report", "specchk.explore", "specchk.search",
                       "specchk.compile", "specchk.meaning", "specchk.ir", "specchk.lang"},
    "replog.core": set(),
    "replog.store": {"replog.core"},
    "replog.dump_text": {"replog.store", "replog.core"},
    "replog.run": {"replog.store", "replog.core"},
    "replog.sim": {"replog.run", "replog.store", "replog.core"},
    "replog.live": {"replog.sim", "replog.run", "replog.store", "replog.core"},
    "replog.demo": {"replog.sim", "replog.run", "replog.store", "replog.core"},
}  # fmt: skip
# The programs: modules at the top of a package, and the room that has one module a command.
PROGRAMS = {
    "specchk.cli",
    "specchk.__main__",
    "replog.cli",
    "replog.__main__",
    "replog.starting",
    "replog.dump",
    "replog.play",
    "replog.cluster",
    "replog.merge",
    "replog.repair",
    "replog.serve",
    "replog.simulate",
    "replog.status",
    "replog.demo",
}

# A heavy library is imported in its rooms only.
LIBRARIES = {
    "lark": {"specchk.lang"},
    "bottle": {"specchk.cli"},
    "lsprotocol": {"specchk.lsp"},
    "pygls": {"specchk.lsp"},
    "click": {"specchk.cli", "replog.cli", "replog.cluster", "replog.dump", "replog.merge", "replog.play",
              "replog.repair", "replog.serve", "replog.simulate", "replog.status", "replog.demo"},
    "graphviz": {"specchk.report"},
    "kio": {"replog.run"},
    "mcp": {"specchk.mcp"},
    "pydantic": {"specchk.mcp"},
    "llvmlite": {"specchk.codegen", "specchk.native"},
    "z3": {"specchk.symbolic"},
    "pyspark": {"specchk.spark"},
    "py4j": {"specchk.spark"},
    "pyarrow": {"specchk.spark", "specchk.export"},
    "duckdb": {"specchk.export"},
    "fsspec": {"specchk.export"},
    "crc32c": {"replog.store", "specchk.native", "specchk.spark"},
    "pytest": {"specchk.conform", "replog.run"},
    "msgspec": {room for room in ROOMS if room.startswith("specchk.")} | {"specchk.cli"},
}  # fmt: skip

# Imports inside a function, each with its reason.
HIDDEN = {
    (
        "specchk.__main__",
        "specchk.cli.starting",
    ): "only inside its `try` is Ctrl-C answered without a traceback",
    ("specchk.__main__", "specchk.cli.main"): "likewise",
    ("replog.__main__", "replog.starting"): "likewise",
    ("replog.__main__", "replog.cli"): "likewise",
    ("specchk.cli.main", "difflib"): "only a mistyped command needs it",
    ("specchk.cli.commands.repl", "readline"): "changes how a terminal is read, so only where there is one",
}
# Modules imported by name: commands, so that `--help` imports none of them, engines with a heavy library,
# what draws, because most runs do not, pyarrow for object stores, which a task of Spark's seldom needs,
# the parser, because trees are kept, the names of a binding, because most imports are of a module, and a
# server whose library may be missing.
LAZY_TABLES = {
    "specchk", "specchk.cli.main", "specchk.cli.engines", "specchk.search.engines", "replog.cli",
    "replog.serve", "specchk.export.places", "specchk.lang.syntax.reading",
}  # fmt: skip

# What would let `replog.core` know of a clock, chance, a thread, a file or a log.
WORLDLY = {
    "asyncio", "concurrent", "datetime", "fcntl", "glob", "io", "logging", "mmap", "multiprocessing", "os",
    "pathlib", "queue", "random", "secrets", "select", "shutil", "signal", "socket", "subprocess", "sys",
    "tempfile", "threading", "time", "uuid", "warnings",
}  # fmt: skip


def ours(module: Module) -> list[Import]:
    return [item for item in module.imports if item.module.split(".")[0] in PACKAGES]


def others(module: Module) -> list[tuple[Import, str]]:
    tops = [(item, item.module.split(".")[0]) for item in module.imports]
    return [(item, top) for item, top in tops if top not in PACKAGES and top != "__future__"]


def is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def test_a_room_imports_only_rooms_below_it():
    """A room imports nothing from a room above or beside it."""
    found = []
    for module in modules():
        if module.room in PROGRAMS - {"replog.demo"} or module.name in PACKAGES:
            continue
        assert module.room in ROOMS, f"{module.room} has no floor: give it one here and in ARCHITECTURE.md"
        allowed = ROOMS[module.room] | {module.room} | ({IDENTITY} if ROOMS[module.room] else set())
        wrong = [i for i in ours(module) if not any(is_in(i.module, room) for room in allowed)]
        found += [f"{module.shown}:{i.line} imports {i.module}" for i in wrong]
    assert not found


def test_the_two_packages_do_not_know_each_other():
    """The log imports nothing of specchk, and specchk imports no implementation."""
    for module in modules():
        own = module.name.split(".")[0]
        assert {i.module.split(".")[0] for i in ours(module)} <= {own}, module.shown


def test_there_are_no_import_cycles():
    """Following imports from module to module never leads back, hidden imports included."""
    check_no_cycle({m.name: {i.module for i in ours(m) if i.module != m.name} for m in modules()})


def test_there_are_no_cycles_of_folders():
    """Following imports from folder to folder never leads back, so that folders have an order, too."""
    folders = {m.name: m.folder for m in modules()}
    graph: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for module in modules():
        graph[module.folder] |= {folders[i.module] for i in ours(module)} - {module.folder}
    check_no_cycle(graph)


def check_no_cycle(graph: Mapping[str, Set[str]]) -> None:
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for target in sorted(graph.get(name, ())):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_imports_are_at_the_top_except_the_listed_ones():
    """No import is hidden in a function except for those with a reason here, and no reason is outdated."""
    hidden = {(m.name, i.module) for m in modules() for i in m.imports if i.hidden}
    assert hidden == set(HIDDEN)


def test_only_listed_modules_import_by_name():
    """`import_module` and `__import__` would bypass every law above."""
    users = {m.name for m in modules() if "import_module" in m.text or "__import__" in m.text}
    assert users == LAZY_TABLES


def test_heavy_libraries_stay_in_their_rooms():
    """A library outside the standard one is imported only in the rooms listed for it."""
    for module in modules():
        for item, top in others(module):
            if top in sys.stdlib_module_names:
                continue
            assert top in LIBRARIES, f"{module.shown}:{item.line}: {top} has no room"
            assert module.room in LIBRARIES[top], (
                f"{module.shown}:{item.line}: {top} is not for {module.room}"
            )


def test_the_protocol_core_has_no_clock_chance_threads_or_files():
    """replog.core imports only the standard library, and no part of it with access to the outside."""
    for module in modules():
        if module.room == "replog.core":
            tops = {top for _, top in others(module)}
            assert tops <= set(sys.stdlib_module_names) - WORLDLY, f"{module.shown}: {tops & WORLDLY}"
