"""Files that a user names on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from specchk.guardian import temporary_folder
from specchk.kept import replace
from specchk.lang.text.given import check_regular, is_regular, read


class PythonFile(click.Path):
    """A Python file that exists; processes load it again, so it is a regular one."""

    def __init__(self, path_type: type | None = None) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=path_type)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or a usage error that gives the reason."""
        path = super().convert(value, param, ctx)
        if str(value).endswith(".spec"):
            role = param.name if param is not None and param.name == "tracing" else "binding"
            raise click.UsageError(f"{value} is a spec, not a Python file: name its {role}, or `run` it")
        with refused(value):
            check_regular(Path(value))
        return path


@contextmanager
def refused(name: Any) -> Iterator[None]:
    """A context that turns an `OSError` into a usage error about a file."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{name} cannot be read: {error.strerror or error}") from None


@contextmanager
def lasting(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The same files, for several readings: of a pipe or device, a copy with the same name."""
    with temporary_folder() as folder:
        yield [_lasting(path, Path(folder) / str(number)) for number, path in enumerate(paths)]


def _lasting(path: Path, folder: Path) -> Path:
    with refused(path):
        # A folder among the files of a folder is reported with them, as a file that cannot be read.
        if path.is_dir() or is_regular(path):
            return path
        data = read(path)
    folder.mkdir()
    copy = folder / path.name
    replace(copy, data)
    return copy
