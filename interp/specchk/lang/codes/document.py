"""docs/diagnostics.md: every page with its example and the diagnostic as it is printed.

The diagnostics come from the caller, since some only arise when a model's constants are put in,
which happens in a room above this one.  tests/lang/test_codes.py holds the file in step with this.
"""

from __future__ import annotations

from collections.abc import Callable

from specchk.lang.codes.catalogue import CODES
from specchk.lang.codes.page import Page, prose

HEAD = """\
# Diagnostics

Everything that specchk reports about an incorrect spec, generated from the catalogue behind
`specchk explain CODE` (`pytest tests/lang/test_codes.py --rewrite` writes this file).  A run reports
all errors, in source order, and exits with 30.
"""
FAMILIES = {
    "S0": "Files",
    "S1": "Syntax",
    "S2": "Names",
    "S3": "Types",
    "S4": "Levels and assignments",
    "S5": "Models and constants",
    "S6": "Not checked yet",
    "S7": "Unbounded offsets",
}


def document(printed: Callable[[Page], str]) -> str:
    """The whole Markdown file; `printed` gives what specchk prints for a page's example."""
    parts = [HEAD]
    family = ""
    for code in sorted(CODES):
        if code[:2] != family:
            family = code[:2]
            parts.append(f"## {FAMILIES[family]}\n")
        parts.append(_section(CODES[code], printed(CODES[code])))
    return "\n".join(parts)


def _section(page: Page, printed: str) -> str:
    listing = page.listing()
    example = f"```\n{listing}\n```\n\n" if listing else ""
    return (
        f"### {page.heading}\n\n{prose(page.meaning)}\n\n{prose(page.remedy)}\n\n"
        f"{example}```\n{printed}\n```\n"
    )
