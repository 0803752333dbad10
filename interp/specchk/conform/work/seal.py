"""The seal of a file that the gate trusts: a digest of its lines, on a line of its own.

A lock is read by people and written by specchk.  A number in it that was changed by hand, by a merge or
by a disk would silently weaken the gate, so a file whose seal does not fit is refused.
Line ends, which a checkout may change, do not count; nor do the lines that people fill in.

Not here: the contents of the file (`lock`, `choices`).
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from specchk import kept

T = TypeVar("T")
# Against accidents and careless edits; a forger can compute the seal as well.
DIGITS = 16
_SEAL = "seal = "
OLDER = "a fingerprint by an older specchk"  # of a spec; it cannot be compared


class BrokenSeal(Exception):
    """A file that was changed after it was written; the text describes the change."""


def write(path: Path, lines: Iterable[str], people: str = "") -> None:
    """Write lines with their seal, completely or not at all; those beginning with `people` may be edited."""
    every = "\n".join(lines).split("\n")
    # Behind the comments at the head, which a person reads first.
    at = next(number for number, line in enumerate(every) if line and not line.startswith("#"))
    every.insert(at, f'{_SEAL}"{_digest(every, people)}"')
    kept.replace(path, ("\n".join(every) + "\n").encode())


def read(path: Path, people: str = "") -> str:
    """The text of a file as it was written; raises `BrokenSeal`, and `OSError` if it cannot be read."""
    data = path.read_bytes()
    try:
        # A checkout on Windows changes line ends; that is no edit.
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise BrokenSeal(f"{path} was changed after it was written: it is not text") from None
    lines = text.split("\n")
    seals = [line for line in lines if line.startswith(_SEAL)]
    rest = [line for line in lines if not line.startswith(_SEAL)]
    if not seals:
        raise BrokenSeal(f"{path} has no seal, so it was written by an older specchk, or truncated")
    # `rest[:-1]`: behind the last line end there is nothing; a text that does not end with one was cut off.
    if not text.endswith("\n") or seals != [f'{_SEAL}"{_digest(rest[:-1], people)}"']:
        raise BrokenSeal(f"{path} was edited, merged or damaged after it was written")
    return text


def load(
    path: Path, build: Callable[[Mapping[str, Any]], T], *, version: int, people: str, mend: str,
    error: type[Exception],
) -> T | None:  # fmt: skip
    """The contents of a sealed TOML file, built by `build` from its table; None if there is no file.

    Also of the previous version, which differs only in the fingerprints of specs: `build` gives `OLDER` for
    them.  Raises `error` for any other file, with `mend` as the remedy for one that was changed.
    """
    try:
        table = tomllib.loads(read(path, people))
        # Before anything else is read: another version may have the same keys with another meaning.
        if table["version"] not in (version - 1, version):
            raise error(f"{path} has version {table['version']}; this specchk reads {version}")
        return build(table)
    except FileNotFoundError:
        return None
    except OSError as failed:
        raise error(f"{path}: {failed.strerror or failed}") from failed
    except BrokenSeal as broken:
        raise error(f"{broken}; {mend}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as failed:
        raise error(f"{path} cannot be read: {type(failed).__name__}: {failed}") from failed


def quoted(text: str) -> str:
    """A text as a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def toml(value: object) -> str:
    """A text, a number or a sequence of these as TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)


def entries(values: Mapping[str, object]) -> Iterator[str]:
    """A line of TOML for each value; its name is written as it is."""
    return (f"{name} = {toml(value)}" for name, value in values.items())


def table(heading: str, values: Mapping[str, object]) -> Iterator[str]:
    """The lines of a table of TOML, after an empty one."""
    yield from ("", f"[{heading}]", *entries(values))


def named(values: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Values by names that are not plain words."""
    return {quoted(name): value for name, value in values}


def _digest(lines: Sequence[str], people: str) -> str:
    mine = [line for line in lines if not (people and line.startswith(people))]
    return hashlib.sha256("\n".join(mine).encode()).hexdigest()[:DIGITS]
