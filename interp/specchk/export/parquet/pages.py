"""Columns of a row group as pages: levels, dictionaries and values, as Parquet encodes them.

    page    header | repetition levels | definition levels | values
    levels  length in 4 bytes, then runs of one number and groups of eight packed ones
    values  plain, or positions in the dictionary: their bits in a byte, then runs and groups

https://parquet.apache.org/docs/file-format/data-pages/encodings/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import pyarrow as pa
from msgspec import Struct, field

from specchk.export.parquet.compact import Coded, Kind, binary, i32, i64, listed, struct, varint


class Physical(IntEnum):
    """Types of stored values."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    BYTE_ARRAY = 6


class Encoding(IntEnum):
    """The bytes of values and levels."""

    PLAIN = 0
    RLE = 3
    RLE_DICTIONARY = 8


Data = bytes | memoryview
Pieces = list[Data]
UNCOMPRESSED, ZSTD = 0, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class FileColumn(Struct, frozen=True):
    """A leaf of a file's schema: its path, type, and greatest levels."""

    path: tuple[str, ...]
    physical: Physical
    definition: int
    repetition: int


def run(count: int, number: int, width: int) -> Pieces:
    """A number repeated this many times."""
    return [varint(count << 1) + number.to_bytes(-(-width // 8), "little")]


def groups(count: int, packed: Data) -> Pieces:
    """Numbers, packed in groups of eight."""
    return [varint(-(-count // 8) << 1 | 1), packed] if count else []


def wide_groups(count: int, size: int, data: Data) -> Pieces:
    """As `groups`, for numbers of whole bytes: these are packed, and the last eight are filled up."""
    return [*groups(count, data), bytes(size * (-count % 8))]


def levels(data: Pieces) -> Pieces:
    """Levels in the encoding of a page."""
    return [sum(map(len, data)).to_bytes(4, "little"), *data]


def positions(width: int, data: Pieces) -> Pieces:
    """Positions in a dictionary in the encoding of a page."""
    return [bytes([width]), *data]


def plain_texts(texts: Iterable[str]) -> bytes:
    """Texts, each with its length before it."""
    encoded = [text.encode() for text in texts]
    return b"".join([part for text in encoded for part in (len(text).to_bytes(4, "little"), text)])


def plain_numbers(physical: Physical, numbers: Iterable[int]) -> bytes:
    """Numbers of 4 or 8 bytes."""
    size = 4 if physical is Physical.INT32 else 8
    return b"".join([number.to_bytes(size, "little", signed=True) for number in numbers])


class StoredPage(Struct, frozen=True):
    """A page with its header, in pieces; `whole` is the size of both without compression.

    Pieces that are not compressed may be views, and are valid until their block is written.
    """

    pieces: tuple[Data, ...]
    whole: int

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        return sum(map(len, self.pieces))


class Compression(Struct):
    """The compression of pages; one object per thread."""

    # The fastest level, since threads write while they list steps.
    _codec: pa.Codec = field(default_factory=lambda: pa.Codec("zstd", compression_level=1))

    def dictionary(self, values: Data, count: int, *, is_compressed: bool = True) -> StoredPage:
        """The dictionary of a column."""
        about = struct({1: i32(count), 2: i32(Encoding.PLAIN)})
        return self._page(_DICTIONARY_PAGE, 7, about, [values], is_compressed=is_compressed)

    def values(
        self, parts: Sequence[Data], entries: int, encoding: Encoding, *, is_compressed: bool
    ) -> StoredPage:
        """A page of this many entries."""
        rle = i32(Encoding.RLE)
        about = struct({1: i32(entries), 2: i32(encoding), 3: rle, 4: rle})
        return self._page(_DATA_PAGE, 5, about, parts, is_compressed=is_compressed)

    def chunk(
        self, column: FileColumn, parts: Sequence[Data], entries: int, dictionary: StoredPage | None = None,
        *, is_compressed: bool,
    ) -> ColumnChunk:  # fmt: skip
        """A column of one page: positions in a dictionary, or plain values."""
        encoding = Encoding.PLAIN if dictionary is None else Encoding.RLE_DICTIONARY
        page = self.values(parts, entries, encoding, is_compressed=is_compressed)
        return ColumnChunk(column, dictionary, is_compressed, entries=entries, pages=[page])

    def _page(
        self, kind: int, number: int, about: Coded, parts: Sequence[Data], *, is_compressed: bool
    ) -> StoredPage:
        size = sum(map(len, parts))
        if is_compressed:
            parts = [self._codec.compress(b"".join(parts), asbytes=True)]
        head = struct({1: i32(kind), 2: i32(size), 3: i32(sum(map(len, parts))), number: about})[1]
        return StoredPage((head, *parts), len(head) + size)


class ColumnChunk(Struct):
    """The pages of a column in a row group; `bounds`: its least and greatest value, as stored."""

    column: FileColumn
    dictionary: StoredPage | None = None
    is_compressed: bool = True
    bounds: tuple[bytes, bytes] | None = None
    entries: int = 0
    pages: list[StoredPage] = field(default_factory=list)

    def add(self, page: StoredPage, entries: int) -> None:
        """Add a page."""
        self.pages.append(page)
        self.entries += entries

    @property
    def stored(self) -> list[StoredPage]:
        """All pages in the order of the file."""
        return self.pages if self.dictionary is None else [self.dictionary, *self.pages]

    def about(self, start: int) -> Coded:
        """Its metadata, if its pages begin at a position in the file."""
        first = self.dictionary.size if self.dictionary is not None else 0
        encodings = [Encoding.PLAIN, Encoding.RLE, *([Encoding.RLE_DICTIONARY] if self.dictionary else [])]
        metadata = {
            1: i32(self.column.physical),
            2: listed(Kind.I32, map(i32, encodings)),
            3: listed(Kind.BINARY, [binary(name.encode()) for name in self.column.path]),
            4: i32(ZSTD if self.is_compressed else UNCOMPRESSED),
            5: i64(self.entries),
            6: i64(sum(page.whole for page in self.stored)),
            7: i64(sum(page.size for page in self.stored)),
            9: i64(start + first),
        }
        if self.dictionary is not None:
            metadata[11] = i64(start)
        if self.bounds is not None:
            least, greatest = map(binary, self.bounds)
            metadata[12] = struct({3: i64(0), 5: greatest, 6: least})
        return struct({2: i64(0), 3: struct(metadata)})
