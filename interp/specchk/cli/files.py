"""Spec files named on a command line: files as they are, folders as the .spec files in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def spec_files(names: Sequence[str]) -> list[str]:
    """The files, folders replaced by the spec files in them, sorted; an empty folder is an error."""
    found: list[str] = []
    for name in names:
        path = Path(name)
        if not path.is_dir():
            found.append(name)
            continue
        inside = sorted(str(file) for file in path.rglob("*.spec"))
        if not inside:
            raise click.BadParameter(f"there is no .spec file in {name}", param_hint="FILE")
        found += inside
    return found
