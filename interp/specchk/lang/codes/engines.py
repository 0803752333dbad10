"""S7xx: what a spec must not do with offsets, if an engine takes them to have no end."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.codes.page import Page

PAGES = MappingProxyType(
    {
        page.code: page
        for page in (
            Page(
                "S701",
                "an offset that has to have an end",
                """The symbolic engine takes numbers of a `nat upto` type to have no end.  They can be
                compared, copied and advanced; they cannot be an index or the key of a map, be listed one
                by one, be multiplied or be added to each other.""",
                """Give the number a type with two ends (`0..3`), or run an engine that enumerates.""",
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
