"""Mutants as data: an implementation with one flaw, its historical counterpart, and its effect.

    [[mutant]]
    id = "joins-below-hw"
    flaw = "B30"                                  # a ticket, a KIP, a line of a bug ledger
    story = "A follower joins the ISR before it has what is committed."
    shown = "slow_follower"                       # the model in which it is easy to see
    module = "replog.core.broker.isr"
    old = "rules.expand_needs_hw and remote.leo < state.log.hw"
    new = "False"

Files are TOML, all of a folder, in the order of their names.  A mutant with several places has
`[[mutant.also]]` tables of `module`, `old`, `new`.  One that changes nothing that can be seen has
`equivalent`, the argument why; it is run like the others and counted apart.

Invariants: ids are unique in a folder; a file with missing or additional fields is `MutantError`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.conform.mutation.patches import Patch, patched, source_of

_TEXTS = ("id", "flaw", "story", "shown", "equivalent")
_PATCH = ("module", "old", "new")


class MutantError(Exception):
    """A file of mutants that cannot be used; the text names the mutant and the error."""


class Mutant(Struct, frozen=True):
    """One flaw; `equivalent` is the argument that it has no effect."""

    id: str
    flaw: str
    story: str
    patches: tuple[Patch, ...]
    shown: str = ""
    equivalent: str = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it changes."""
        return tuple(dict.fromkeys(patch.module for patch in self.patches))


def load(folder: Path, name: str = "*.toml") -> tuple[Mutant, ...]:
    """The mutants in a folder's files that match `name`, in order."""
    mutants: list[Mutant] = []
    for path in sorted(folder.glob(name)):
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise MutantError(f"{path}: {error}") from error
        mutants += [_mutant(path, table) for table in tables.get("mutant", ())]
    twice = [new.id for at, new in enumerate(mutants) if new.id in {old.id for old in mutants[:at]}]
    if twice:
        raise MutantError(f"{folder}: two mutants have the id {twice[0]}")
    return tuple(mutants)


def _mutant(path: Path, table: Mapping[str, Any]) -> Mutant:
    name = table.get("id", "?")
    places = [table, *table.get("also", ())]
    for place in places:
        missing = [key for key in _PATCH if not isinstance(place.get(key), str)]
        if missing:
            raise MutantError(f"{path}: the mutant {name} lacks `{missing[0]}`")
    # A misspelt key would be a mutant without its argument or its story, silently.
    wrong = set(table) - {*_TEXTS, *_PATCH, "also"}
    if wrong or not all(table.get(key) for key in ("id", "flaw", "story")):
        what = f"has the unknown key `{min(wrong)}`" if wrong else "needs an id, a flaw and a story"
        raise MutantError(f"{path}: the mutant {name} {what}")
    patches = tuple(Patch(place["module"], place["old"], place["new"]) for place in places)
    return Mutant(
        name, table["flaw"], table["story"], patches, table.get("shown", ""), table.get("equivalent", "")
    )


def diff(mutant: Mutant) -> str:
    """The changes of a mutant as a unified diff; `StalePatch` if it no longer applies."""
    parts: list[str] = []
    for module in mutant.modules:
        before = source_of(module).read_text(encoding="utf-8")
        after = patched(before, [patch for patch in mutant.patches if patch.module == module])
        parts += difflib.unified_diff(
            before.splitlines(), after.splitlines(), module, f"{module} ({mutant.id})", lineterm="", n=2
        )
    return "\n".join(parts)


def chosen(mutants: Sequence[Mutant], only: Iterable[str]) -> tuple[Mutant, ...]:
    """The mutants with the given ids, in order; all without any.  `MutantError` for an unknown one."""
    wanted = tuple(only)
    unknown = [name for name in wanted if name not in {mutant.id for mutant in mutants}]
    if unknown:
        raise MutantError(f"there is no mutant {unknown[0]}")
    return tuple(mutant for mutant in mutants if not wanted or mutant.id in wanted)
