"""Position-independent object code: bytes and entry points that a process can run without LLVM.

LLVM's linker costs a process 45 MB of its library, 10 MB of its own memory, and a tenth of the time that a
run takes to start.  A kernel is functions that call one another, with constants, and without variables or
libraries:

    .text  .text.unlikely.  .rodata     side by side in one piece, at any address
    calls, jumps and constants          relative to where they are used, so known as soon as both are placed

What is not of that kind, or for another machine than x86-64 with ELF, has no image, and is linked by
LLVM (`objects`).

Sources: the generic ABI of System V (ELF) and its supplement for x86-64.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<2I4Q2I2Q")
_SYMBOL = struct.Struct("<I2B H2Q")
_RELOCATION = struct.Struct("<2Qq")
_PLACE = struct.Struct("<i")
_MAGIC, _RELOCATABLE, _X86_64 = b"\x7fELF\x02\x01\x01", 1, 62
_BYTES, _SYMBOLS, _RELOCATIONS, _UNWINDING = 1, 2, 4, 0x70000001  # kinds of sections
_WRITABLE, _LOADED = 1, 2
_RESERVED = 0xFF00  # numbers of sections from here on have a meaning of their own
_TO_PLACE = (2, 4)  # PC32 and PLT32: 32 bits from here to there
_FILL = b"\xcc"  # between functions; an interrupt, where anything should ever run into it
# Two processors that agree in these have the same instructions.
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


class Image(Struct, frozen=True):
    """Code for any page-aligned address, and the offsets at which its functions begin."""

    code: bytes
    at: dict[str, int]


class _NoImage(Exception):
    """Object code that cannot be placed without a linker."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    item_bytes: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def image_of(code: bytes, names: Iterable[str]) -> Image | None:
    """The placed image of the functions with these names; None if that requires a linker."""
    try:
        return _placed(code, list(names))
    except (_NoImage, struct.error):
        return None


@cache
def processor_name() -> str:
    """The processor of this machine, as the system describes it; "" if images do not run here."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return ""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as cpus:
            # The first alone: the system makes the text as it is read, and visits every core for all of it.
            first = [line.partition(":") for line in takewhile(str.strip, cpus)]
    except OSError:
        return ""
    facts = {name.strip(): value.strip() for name, _, value in first}
    return "; ".join(facts.get(name, "") for name in _PROCESSOR)


def _placed(code: bytes, names: list[str]) -> Image:
    sections = _sections(code)
    places, image = _side_by_side(code, sections)
    symbols, texts = _symbols(code, sections)
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            _connect(image, places, places[section.info], _items(code, section, _RELOCATION), symbols)
    at = {}
    for symbol in symbols:
        if symbol.section in places:
            name = texts + symbol.name
            at[code[name : code.index(b"\0", name)].decode()] = places[symbol.section] + symbol.value
    if not at.keys() >= set(names):
        raise _NoImage
    return Image(bytes(image), {name: at[name] for name in names})


def _sections(code: bytes) -> list[_Section]:
    ident, kind, machine, *_, first, _flags, _size, _, _, bytes_each, count, _ = _HEADER.unpack_from(code)
    if not ident.startswith(_MAGIC) or (kind, machine) != (_RELOCATABLE, _X86_64) or not count:
        raise _NoImage
    return [_Section(*_SECTION.unpack_from(code, first + number * bytes_each)) for number in range(count)]


def _side_by_side(code: bytes, sections: list[_Section]) -> tuple[dict[int, int], bytearray]:
    """The offset in the image of each loaded section, by its number; and the image before relocation."""
    places, image = {}, bytearray()
    for number, section in enumerate(sections):
        # How to unwind a stack is of no use here: what a kernel calls raises nothing.
        if not section.flags & _LOADED or not section.size or section.kind == _UNWINDING:
            continue
        # What is written would need pages of its own.
        if section.kind != _BYTES or section.flags & _WRITABLE:
            raise _NoImage
        image += _FILL * (-len(image) % max(1, section.align))
        places[number] = len(image)
        image += code[section.offset : section.offset + section.size]
    return places, image


def _symbols(code: bytes, sections: list[_Section]) -> tuple[list[_Symbol], int]:
    """All symbols by number, and the position of the string table of their names."""
    for section in sections:
        if section.kind == _SYMBOLS:
            symbols = map(_Symbol._make, _items(code, section, _SYMBOL))
            return list(symbols), sections[section.link].offset
    raise _NoImage


def _items(code: bytes, section: _Section, item: struct.Struct) -> Iterator[tuple[int, ...]]:
    return item.iter_unpack(code[section.offset : section.offset + section.size])


def _connect(
    image: bytearray,
    places: dict[int, int],
    base: int,
    relocations: Iterable[tuple[int, ...]],
    symbols: list[_Symbol],
) -> None:
    """Apply the relocations of a section that begins at `base`."""
    for offset, info, addend in relocations:
        symbol, kind = symbols[info >> 32], info & 0xFFFFFFFF
        # Of another section only where it is placed, too: a library's function has no place here.
        if kind not in _TO_PLACE or symbol.section not in places or symbol.section >= _RESERVED:
            raise _NoImage
        here, there = base + offset, places[symbol.section] + symbol.value
        _PLACE.pack_into(image, here, there + addend - here)
