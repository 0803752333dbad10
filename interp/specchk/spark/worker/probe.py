"""The Spark workers' version of this package, queried before they get work.

The question is sent as code, not as a name: a worker without the package could not even look the name up.
"""

from __future__ import annotations

import hashlib
import platform
import socket
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

NEEDED = ("crc32c", "llvmlite", "msgspec", "pyarrow")


class WorkerReport(Struct, frozen=True):
    """A worker's host, its Python, the libraries it lacks, and the digest of its package ("" if none)."""

    host: str
    python: str
    lacking: tuple[str, ...]
    digest: str


def package_files() -> list[tuple[str, bytes]]:
    """The package's modules and their sources, by relative path."""
    root = Path(__file__).resolve().parents[2]
    files = [
        p for p in root.rglob("*") if p.suffix in (".py", ".lark", ".tables", ".properties") and p.is_file()
    ]
    return sorted((f"specchk/{p.relative_to(root).as_posix()}", p.read_bytes()) for p in files)


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """A digest of modules."""
    digest = hashlib.sha256()
    for name, data in files:
        if name.endswith(".py"):
            # Only sources, which is all that `question` compares.
            digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()[:16]


def write_archive(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """The package as a zip file that Python can import from."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            # `ZipInfo` has a fixed date, so that the same sources give the same bytes.
            archive.writestr(zipfile.ZipInfo(name), data)


def question() -> Callable[[Iterable[int]], Iterator[tuple[str, str, tuple[str, ...], str]]]:
    """A function that returns the fields of a `WorkerReport`; it needs only the standard library."""
    # Bound as locals: a function that names a module's globals is sent by its name, which a worker without
    # the package cannot look up.
    needed, find, host, python, sha, open_zip, path_of = (
        NEEDED, find_spec, socket.gethostname, platform.python_version, hashlib.sha256, zipfile.ZipFile, Path
    )  # fmt: skip

    def sources() -> list[tuple[str, bytes]]:
        module = find("specchk")
        if module is None or not module.origin:
            return []
        origin = path_of(module.origin)
        zipped = [part for part in origin.parents if part.suffix == ".zip" and part.is_file()]
        if zipped:
            with open_zip(zipped[0]) as archive:
                return sorted((n, archive.read(n)) for n in archive.namelist() if n.endswith(".py"))
        root = origin.parent
        return sorted(
            (f"specchk/{p.relative_to(root).as_posix()}", p.read_bytes()) for p in root.rglob("*.py")
        )

    def ask(_: Iterable[int]) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
        digest, files = sha(), sources()
        for name, data in files:
            digest.update(f"{name} {len(data)} ".encode() + data)
        lacking = tuple(name for name in needed if find(name) is None)
        yield host(), python(), lacking, digest.hexdigest()[:16] if files else ""

    return ask


def complaint(answers: Iterable[WorkerReport], expected: str) -> str | None:
    """A sentence on the defect of the workers, or None."""
    for answer in sorted(answers, key=lambda a: a.host):
        if not answer.digest:
            return (
                f"the Spark worker on {answer.host} (Python {answer.python}) has no package specchk: "
                "install the driver's version there, or let it be shipped"
            )
        if answer.digest != expected:
            return (
                f"the Spark worker on {answer.host} has another version of specchk than the driver: "
                "install the same one there, or let it be shipped"
            )
        if answer.lacking:
            return (
                f"the Spark worker on {answer.host} (Python {answer.python}) lacks "
                f"{' and '.join(answer.lacking)}: pip install 'specchk[spark]' in its environment"
            )
    return None
