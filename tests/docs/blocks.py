"""The documents as read by the tests: files that they show, and commands with their output.

| block | means |
|---|---|
| ```` ```spec NAME.spec ```` | this is the file NAME.spec; with `append`, the end of it |
| ```` ```spec ```` | a part of a spec; it parses |
| ```` ```console ```` | `$ command` lines, each with its output, in the document's directory |
| ```` ```python PATH ```` | a part of this file; a line `...` stands for any lines |
| ```` ```sh ```` | commands that only .ci/run can run, from a closed list |

In expected output a line `...` stands for any lines.  Seconds and rates are not compared.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hang import HANG_S

ROOT = Path(__file__).parents[2]
AT_THE_TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md")
# docs/diagnostics.md is generated and held by tests/lang
DOCUMENTS = tuple(
    path
    for path in (*(ROOT / name for name in AT_THE_TOP), *sorted((ROOT / "docs").glob("**/*.md")))
    if path.name != "diagnostics.md"
)
ELISION = "..."
_FENCE = re.compile(r"^```(?P<language>[a-z]*)(?: (?P<rest>.*))?$")
_VARYING = (
    (re.compile(r"\d+\.\d+ s\b"), "S s"),
    (re.compile(r"\(\d+ (states|steps)/s\)"), r"(N \1/s)"),
    (re.compile(r'"seconds": [0-9.e-]+'), '"seconds": S'),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its lines and its first line number."""

    language: str
    words: tuple[str, ...]
    lines: tuple[str, ...]
    start: int  # index of the first line inside the fence


@dataclass(frozen=True)
class Command:
    """One `$ ` line with the output that the document shows for it."""

    text: str
    shown: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a document, in order."""
    found: list[Block] = []
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        opened = _FENCE.match(lines[index])
        index += 1
        if opened is None:
            continue
        start = index
        while lines[index] != "```":
            index += 1
        words = tuple((opened["rest"] or "").split())
        found.append(Block(opened["language"], words, tuple(lines[start:index]), start))
        index += 1
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a command continues after a backslash and inside quotes."""
    found: list[Command] = []
    lines = iter(block.lines)
    for line in lines:
        if line.startswith("$ "):
            parts = [line[2:]]
            while parts[-1].endswith("\\") or "\n".join(parts).count("'") % 2:
                parts.append(next(lines))
            found.append(Command("\n".join(parts), ()))
        else:
            assert found, f"a console block starts with a command, not {line!r}"
            found[-1] = Command(found[-1].text, (*found[-1].shown, line))
    return found


class Workplace:
    """A directory like a fresh clone after `make run`, for one document.

    Without `is_active`, the programs are found as in a clone only: in .venv/bin, until that is activated.
    """

    def __init__(self, place: Path, *, is_active: bool = True) -> None:
        self.place = place
        self.code = 0
        self.sourced = ""
        shutil.copytree(ROOT / "spec", place / "spec")
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("two_phase", "lock_service", "ring_buffer", "hashicorp_raft"):
            shutil.copytree(ROOT / "docs" / name, place / "docs" / name, ignore=ignored)
        shutil.copytree(ROOT / "conformance", place / "conformance", ignore=ignored)
        for name in ("pyproject.toml", "Makefile"):
            shutil.copy(ROOT / name, place / name)
        binaries = Path(sys.executable).parent
        (place / ".venv").mkdir()
        (place / ".venv" / "bin").symlink_to(binaries)
        for mark in (".installed", ".tested"):
            (place / ".venv" / mark).touch()
        self.environment = {
            "PATH": os.pathsep.join([str(binaries)] * is_active + _elsewhere()),
            "HOME": os.environ.get("HOME", str(place)), "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
        }  # fmt: skip

    def write(self, block: Block) -> None:
        """Write or extend the file that a block shows."""
        text = "\n".join(block.lines) + "\n"
        path = self.place / block.words[0]
        if "append" in block.words:
            text = path.read_text(encoding="utf-8") + "\n" + text
        path.write_text(text, encoding="utf-8")

    def run(self, command: str) -> tuple[str, ...]:
        """The output of a command, both streams as a terminal mixes them; `$?` is the last code."""
        script = f"{self.sourced}(exit {self.code})\n{command}\n"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S, check=False,
        )  # fmt: skip
        self.code = done.returncode
        if command.startswith("source "):
            self.sourced += f"{command}\n"
        return tuple(line.rstrip() for line in done.stdout.decode().rstrip("\n").splitlines())


def _elsewhere() -> list[str]:
    """The folders of the path in which there is no specchk."""
    return [name for name in os.environ["PATH"].split(os.pathsep) if not Path(name, "specchk").exists()]


def normal(line: str) -> str:
    """A line without the parts that vary from run to run."""
    for pattern, text in _VARYING:
        line = pattern.sub(text, line)
    return line


def agrees(shown: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """Whether the output agrees with the document."""
    if ELISION not in shown:
        return [normal(line) for line in shown] == [normal(line) for line in found]
    pattern = "".join("(?:.*\n)*" if line == ELISION else re.escape(normal(line)) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(normal(line) + "\n" for line in found)) is not None


def rewritten(shown: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    """The output to show: as many lines before and after an elision as there were."""
    if agrees(shown, found):
        return shown
    if shown.count(ELISION) != 1:
        return found
    head = shown.index(ELISION)
    tail = len(shown) - head - 1
    if len(found) <= head + tail:
        return found
    return (*found[:head], ELISION, *found[len(found) - tail :])


def play(text: str, workplace: Workplace) -> Iterator[tuple[Command, tuple[str, ...]]]:
    """Follow a document like a reader: write its files, run its commands."""
    for block in blocks(text):
        if block.language == "spec" and block.words:
            workplace.write(block)
        elif block.language == "console":
            for command in commands(block):
                yield command, workplace.run(command.text)


def with_output(text: str, outputs: list[tuple[str, ...]]) -> str:
    """The document with the output of each command replaced, in order."""
    lines = text.splitlines()
    following = iter(outputs)
    made: list[str] = []
    done = 0
    for block in blocks(text):
        if block.language != "console":
            continue
        made += lines[done : block.start]
        for command in commands(block):
            made += [f"$ {command.text}", *next(following)]
        done = block.start + len(block.lines)
    return "\n".join([*made, *lines[done:]]) + "\n"
