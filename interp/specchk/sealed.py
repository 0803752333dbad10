"""The seal of bytes that are accepted completely or not at all.

It is one line of SHA-256 over a name and the bytes, before the bytes.  The name says what they are (a
cache's key, a kind of file), so that what was put in the place of something else is not believed either.
"""

from __future__ import annotations

import hashlib


class Damaged(ValueError):
    """Data that differ from the sealed ones, or were sealed under another name."""


def sealed(name: str, content: bytes) -> bytes:
    """Content preceded by its seal."""
    return _digest(name, content) + b"\n" + content


def unsealed(name: str, data: bytes) -> bytes:
    """The content; raises `Damaged` if the data were not made by `sealed` with this name."""
    digest, _, content = data.partition(b"\n")
    if digest != _digest(name, content):
        raise Damaged(f"its content does not match its digest as a {name}")
    return content


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).hexdigest().encode()
