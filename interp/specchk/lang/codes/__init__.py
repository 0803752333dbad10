"""All diagnostic codes with their pages: for `specchk explain`, and for docs/diagnostics.md."""

from specchk.lang.codes.catalogue import CODES
from specchk.lang.codes.page import Page

__all__ = ["CODES", "Page"]
