"""Which old segments a log may delete: by size and by age, from its start on (`retention.bytes`, `.ms`)."""

from collections.abc import Sequence

from replog.store.files.config import LogConfig
from replog.store.segments.segment import Segment


def retention_start(segments: Sequence[Segment], config: LogConfig, now_ms: int, high_watermark: int) -> int:
    """Return the offset at which the log may begin: the end of its last old segment, or its present start."""
    start = segments[0].base_offset
    excess = sum(segment.size for segment in segments) - (config.retention_bytes or 0)
    for segment in segments[:-1]:
        is_over = config.retention_bytes is not None and excess >= segment.size
        is_old = config.retention_ms is not None and now_ms - segment.max_timestamp > config.retention_ms
        # Whole segments, and without a gap: the first that has to stay ends it. Records at or above the high
        # watermark may still be needed by followers.
        if segment.next_offset > high_watermark or not (is_over or is_old):
            break
        start, excess = segment.next_offset, excess - segment.size
    return start
