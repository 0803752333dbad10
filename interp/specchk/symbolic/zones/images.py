"""Zones after the steps of a walk, computed in its memory by a kernel."""

from __future__ import annotations

from array import array

from specchk.symbolic.kernels.loading import Kernels
from specchk.symbolic.kernels.matrices import CAP, REFUSED
from specchk.symbolic.zones.leaves import Effect
from specchk.symbolic.zones.zones import Reach, Zone, limits_of, most_words, scratch_words

Start = tuple[int, int, int, int]  # rows, size, classes and their count, in the memory of a walk


class Buffer:
    """An array of 64-bit words that grows, and its address."""

    __slots__ = ("address", "words")

    def __init__(self, size: int) -> None:
        self.words = array("q", bytes(8 * size))
        self.address = self.words.buffer_info()[0]

    def hold(self, size: int) -> None:
        """Ensure room for this many words."""
        if size > len(self.words):
            more = array("q", bytes(8 * max(size, 2 * len(self.words))))
            more[: len(self.words)] = self.words
            self.words = more
            self.address = more.buffer_info()[0]


class Images:
    """The zones after steps, computed by a kernel."""

    def __init__(self, kernels: Kernels, work: Buffer) -> None:
        self._kernels = kernels
        self._work = work
        self._scratch = Buffer(1 << 12)
        self._out = Buffer(1 << 12)

    def zone(self, effect: Effect, start: Start, reach: Reach | None) -> Zone | None:
        """The zone after a step from part of a zone; None if the kernel refuses."""
        code = effect.code
        if code is None:
            code = effect.code = ImageCode(effect)
            places = code.words[1] if code.words else 0
            self._scratch.hold(scratch_words(places))
            self._out.hold(2 * most_words(places))
        if not code.words:
            return None
        rows, size, classes, _ = start
        length = self._kernels.least_image(
            self._work.address, rows, size, classes, code.address, *limits_of(reach),
            self._scratch.address, self._out.address,
        )  # fmt: skip
        if length == REFUSED:
            return None
        assert effect.taken.shape is not None
        return Zone(effect.taken.shape, memoryview(self._out.words)[:length].tobytes(), code.mark)


class ImageCode:
    """The places after a step in all its renamings, 0 first; empty if a distance is too large."""

    __slots__ = ("address", "mark", "words")

    def __init__(self, effect: Effect) -> None:
        numbers = [len(effect.images), len(effect.images[0]) + 1]
        for one in effect.images:
            numbers += [number for place in ((0, 0), *one) for number in place]
        self.words = array("q", numbers if all(abs(number) <= CAP for number in numbers) else ())
        self.address = self.words.buffer_info()[0]
        self.mark = hash(effect.taken.shape)
