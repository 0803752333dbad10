"""Builds the harness in Go for a release of raft, or for a copy of it with a flaw, and runs it.

The releases come from the Go module proxy, unmodified.  A flaw is a text of raft's source that is replaced in
a copy, which `replace` in go.mod names.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

SOURCES = Path(__file__).parent / "go"
OWN_PATH = "go.etcd.io/raft/v3"
NEWEST = "v3.7.0"
CHANGES = ("-servers", "5", "-voters", "3", "-changes")
TIMEOUT_S = 600.0
# What is different up to v3.3: a field's name, and how a node is started for the first time.
OLDEST = MappingProxyType(
    {"Voters": "Nodes", ', "", 0)},\n\t})': ', "", 0)},\n\t}, nil)', "firstTerm  = 0": "firstTerm  = 1",
     "bootstraps = false": "bootstraps = true"}
)  # fmt: skip


class Release(NamedTuple):
    """A release: the module that has it, its version, and raft's import path."""

    module: str
    version: str
    path: str


def release(version: str) -> Release:
    """The release of a version, which was in other repositories before v3.6."""
    if version < "v3.4":
        return Release("github.com/coreos/etcd", f"{version}+incompatible", "github.com/coreos/etcd/raft")
    if version < "v3.6":
        return Release("go.etcd.io/etcd/raft/v3", version, "go.etcd.io/etcd/raft/v3")
    return Release(OWN_PATH, version, OWN_PATH)


class Flaw(NamedTuple):
    """A text that occurs once in a file of raft, what it is replaced by, and options of runs that show it."""

    name: str
    file: str
    text: str
    by: str
    options: tuple[str, ...] = ()


class Unavailable(Exception):
    """Go or the module is missing; the text says which."""


class BuildError(Exception):
    """The harness or a planted flaw does not compile; the text is the compiler's."""


def go(folder: Path, *args: str) -> str:
    """The output of the go command; raises `Unavailable` with its errors."""
    program = shutil.which("go")
    if program is None:
        raise Unavailable("there is no Go here")
    done = subprocess.run(  # noqa: S603 - no shell
        (program, *args), cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        kind = BuildError if args[0] == "build" else Unavailable
        raise kind(f"go {args[0]}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def build(folder: Path, version: str = NEWEST, flaw: Flaw | None = None) -> Path:
    """The harness for a release, built in an empty folder; raises `Unavailable` or `BuildError`."""
    of, sources = release(version), folder / "harness"
    shutil.copytree(SOURCES, sources)
    (sources / "go.sum").unlink(missing_ok=True)
    (sources / "go.mod").write_text(f"module harness\n\ngo 1.26\n\nrequire {of.module} {of.version}\n")
    tags = ("-tags", "values") if version < "v3.7" else ()
    if tags:
        for name in ("raft.go", "raft_values.go"):
            _rewrite(sources / name, {OWN_PATH: of.path})
    if version < "v3.4":
        _rewrite(sources / "raft.go", OLDEST)
    if flaw is not None:
        _plant(of, folder / "raft", sources, flaw)
    go(sources, "mod", "tidy")
    go(sources, "build", *tags, "-o", str(folder / "drive"), ".")
    return folder / "drive"


def _rewrite(file: Path, by: Mapping[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in by.items():
        assert old in text, f"{file.name} has no {old}"
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def _plant(of: Release, copy: Path, sources: Path, flaw: Flaw) -> None:
    where = json.loads(go(sources, "mod", "download", "-json", f"{of.module}@{of.version}"))["Dir"]
    shutil.copytree(where, copy, copy_function=shutil.copyfile)
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    file = copy / flaw.file
    text = file.read_text(encoding="utf-8")
    assert text.count(flaw.text) == 1, f"{flaw.name}: {flaw.file} has it {text.count(flaw.text)} times"
    file.write_text(text.replace(flaw.text, flaw.by), encoding="utf-8")
    go(sources, "mod", "edit", "-replace", f"{of.module}={copy}")


def drive(program: Path, out: Path, seeds: range, *options: str, events: int = 1000) -> None:
    """Write a recording of each run."""
    runs = ("-seed", str(seeds.start), "-runs", str(len(seeds)), "-events", str(events))
    line = (str(program), *runs, "-out", str(out), *options)
    subprocess.run(line, check=True, timeout=TIMEOUT_S)  # noqa: S603 - what `build` has built
