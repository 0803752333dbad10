"""The folders that the server was given: every file that a tool reads or writes is in one of them.

A path is compared after all links are followed, so neither `..` nor a link leads out of a folder; and a spec
is refused whose `extends`, `import` or `refines` lines lead to such a link.

Not here: what the Python of a binding reads, which runs only on request (`server`).
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from specchk.lang.load import needed_files
from specchk.lang.text.source import MAX_BYTES


class OutsideFolders(Exception):
    """A path that is in none of the folders, or cannot be used; the text is for the client."""


class Permitted(Struct, frozen=True):
    """A file or folder that a tool may use: `name` below `folder`, the working directory of commands."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.folder / self.name


class Folders(Struct, frozen=True):
    """The permitted folders, absolute and without links; a relative path is of the first that has it."""

    roots: tuple[Path, ...]

    def place(self, path: str) -> Permitted:
        """An existing file or folder; raises `OutsideFolders`."""
        for root in self.roots:
            place = self._below(root, path)
            if place is not None and place.path.exists():
                return place
        raise OutsideFolders(
            f"there is no file or folder {path} in the folders of this server: {self._names}"
        )

    def spec(self, path: str) -> Permitted:
        """An existing spec, all of whose files are in the folders; raises `OutsideFolders`."""
        place = self.place(path)
        self._require_needs(place.path, set())
        return place

    def new(self, path: str) -> Permitted:
        """A file to write, in a folder that exists; raises `OutsideFolders`."""
        for root in self.roots:
            place = self._below(root, path)
            if place is not None and place.path.parent.is_dir() and not place.path.is_dir():
                return place
        raise OutsideFolders(f"{path} is not a file in an existing folder of this server: {self._names}")

    @property
    def _names(self) -> str:
        return ", ".join(map(str, self.roots))

    def _below(self, root: Path, path: str) -> Permitted | None:
        try:
            target = (root / path).resolve()
        except (OSError, ValueError, RuntimeError):  # a link to itself, a null character
            return None
        # Below a folder of the server, but not necessarily this one: each may have links to the others.
        holder = next((root for root in (root, *self.roots) if target.is_relative_to(root)), None)
        if holder is None:
            return None
        name = target.relative_to(holder).as_posix()
        # A name that begins with a hyphen would be read as an option.
        return None if name.startswith("-") else Permitted(holder, name)

    def _require_needs(self, file: Path, seen: set[Path]) -> None:
        """Raise `OutsideFolders` if a spec needs a file that is outside all folders."""
        if file in seen or not file.is_file() or file.stat().st_size > MAX_BYTES:
            return
        seen.add(file)
        for needed, named in needed_files(file, file.read_text(encoding="utf-8", errors="replace")):
            path = named.resolve()
            if not any(path.is_relative_to(root) for root in self.roots):
                raise OutsideFolders(
                    f"{file.name} needs {needed}, which is a link to a file outside the folders"
                )
            self._require_needs(path, seen)
