"""Fair components of a region, as kernels; see `search.liveness.components` for the theory."""

from __future__ import annotations

from specchk.codegen.arrays import Words, halves, octets, peek, words
from specchk.native.kernel.numbered_steps import enabled, is_bad, queue, steps
from specchk.native.kernel.table_kernel import KernelSpec
from specchk.native.machine.frames import Lane, Owing, SharedWord
from specchk.native.machine.layout import mask

UNFAIR, FAIR, AGAIN = range(3)
ALL_CONDITIONS = mask(64)


def judge(spec: KernelSpec, lane: Words, first: int, end: int) -> None:
    """Check components by their states and the steps that stay in them."""
    region = words(lane[Lane.REGION])
    bounds = halves(region[Owing.BOUNDS])
    for index in range(first, end):
        octets(region[Owing.JUDGEMENTS])[index] = judged(spec, lane, bounds[index], bounds[index + 1])


def survive(spec: KernelSpec, lane: Words, first: int, end: int) -> None:
    """Postpone, as unvisited, states that enable none of the strong conditions their components miss."""
    control, region = words(lane[Lane.CONTROL]), words(lane[Lane.REGION])
    bounds, members = halves(region[Owing.BOUNDS]), halves(region[Owing.MEMBERS])
    for index in range(first, end):
        if octets(region[Owing.JUDGEMENTS])[index] != AGAIN:
            continue
        # Again, for the conditions that it misses: few components are decomposed again.
        judged(spec, lane, bounds[index], bounds[index + 1])
        missed = lane[Lane.MISSED]
        for at in range(bounds[index], bounds[index + 1]):
            if peek(control, SharedWord.STOP):
                return
            steps(spec, lane, members[at])
            if enabled(lane) & missed == 0:
                halves(region[Owing.INDEX])[members[at]] = 0
                queue(lane, members[at])


def judged(spec: KernelSpec, lane: Words, begin: int, behind: int) -> int:
    """Check the component of these members; the strong conditions that it misses go to the lane."""
    control, region = words(lane[Lane.CONTROL]), words(lane[Lane.REGION])
    pairs = words(lane[Lane.TARGETS])
    members, component = halves(region[Owing.MEMBERS]), halves(region[Owing.INDEX])
    always, ever, taken, bad = ALL_CONDITIONS, 0, 0, 0
    own = component[members[begin]]
    for at in range(begin, behind):
        # A component may contain all states.
        if peek(control, SharedWord.STOP):
            break
        count = steps(spec, lane, members[at])
        always &= enabled(lane)
        ever |= enabled(lane)
        bad |= is_bad(spec, lane, members[at])
        for index in range(count):
            named = pairs[2 * index]
            if named != 0 and component[named - 1] == own:
                taken |= pairs[2 * index + 1]
    lane[Lane.MISSED] = ever & region[Owing.STRONG] & ~taken
    if always & region[Owing.WEAK] & ~taken != 0 or bad == 0:
        return UNFAIR
    return FAIR if lane[Lane.MISSED] == 0 else AGAIN
