"""Short digests of a run: whether it is as it was accepted, and where it is not.

    digest   of the whole run: two runs that differ in anything but words differ here
    trace    a character a step: where the first difference is

Sentences for people (`texts.SENTENCE`) are compared by their numbers, and by which of a run's sentences they
are, in order of appearance.  Their words are compared once for all runs: who improves a message has changed
one text, not every run in which it appears.

Invariants: `digest` alone decides whether two runs are equal; `trace` may be wrong by a chance of 1 in
64, and never decides.  Not here: the file of digests (`work.lock_file`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from zlib import crc32

from specchk.conform.behaviour.texts import SENTENCE, Written
from specchk.conform.work.lock_file import Symbols

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
DIGITS = 24
_VALUE = re.compile(r"\w*\d\w*")  # in a sentence: what has a digit is no word


def symbols_of(steps: Sequence[Written]) -> tuple[Symbols, frozenset[str]]:
    """The digests of a run, and the words of its sentences, with `#` for each value."""
    words: dict[str, int] = {}
    # Each step has an end mark, so that no two runs are the same bytes; a lone surrogate is a text, too.
    data = [f"{step}\2".encode(errors="surrogatepass") for step in coded(steps, words)]
    trace = "".join([LETTERS[crc32(step) >> 7 & 63] for step in data])
    return Symbols(hashlib.sha256(b"".join(data)).hexdigest()[:DIGITS], trace), frozenset(words)


def coded(steps: Sequence[Written], words: dict[str, int]) -> list[str]:
    """The steps of a run as texts, with numbers for the words of sentences, which `words` gets."""

    def code(sentence: re.Match[str]) -> str:
        lines = sentence[1].split("\n")
        known = [words.setdefault(_VALUE.sub("#", line), len(words)) for line in lines]
        return ";".join(f"{n}:{','.join(_VALUE.findall(line))}" for n, line in zip(known, lines, strict=True))

    return [SENTENCE.sub(code, "\0".join(["\1".join(seen) for seen in step])) for step in steps]
