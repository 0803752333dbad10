"""Files and folders that a command will write: tried when the command line is read, before any work.

Types of options, so that a mistake is a usage error as any other, and no verdict of hours is lost to a folder
that is not there; and new files of the user's, which never take the place of others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import click

from specchk.cli.output import echo
from specchk.kept import replace

STDOUT = "-"


class OutputFile(click.ParamType[str]):
    """The path of a file that can be written, with one of some endings if there are any."""

    name = "file"

    def __init__(self, endings: Sequence[str] = (), *, or_stdout: bool = False) -> None:
        self.endings, self.or_stdout = endings, or_stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, as it was given."""
        path = Path(value)
        if self.or_stdout and value == STDOUT:
            return STDOUT
        if self.endings and path.suffix.lstrip(".").lower() not in self.endings:
            several = ", ".join("." + ending for ending in self.endings)
            self.fail(f"{value}: the name of a picture ends in one of {several}", param, ctx)
        refusal = file_refused(path)
        if refusal is not None:
            self.fail(refusal, param, ctx)
        return str(value)


class OutputFolder(click.ParamType[str]):
    """The path of a folder in which files can be made."""

    name = "directory"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path, as it was given."""
        refusal = folder_refused(Path(value))
        if refusal is not None:
            self.fail(f"{value} cannot be written: {refusal}", param, ctx)
        return str(value)


def try_file(path: Path, option: str) -> None:
    """As `OutputFile`, for a path that an option implies; raises a usage error."""
    refusal = file_refused(path)
    if refusal is not None:
        raise click.BadParameter(refusal, param_hint=option)


def file_refused(path: Path) -> str | None:
    """The reason why a file cannot be written at a path, or None; as a sentence about the path."""
    try:
        target = Path(os.path.realpath(path))  # files are replaced through links (`kept.replace`)
        if target.is_dir():
            return f"{path} cannot be written: it is a folder"
        if target.exists() and not target.is_file():  # a pipe or a device
            return None if os.access(target, os.W_OK) else f"{path} cannot be written: permission denied"
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # of which the folder is the reason, if there is one
    except OSError as error:  # such as a name that is too long
        return f"{path} cannot be written: {error.strerror}"
    refusal = folder_refused(target.parent)
    return None if refusal is None else f"{path} cannot be written: {refusal}"


def folder_refused(folder: Path) -> str | None:
    """The reason why no file can be made in a folder, or None."""
    if not folder.is_dir():
        return f"{folder} is a file" if folder.exists() else f"there is no folder {folder}"
    try:
        with TemporaryFile(dir=folder):  # without a name, where the system can do that
            return None
    except OSError as error:
        return f"{folder}: {error.strerror}"


def put_new(folder: Path, texts: Mapping[str, str], then: str) -> None:
    """Write files into a folder, all or, if there is one of them already, none; `then` is shown next."""
    files = {folder / name: text for name, text in texts.items()}
    present = [str(path) for path in files if os.path.lexists(path)]
    if present:
        verb = "exists" if len(present) == 1 else "exist"
        raise click.ClickException(
            f"{', '.join(present)} {verb} already, so nothing was written; choose another folder"
        )
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, text.encode())
        except OSError as error:
            raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None
        echo(f"wrote {path}")
    echo(f"next: {then}")
