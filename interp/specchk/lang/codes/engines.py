"""S7xx: uses of offsets that an engine with unbounded offsets rejects."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.codes.page import Page

PAGES = MappingProxyType(
    {
        page.code: page
        for page in (
            Page(
                "S701",
                "an offset that must be bounded",
                """In the symbolic engine numbers of a `nat upto` type are unbounded.  They can be compared,
                copied, added, subtracted, and multiplied or divided by known numbers, and one of them, or a
                record or option with some in it, can be chosen (`any n in Offset`, an argument).  They cannot
                be an index or the key of a map, be multiplied or divided by each other, and the set of all of
                them cannot be listed or computed with.""",
                """Give the number a bounded type (`0..3`), or run an engine that enumerates.""",
                """
spec listed
type Offset = nat upto 3
var hw : Offset = 0
action advance(): hw' = hw + 1
invariant readable: exists n in Offset: n == hw
""",
                needs_engine=True,
            ),
        )
    }
)
