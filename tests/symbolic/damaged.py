"""Damaged certificates, and an oracle without Z3 that enumerates their states.

A certificate of a search is changed at random: a part left out, a constraint left out, a bound or a factor
changed, constraints of one part given to another.  The oracle enumerates the set that is left, offsets up
to a few: does it lack an initial state, have one that fails an invariant, or a step that leaves it or fails
a step invariant?  Then the certificate proves nothing.  Any other may be right or wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace
from sums import SPECS, spec
from zoned import program_of
from zoned import search_zones as search

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.ir.types import Int, Map, Option, Record, Seq, Type, Union, has_horizon
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State
from specchk.symbolic.certificates.format import CertifiedPart, Constraint
from specchk.symbolic.replay import Replay, raised_to
from specchk.symbolic.zones.engine import ZoneOptions

MOST = 5  # the greatest offset that the oracle tries
Regions = dict[tuple[Any, ...], list[Sequence[Constraint]]]


def certified(folder: Path, names: Sequence[str]) -> Iterator[Oracle]:
    """Some specs of sums, and `two_round_fetch`, with their certificates."""
    for name in names:
        if name == "two_round_fetch":
            program = instantiate(check(str(ROOT / "spec" / f"{name}.spec")), None).program
        else:
            program = program_of(spec("sums", SPECS[name][0], MOST), folder)
        # Zones and not hulls, which are but one or two of each of these.
        parts: list[CertifiedPart] = []
        search(program, ZoneOptions(symmetry=False, workers=1, on_fixpoint=parts.extend))
        yield Oracle(program, parts)


@dataclass(slots=True)
class Oracle:
    """A program, a certificate of it, and an enumeration of the states of damaged ones."""

    program: Program
    parts: list[CertifiedPart]
    replay: Replay = field(init=False)
    _after: dict[State, list[State] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.replay = Replay(raised_to(self.program, 2 * MOST))

    def is_wrong(self, parts: Sequence[CertifiedPart]) -> bool:
        """Whether small offsets show that the states of some parts are not closed and safe."""
        regions: Regions = {}
        for part in parts:
            regions.setdefault(part.state, []).append(part.constraints)
        if not all(self._has(regions, state) for state in initial_states(self.program)):
            return True
        for shape, some in regions.items():
            for rows in some:
                for offsets in _solutions(rows, places_in(shape)):
                    after = self._steps(_filled(shape, iter(offsets)))
                    if after is None or not all(self._has(regions, one) for one in after):
                        return True
        return False

    def _has(self, regions: Regions, state: State) -> bool:
        offsets: list[int] = []
        kinds = [variable.type for variable in self.program.variables]
        shape = tuple([_outline(value, kind, offsets) for value, kind in zip(state, kinds, strict=True)])
        return any(all(_sum(terms, offsets) <= most for terms, most in rows)
                   for rows in regions.get(shape, ()))  # fmt: skip

    def _steps(self, state: State) -> list[State] | None:
        """The states after a state; None if it fails, or a step from it does."""
        if state not in self._after:
            self._after[state] = None
            properties = self.replay.properties
            failed = properties.failed(properties.environment(state), properties.invariants)
            with suppress(Faulty, NoAnswer):
                after = [step[2] for step in self.replay.stepper.successors(state)]
                steps = [properties.environment(state, one) for one in after]
                if not any(True for _ in failed) and not any(
                    True for env in steps for _ in properties.failed(env, properties.steps)
                ):
                    self._after[state] = after
        return self._after[state]


def damaged(random: Random, parts: Sequence[CertifiedPart]) -> list[CertifiedPart]:
    """One or a few changes of one or a few parts."""
    found = list(parts)
    for _ in range(random.choice((1, 1, 2, 5))):
        if found:
            at = random.randrange(len(found))
            changed = _changed(random, found[at], found)
            found[at : at + 1] = [] if changed is None else [changed]
    return found


def _changed(random: Random, part: CertifiedPart, parts: Sequence[CertifiedPart]) -> CertifiedPart | None:
    rows, kind = list(part.constraints), random.randrange(5)
    if kind == 0 or not rows:
        return None
    at = random.randrange(len(rows))
    terms, bound = rows[at]
    if kind == 1:
        del rows[at]
    elif kind == 2:
        rows[at] = (terms, bound + random.choice((-3, -2, -1, 1, 2, 3)))
    elif kind == 3:
        factor = random.randrange(len(terms))
        changed = [(p, times + (n == factor) * random.choice((-1, 1))) for n, (p, times) in enumerate(terms)]
        rows[at] = (tuple(changed), bound)
    else:
        other = random.choice(parts)
        if places_in(other.state) != places_in(part.state):
            return None
        return replace(part, constraints=other.constraints)
    return replace(part, constraints=tuple(rows))


def places_in(state: Sequence[Any]) -> int:
    """The number of offsets of a part's state."""
    return sum([1 if one is None else places_in(one) if isinstance(one, tuple) else 0 for one in state])


def _solutions(rows: Sequence[Constraint], size: int) -> Iterator[list[int]]:
    """All offsets up to a few that satisfy constraints, each of which is checked as soon as it can be."""
    ready: list[list[Constraint]] = [[] for _ in range(size + 1)]
    for terms, most in rows:
        ready[_last(terms)].append((terms, most))
    left: list[list[int]] = [[]]
    while left:
        offsets = left.pop()
        if any(_sum(terms, offsets) > most for terms, most in ready[len(offsets)]):
            continue
        if len(offsets) == size:
            yield offsets
        else:
            left += [[*offsets, new] for new in range(MOST + 1)]


def _last(terms: Any) -> int:
    return max([p if isinstance(p, int) else _last(p[0]) for p, _ in terms], default=0)


def _sum(terms: Any, offsets: Sequence[int]) -> int:
    return sum([
        times * (offsets[p - 1] if isinstance(p, int) else (_sum(p[0], offsets) + p[1]) // p[2])
        for p, times in terms
    ])  # fmt: skip


def _filled(shape: Any, offsets: Iterator[int]) -> Any:
    if isinstance(shape, tuple):
        return tuple([_filled(part, offsets) for part in shape])
    return next(offsets) if shape is None else shape


def _outline(value: Any, kind: Type, offsets: list[int]) -> Any:
    """A value with None for each of its offsets, which are collected in a list."""
    if not has_horizon(kind):
        return value
    match kind:
        case Int():
            offsets.append(value)
            return None
        case Option() | Seq():
            return tuple([_outline(part, kind.item, offsets) for part in value])
        case Record():
            pairs = zip(value, kind.fields, strict=True)
            return tuple([_outline(part, inner, offsets) for part, (_, inner) in pairs])
        case Map():
            return tuple([_outline(part, kind.value, offsets) for part in value])
        case Union():
            return value[0], _outline(value[1], kind.variants[value[0]][1], offsets)
    raise AssertionError(kind)
