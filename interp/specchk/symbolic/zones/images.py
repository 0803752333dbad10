"""Zones computed by kernels: those after steps, hulls, and parts.

Each is the zone that `zones.zone_at`, `joins.hulls.joined` and `joins.hulls.cut` make of lists, or None where
a number does not fit; the caller then uses lists.
"""

from __future__ import annotations

from array import array

from specchk.symbolic.kernels.loading import Kernels
from specchk.symbolic.kernels.matrices import CAP, HEAD, REFUSED
from specchk.symbolic.zones.leaves import Effect
from specchk.symbolic.zones.zones import Reach, Zone

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

    def zone(self, effect: Effect, start: Start, reach: Reach) -> Zone | None:
        """The zone after a step from part of a zone; None if the kernel refuses."""
        code = effect.code
        if code is None:
            code = effect.code = ImageCode(effect)
            places = code.words[1] if code.words else 0
            self._scratch.hold(_scratch_words(places))
            self._out.hold(2 * (places * places + 2 * places + HEAD))
        if not code.words:
            return None
        rows, size, classes, _ = start
        length = self._kernels.least_image(
            self._work.address, rows, size, classes, code.address, reach.upper, reach.lower,
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


def _scratch_words(places: int) -> int:
    """The words that kernels need as working memory: a matrix, some rows, and some words."""
    return places * places + 6 * places + 64


class Joiner:
    """Hulls and parts of zones, computed by kernels; `joins.hulls` is the reference."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._scratch = Buffer(1 << 12)
        self._places = Buffer(1 << 8)
        self._out = Buffer(1 << 12)

    def joined(self, a: Zone, b: Zone) -> Zone | None:
        """The least zone that contains both; `a` itself if it does; None if the kernel refuses."""
        self._hold(a.size + 1)
        length = self._kernels.join(a.words, b.words, self._scratch.address, self._out.address)
        if length == REFUSED:
            return None
        return self._zone(a, length) if length else a

    def cut(self, zone: Zone, i: int, j: int, bound: int) -> Zone | None:
        """The part of a zone with `y_i - y_j <= bound`, which is not empty; None if the kernel refuses."""
        if abs(bound) > CAP:
            return None
        self._hold(zone.size + 1)
        length = self._kernels.cut(
            zone.words, i, j, bound, self._scratch.address, self._places.address, self._out.address
        )
        return None if length == REFUSED else self._zone(zone, length)

    def _hold(self, places: int) -> None:
        self._scratch.hold(_scratch_words(places))
        self._places.hold(places)
        self._out.hold(places * places + 2 * places + HEAD)

    def _zone(self, like: Zone, length: int) -> Zone:
        return Zone(like.shape, memoryview(self._out.words)[:length].tobytes(), like.mark)
