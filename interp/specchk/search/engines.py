"""The table of engines: all that the command line, the documents and the contract tests know about an engine.

An engine's module is imported when it runs, because the libraries of most are large.  It has a
function `search(program, options, on_progress)` and the class of its options, a subclass of
`search.engine.Options`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from msgspec import Struct


class Entry(Struct, frozen=True):
    """One engine: `options` names its class of options, `kept` the command's option for kept states.

    `is_temporal`: it checks temporal properties; a program with some is refused on another (S702).

    `extra`: of this package's optional dependencies those that its libraries are in.
    """

    name: str
    module: str
    options: str
    about: str
    kept: str = ""
    extra: str = ""
    is_temporal: bool = True

    def load(self) -> ModuleType:
        """The engine's module; raises `ModuleNotFoundError` if its library is not installed."""
        return import_module(self.module)


ENGINES = (
    Entry("native", "specchk.native.engine", "NativeOptions",
          "compiled code on all cores of this machine",
          kept="checkpoint"),
    Entry("reference", "specchk.search.reference", "Options",
          "the interpreter that defines the meaning of specs"),
    Entry("symbolic", "specchk.symbolic.joins.engine", "JoinOptions",
          "sets of states at once, for unbounded offsets", is_temporal=False),
    Entry("spark", "specchk.spark.engine", "SparkOptions",
          "the native engine's search on a cluster", kept="ledger", extra="spark"),
)  # fmt: skip
NAMES = tuple(entry.name for entry in ENGINES)


def engine_named(name: str) -> Entry:
    """The entry with this name; raises `KeyError` if there is none."""
    return {entry.name: entry for entry in ENGINES}[name]
