"""All diagnostic codes with their pages: for `specchk explain`, and for docs/diagnostics.md."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.codes import engines, files, levels, models, names, syntax, types
from specchk.lang.codes.page import Page

_PAGES = (files, syntax, names, types, levels, models, engines)
CODES: MappingProxyType[str, Page] = MappingProxyType(
    {page.code: page for module in _PAGES for page in module.PAGES}
)
