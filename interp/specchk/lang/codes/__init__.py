"""Every diagnostic code, explained: `explain` for the command line, `CODES` for docs and tests."""

from specchk.lang.codes.catalogue import CODES, explain
from specchk.lang.codes.page import Page

__all__ = ["CODES", "Page", "explain"]
