"""The distribution of recordings to processes: those that need the same program go to the same process.

Invariant: each recording is distributed once, and the same recordings are distributed in the same way.  Which
process takes a common one is a matter of time; its result is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from specchk.conform.contract.recording import BadRecording, Recording, header_of
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.explainer import constants_of


class Dealt(Struct, frozen=True):
    """The numbers of recordings: a share for each process, and a rest that all processes then share."""

    shares: tuple[tuple[int, ...], ...]
    common: tuple[int, ...]


def dealt_by_program(cls: type[Tracing], paths: Sequence[Path], workers: int) -> Dealt:
    """Distribute recordings to processes; those in a share whose headers need the same program are adjacent.

    A program takes as long as thousands of events, and to read all events for the rest of its constants
    as long as a few programs: so `constants` is given the header, and no event.  The recordings of the
    program that most of them need are common, and each process makes it: how long a share takes is not known.
    """
    if workers == 1:
        return Dealt((tuple(range(len(paths))),), ())
    groups: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        groups.setdefault(_constants(cls, path), []).append(number)
    size = {number: _size(path) for number, path in enumerate(paths)}
    common, *others = sorted(groups.values(), key=lambda group: -sum(size[number] for number in group))
    most = -(-sum(size.values()) // workers)
    pieces = [piece for group in others for piece in _pieces(group, size, most)]
    shares: list[list[int]] = [[] for _ in range(workers)]
    loads = [0] * workers
    # The largest first, each to the process with the least work.
    for piece in sorted(pieces, key=lambda piece: -sum(size[n] for n in piece)):
        least = loads.index(min(loads))
        shares[least] += piece
        loads[least] += sum(size[number] for number in piece)
    return Dealt(tuple(map(tuple, shares)), tuple(common))


def _size(path: Path) -> int:
    """The size of a file, 0 if there is none: another process may have removed it since it was listed."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _pieces(group: Sequence[int], size: Mapping[int, int], most: int) -> list[list[int]]:
    """A group split if it is more than one process's work."""
    pieces: list[list[int]] = [[]]
    for number in group:
        if pieces[-1] and sum(size[n] for n in pieces[-1]) + size[number] > most:
            pieces.append([])
        pieces[-1].append(number)
    return pieces


def _constants(cls: type[Tracing], path: Path) -> str:
    """The constants that a header needs, as text; empty if it is invalid for the tracing, or insufficient."""
    # A pipe, as a shell's `<(...)` is one, can be read only once: it is left to its explainer.
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            header = header_of(path.name, file.readline())
        return repr(sorted(constants_of(cls, Recording(path.name, header, ())).items()))
    except (OSError, BadRecording):
        return ""  # reported where it is explained
