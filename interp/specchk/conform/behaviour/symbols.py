"""Short digests of a run that locate a difference, although they are too short to contain the values.

    digest   of the whole run: two runs that differ in anything differ here
    trace    a character a step: where the first difference is
    checks   five characters a group of steps: which field it is in

`checks` is the number of texts of a group, and two check symbols over hashes h1, h2, ... modulo a prime:
the sums of h and of i * h, as in a Reed-Solomon code.  If a single text changed, the difference of the
second is its number times the difference of the first, so their quotient names it, whatever the old
text.  If several changed, the quotient is not the number of a text (except in PRIME / texts cases), and only
the step is known.

Invariants: `digest` alone decides whether two runs are equal; what locates may be wrong by a chance of 1 in
64 (a step) or less, and never decides.  Not here: the file of digests (`work.lock_file`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from zlib import crc32

from specchk.conform.behaviour.texts import Written
from specchk.conform.work.lock_file import Symbols

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PRIME = 4093  # the largest one of two letters
CHECK_LETTERS = 5
MOST_GROUPS = 160
"""Longer runs have several steps in a group, so that a lock stays small."""
DIGITS = 24


def digest_of(steps: Sequence[Written]) -> str:
    """Return the digest of a run."""
    return hashlib.sha256(b"".join(map(_bytes, steps))).hexdigest()[:DIGITS]


def symbols_of(steps: Sequence[Written], group: int = 0) -> Symbols:
    """Return all digests of a run; `group` is taken from a lock to compare with."""
    group = group or max(1, -(-len(steps) // MOST_GROUPS))
    trace = [LETTERS[crc32(_bytes(step)) >> 7 & 63] for step in steps]
    checks = [_check(texts_of(steps, group, at)) for at in range(-(-len(steps) // group))]
    return Symbols(digest_of(steps), group, "".join(trace), "".join(checks))


def _bytes(step: Written) -> bytes:
    # Each part has an end mark, so that no two runs are the same bytes.
    return "\0".join(["\1".join(observation) for observation in step]).encode(errors="surrogatepass") + b"\2"


def texts_of(steps: Sequence[Written], group: int, at: int) -> list[str]:
    """Return the texts of a group, in order."""
    return [text for step in steps[at * group : (at + 1) * group] for seen in step for text in seen]


def _check(texts: Iterable[str]) -> str:
    plain = weighted = number = 0
    for number, text in enumerate(texts, 1):  # the last number is their count
        value = crc32(text.encode(errors="surrogatepass")) % PRIME
        plain += value
        weighted += number * value
    return LETTERS[number & 63] + _letters(plain % PRIME) + _letters(weighted % PRIME)


def _letters(number: int) -> str:
    return LETTERS[number >> 6] + LETTERS[number & 63]


def _number(letters: str) -> int:
    return LETTERS.index(letters[0]) << 6 | LETTERS.index(letters[1])


def check_at(checks: str, at: int) -> str:
    """Return the checks of a group; "" if there is no such group."""
    return checks[at * CHECK_LETTERS : (at + 1) * CHECK_LETTERS]


def changed_text(before: str, after: str) -> int | None:
    """Return the index (from 0) of the single text that changed between two checks of a group.

    None where several changed, or some were added or removed.
    """
    if not before or not after or before[0] != after[0]:
        return None
    plain = (_number(after[1:3]) - _number(before[1:3])) % PRIME
    weighted = (_number(after[3:5]) - _number(before[3:5])) % PRIME
    # Without a difference of the sums there is no single text that changed.
    return None if plain == 0 else weighted * pow(plain, -1, PRIME) % PRIME - 1
