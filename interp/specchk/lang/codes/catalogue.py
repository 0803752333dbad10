"""All pages, and the text of `specchk explain CODE`."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.codes import engines, files, levels, models, names, syntax, types
from specchk.lang.codes.page import Page

_PAGES = (files, syntax, names, types, levels, models, engines)
CODES: MappingProxyType[str, Page] = MappingProxyType(
    {page.code: page for module in _PAGES for page in module.PAGES}
)


def explain(code: str) -> str | None:
    """The page of a code, in any case, as text for a terminal; None when there is no such code."""
    page = CODES.get(code.strip().upper())
    return page.render() if page else None
