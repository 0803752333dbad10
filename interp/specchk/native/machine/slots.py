"""The number of slots in the table of a search: at first, and whenever it grows; a power of two."""

from __future__ import annotations

# A look-up of a new state then visits some four slots on average (Knuth, 6.4: (1 + 1 / (1 - LOAD)^2) / 2),
# half of a cache line; a table is filled to this just before it doubles.
LOAD = 0.625
FIRST_SLOTS = 1 << 14
# Small tables are rebuilt seldom, not kept small: rebuilding takes a tenth of the time of the search so far.
FAST_UNTIL = 1 << 24  # slots, 128 MB; up to here a table quadruples
EXPECTED_UNTIL = 1 << 27  # slots, 1 GB; no table begins larger, since a search may end early


def fast_until(limit: int | None) -> int:
    """The slots up to which a table quadruples: an eighth of a limit of memory, in bytes."""
    return FAST_UNTIL if limit is None else min(FAST_UNTIL, limit // 64)


def first_slots(slack: int, expected: int, limit: int | None) -> int:
    """The slots of a first table, for as many states as are expected.

    `slack`: the states that workers may add after a request to stop; `limit`: of memory, in bytes.
    """
    slots = FIRST_SLOTS
    # What workers add after STOP must fit the slots that LOAD leaves empty, or a probe would never end.
    while slots * (1 - LOAD) < slack:
        slots *= 2
    fast = fast_until(limit)
    most = EXPECTED_UNTIL if limit is None else fast
    while expected + slack > slots * LOAD and _larger(slots, fast) <= most:
        slots = _larger(slots, fast)
    return slots


def grown(slots: int, states: int, fast: int) -> int:
    """The slots of a table that has room for some states; up to `fast` a table quadruples."""
    while states > slots * LOAD:
        slots = _larger(slots, fast)
    return slots


def _larger(slots: int, fast: int) -> int:
    return slots * (4 if 4 * slots <= fast else 2)
