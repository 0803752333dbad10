"""Every command that reads a file of its user ends with a reason, whatever that file is."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from specchk.cli.options.given import lasting
from specchk.lang.text import given

# Commands, with `{}` in place of a file, and the name of such a file.
COMMANDS = {
    "validate TRACING": ("validate {} x", ".py"),
    "validate": ("validate tracing.py {}", ".ndjson"),
    "conform": ("conform {}", ".py"),
    "conditions of a binding": ("conditions {}", ".py"),
    "behaviour": ("behaviour {}", ".py"),
    "mutate": ("mutate {}", ".py"),
    "recheck": ("recheck {}", ".certificate"),
    "draw of a trace": ("draw {}", ".json"),
    **{name: (f"{name} {{}}", ".spec") for name in ("run", "check", "test", "draw", "simulate", "show layout",
                                                    "fmt", "explore", "repl", "conditions")},
}  # fmt: skip
KINDS = {"fifo": "pipe|regular file", "device": "bytes|regular file|twice", "socket": "socket|regular file",
         "folder": "director|no recording|no .spec file"}  # fmt: skip
TRACING = """\
from specchk.conform.contract.tracing import Tracing
class ShopTracing(Tracing):
    spec = "shop.spec"
    model = "good"
"""


@pytest.fixture
def odd(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a file of each kind under each suffix."""
    monkeypatch.setattr(given, "OPENED_WITHIN_S", 0.0)
    monkeypatch.setattr(given, "MAX_STREAM", 1 << 16)
    (here / "tracing.py").write_text(TRACING, encoding="utf-8")
    sockets = []
    for suffix in {suffix for _, suffix in COMMANDS.values()}:
        os.mkfifo(here / f"fifo{suffix}")
        (here / f"device{suffix}").symlink_to("/dev/zero")
        (here / f"folder{suffix}").mkdir()
        sockets.append(socket.socket(socket.AF_UNIX))
        sockets[-1].bind(f"socket{suffix}")
    yield here
    for one in sockets:
        one.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_an_odd_kind_is_refused_with_the_reason(odd, specchk, command: str, kind: str) -> None:
    """With a documented exit code, and without waiting for a writer or an end."""
    line, suffix = COMMANDS[command]
    said = specchk(*line.format(f"{kind}{suffix}").split())
    assert said.code in (2, 30)
    assert f"{kind}{suffix}" in said.err
    assert any(words in said.err for words in KINDS[kind].split("|")), said.err


def test_standard_input_without_an_end_is_refused(specchk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a spec is read from it."""
    with Path("/dev/zero").open(encoding="utf-8") as endless:
        monkeypatch.setattr("sys.stdin", endless)
        said = specchk("check", "-")
    assert (said.code, "S003" in said.err) == (30, True)


def test_a_copy_of_a_pipe_is_read_as_often_as_is_needed(here: Path) -> None:
    """By several processes, under its name; regular files are not copied, and copies are removed."""
    ours, theirs = os.pipe()
    os.write(theirs, b"all of it")
    os.close(theirs)
    with lasting([Path(f"/dev/fd/{ours}"), Path("shop.spec")]) as (copy, same):
        assert [copy.read_bytes(), copy.read_bytes()] == [b"all of it"] * 2
        assert (copy.name, same) == (str(ours), Path("shop.spec"))
    assert not copy.exists()
    os.close(ours)


def test_a_folder_among_recordings_costs_no_other_one(here: Path, specchk) -> None:
    """It is reported as one that cannot be read."""
    (here / "tracing.py").write_text(TRACING, encoding="utf-8")
    (here / "all" / "folder.ndjson").mkdir(parents=True)
    (here / "all" / "other.ndjson").write_text("", encoding="utf-8")
    said = specchk("validate", "tracing.py", "all")
    assert "folder.ndjson: [Errno 21] Is a directory" in said.out
    assert "other.ndjson:1: the file is empty" in said.out


def test_a_removed_directory_is_named(here: Path, specchk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may remove the current one; nothing is wrong with specchk then."""
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    said = specchk("run", str(here / "shop.spec"), "--model", "good", "--export", "there")
    assert said.code == 2
    assert "the current directory was removed" in said.err
