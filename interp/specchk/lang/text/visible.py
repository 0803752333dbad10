r"""Texts of other people as they leave: an implementation's, a recording's, a spec's, a file's name.

A terminal obeys control characters, XML has none, and no file in UTF-8 has half of a surrogate pair.  Each
place where a whole text leaves (a standard stream, a file that is written, a picture's description) writes it
by `visible`, so that nothing that makes a part of such a text need think of it.
"""

from __future__ import annotations

import re

# All controls except tab and newline; marks that change the order in which text is shown; halves of pairs.
_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""The text with each such character as `\u001b`, which JSON reads as that character."""
    return _HIDDEN.sub(lambda hidden: f"\\u{ord(hidden[0]):04x}", text)
