"""Damaged certificates, and what their check says of them: python bench/certificates.py --count 1000.

A certificate of a search is changed at random: a part left out, a constraint left out, a bound or a factor
changed, constraints of one part given to another.  An oracle without Z3 enumerates the set that is left,
offsets up to a few: does it lack an initial state, have one that fails an invariant, or a step that leaves
it?  Such a certificate must be refused.  One that the oracle finds nothing wrong with may be either.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / part) for part in ("", "symbolic")]

from sums import SPECS, spec  # noqa: E402
from zoned import program_of  # noqa: E402

from specchk.compile.instantiate import instantiate  # noqa: E402
from specchk.ir.program import Program  # noqa: E402
from specchk.ir.types import Int, Map, Option, Record, Seq, Type, Union, has_horizon  # noqa: E402
from specchk.lang.frontend import check  # noqa: E402
from specchk.meaning.initial import initial_states  # noqa: E402
from specchk.meaning.step import Faulty  # noqa: E402
from specchk.symbolic.certificates.checker import CertificateChecker  # noqa: E402
from specchk.symbolic.certificates.format import CertifiedPart, places_in  # noqa: E402
from specchk.symbolic.certificates.states import CertifiedStates  # noqa: E402
from specchk.symbolic.replay import Replay, raised_to  # noqa: E402
from specchk.symbolic.zones.engine import ZoneOptions, search  # noqa: E402

MOST = 5  # the greatest offset that the oracle tries
QUERY_SECONDS = 5.0  # a query that is not answered by then is one that is refused


def main() -> int:
    """Damage certificates; 1 where one that is wrong was accepted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    asked = parser.parse_args()
    counts, accepted, began = Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        programs = list(_programs(Path(folder)))
    for seed in range(asked.first, asked.first + asked.count):
        random = Random(seed)
        name, program, parts = random.choice(programs)
        changed = _damaged(random, parts)
        is_wrong = _is_wrong(program, changed)
        is_refused = bool(_problems(program, changed))
        counts[
            f"{'wrong' if is_wrong else 'not known to be wrong'}, {'refused' if is_refused else 'accepted'}"
        ] += 1
        if is_wrong and not is_refused:
            accepted += 1
            print(f"seed {seed}: {name}: a wrong certificate is accepted", flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    print(f"{time.monotonic() - began:.0f} s")
    return int(accepted > 0)


def _programs(folder: Path) -> Iterator[tuple[str, Program, list[CertifiedPart]]]:
    texts = {name: spec("sums", body, MOST) for name, (body, _, _) in SPECS.items() if name != "segment"}
    programs = {name: program_of(text, folder) for name, text in texts.items()}
    fetch = check(str(ROOT / "spec" / "two_round_fetch.spec"))
    programs["two_round_fetch"] = instantiate(fetch, None).program
    for name, program in programs.items():
        parts: list[CertifiedPart] = []
        search(program, ZoneOptions(symmetry=False, workers=1, on_fixpoint=parts.extend))
        assert not _problems(program, parts), name
        yield name, program, parts


def _problems(program: Program, parts: list[CertifiedPart]) -> list[str]:
    return CertificateChecker(program, QUERY_SECONDS).parts(CertifiedStates(program, parts)).problems


def _damaged(random: Random, parts: list[CertifiedPart]) -> list[CertifiedPart]:
    """One or two changes of one or a few parts."""
    found = list(parts)
    for _ in range(random.choice((1, 1, 2, 5))):
        if found:
            at = random.randrange(len(found))
            changed = _changed(random, found[at], found)
            found[at : at + 1] = [] if changed is None else [changed]
    return found


def _changed(random: Random, part: CertifiedPart, parts: list[CertifiedPart]) -> CertifiedPart | None:
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


def _is_wrong(program: Program, parts: list[CertifiedPart]) -> bool:
    """Whether the set of states is seen not to be closed and safe, with offsets up to a few."""
    regions: dict[tuple[Any, ...], list[Any]] = {}
    for part in parts:
        regions.setdefault(part.state, []).append(part.constraints)
    kinds = [variable.type for variable in program.variables]

    def has(state: tuple[Any, ...]) -> bool:
        offsets: list[int] = []
        shape = tuple([_outline(value, kind, offsets) for value, kind in zip(state, kinds, strict=True)])
        return any(_holds(rows, offsets) for rows in regions.get(shape, ()))

    if not all(has(state) for state in initial_states(program)):
        return True
    replay = Replay(raised_to(program, 2 * MOST))
    for shape, some in regions.items():
        for offsets in product(range(MOST + 1), repeat=places_in(shape)):
            if any(_holds(rows, list(offsets)) for rows in some):
                state = _filled(shape, iter(offsets))
                env = replay.properties.environment(state)
                if next(iter(replay.properties.failed(env, replay.properties.invariants)), None) is not None:
                    return True
                try:
                    after = [step[2] for step in replay.stepper.successors(state)]
                except Faulty:
                    return True
                if not all(has(one) for one in after):
                    return True
    return False


def _holds(rows: Any, offsets: list[int]) -> bool:
    return all(_sum(terms, offsets) <= bound for terms, bound in rows)


def _sum(terms: Any, offsets: list[int]) -> int:
    return sum([
        times * (offsets[p - 1] if isinstance(p, int) else (_sum(p[0], offsets) + p[1]) // p[2])
        for p, times in terms
    ])  # fmt: skip


def _filled(shape: Any, offsets: Iterator[int]) -> Any:
    if isinstance(shape, tuple):
        return tuple([_filled(part, offsets) for part in shape])
    return next(offsets) if shape is None else shape


def _outline(value: Any, kind: Type, offsets: list[int]) -> Any:
    """A value with None for each of its offsets, which go to a list."""
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


if __name__ == "__main__":
    sys.exit(main())
