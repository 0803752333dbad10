"""The calls that a spec forbids at the places of a suite, cached between runs of the suite (`kept`).

The steps allowed at a place depend on the spec and on the path to it, not on the implementation.
So they are computed in the first run of a suite, and read in the others.  The file's name is derived from
that of the suite, and from the sources that compute it.

Not here: computing it (`spec_side`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specchk import kept
from specchk.conform.covers.cases import Suite, SuiteCase
from specchk.conform.replay.spec_side import ActionCall, SpecSide
from specchk.meaning.values import State

# Beside those of the suite the spec's side of a replay, with what it imports.
ROOMS = (*kept.SPEC_ROOMS, "conform/contract", "conform/covers", "conform/replay")
Allowed = dict[str, str]  # by case and step: the numbers of the calls that are not forbidden


class Forbidden:
    """The forbidden calls at the places of a suite; `found` are those not yet cached."""

    def __init__(self, spec: SpecSide, known: Allowed) -> None:
        self._spec = spec
        self._known = known
        self._calls: dict[str, Sequence[ActionCall]] = {}
        self.found: Allowed = {}

    def at(self, case: SuiteCase, number: int, state: State) -> Sequence[ActionCall]:
        """The calls forbidden after some steps of a case, in the order of all calls."""
        place = f"{case.id} {number}"
        allowed = self._known.get(place)
        if allowed is None:
            disabled = self._spec.forbidden(state)
            forbidden = set(map(id, disabled))
            numbers = (n for n, call in enumerate(self._spec.instances) if id(call) not in forbidden)
            self.found[place] = " ".join(map(str, numbers))
            return disabled
        if allowed not in self._calls:
            not_forbidden = set(map(int, allowed.split()))
            calls = enumerate(self._spec.instances)
            self._calls[allowed] = [call for n, call in calls if n not in not_forbidden]
        return self._calls[allowed]


def read_known(suite: Suite) -> Allowed:
    """The calls found by earlier runs of a suite; none for a suite that is not cached."""
    known: Any = kept.read_json(_path(suite))
    return known or {}


def write_known(suite: Suite, known: Allowed) -> None:
    """Cache the calls that were found."""
    kept.write_json(_path(suite), known)


def _path(suite: Suite) -> Path | None:
    if not suite.key:
        return None
    return kept.place("forbidden", kept.name_of(suite.key, kept.sources(*ROOMS)))
