"""The unusable index files of a folder: each as a finding, and whether it is to be set aside.

An index is derived from its log, so none of this is damage: a start makes a new one.  Not here: whether the
entries point at batches, which only a reader of the log sees (`dump`, `Segment.locate`).
"""

from collections.abc import Iterator

from crc32c import crc32c

from replog.store.checkpoints.manifest import Sums
from replog.store.files.findings import Finding, Kind
from replog.store.files.fs import Fs, read_file
from replog.store.segments.index import could_be_index
from replog.store.segments.segment import INDEX_SUFFIXES, parse_base, segment_name


def wrong_indexes(fs: Fs, directory: str, base: int, sums: Sums | None) -> Iterator[tuple[Finding, bool]]:
    """Yield the index files of a segment whose checksums differ, or that cannot be indexes at all."""
    for number, suffix in enumerate(INDEX_SUFFIXES):
        name = segment_name(base, suffix)
        if not fs.exists(f"{directory}/{name}"):
            if sums is not None:
                yield Finding(Kind.DERIVED, name, "is missing: rebuilt"), False
            continue
        data = read_file(fs, f"{directory}/{name}")
        if sums is not None and crc32c(data) != sums[number]:
            yield Finding(Kind.DERIVED, name, "its checksum is wrong: rebuilt"), True
        # Without a checksum the content proves nothing, and is rebuilt. Only a file that cannot be an index
        # at all is worth keeping: it is not from this store.
        elif sums is None and not could_be_index(data, suffix):
            yield Finding(Kind.DERIVED, name, "is not an index: rebuilt"), True


def lone_indexes(names: tuple[str, ...]) -> Iterator[tuple[Finding, bool]]:
    """Yield the indexes of segments that do not exist."""
    for name in names:
        bases = (parse_base(name, suffix) for suffix in INDEX_SUFFIXES if name.endswith(suffix))
        base = next(bases, None)
        if base is not None and segment_name(base) not in names:
            yield Finding(Kind.STRANGER, name, "has no segment"), True
