"""docs/kafka-reference.md has an entry for every cited id, and its counterexamples are the specs'."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from laws.sources import ROOT
from replog.core.protocol import Protocol

REFERENCE = ROOT / "docs" / "kafka-reference.md"
TEXT = REFERENCE.read_text(encoding="utf-8")
FOLDERS = ("interp", "impl", "spec", "conformance", "docs", "tests")
KINDS = (".py", ".spec", ".toml", ".txt", ".md")
# A letter of the reference, one or two digits, and for A7 and P4 the case: `A7d`, `P4w`.
_ID = re.compile(r"(?<![\w./@-])([ABFIPSW])([1-9]\d?)([a-dw]?)(?![\w.]*\w)")
_RANGE = re.compile(r"\b([ABFIPSW])([1-9]\d?)(?:-|\s?\.\.\s?)\1([1-9]\d?)\b")
# What looks like an id and is none, with the reason.
OTHERS = {
    "tests/lang/test_codes.py": "S1 to S7 are groups of diagnostics",
    "interp/specchk/cli/commands/check.py": "S6 is a group of diagnostics",
    "tests/cli/test_run.py": "S1 and S5 are groups of diagnostics",
    "tests/native/": "names of values and widths",
    "tests/conform/test_gate.py": "a flaw of an invented ledger",
    "tests/laws/test_references.py": "these are about it",
}
ENTRIES = frozenset(re.findall(r"^### ([A-Z]\d+) ", TEXT, re.MULTILINE)) | {
    name[0].upper() + name[1:] for name in re.findall(r'<a id="([a-z]\d+[a-z]?)"></a>', TEXT)
}
_MODEL = re.compile(r"`(\w+):(\w+)` (\d+)\b")
_SWITCHES = re.compile(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def citations(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that may cite, with their numbers; for a program its comments and strings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        if not any(ids(text)):
            return
        kept = {tokenize.COMMENT, tokenize.STRING}
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in kept:
                yield from enumerate(token.string.splitlines(), token.start[0])
        return
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line.partition("#")[2] if path.suffix == ".spec" else line


def ids(line: str) -> Iterator[str]:
    """The ids cited by a line; a range such as S43-S48 includes all ids in it."""
    for letter, first, last in _RANGE.findall(line):
        yield from (f"{letter}{number}" for number in range(int(first), int(last) + 1))
    yield from ("".join(parts) for parts in _ID.findall(line))


def files() -> list[Path]:
    found = [path for folder in FOLDERS for kind in KINDS for path in (ROOT / folder).rglob(f"*{kind}")]
    names = {path: path.relative_to(ROOT).as_posix() for path in sorted({*found, *ROOT.glob("*.md")})}
    return [path for path, name in names.items() if not name.startswith(tuple(OTHERS))]


@cache
def cited() -> tuple[tuple[str, str], ...]:
    """Each citation: file and line, and the id."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{number}", name)
        for path in files()
        for number, line in citations(path)
        for name in ids(line)
    )


def test_every_id_that_is_cited_has_an_entry():
    """A reader of `A7` in a comment finds it in docs/kafka-reference.md."""
    missing = [f"{place} cites {name}" for place, name in cited() if name not in ENTRIES]
    assert not missing, "without an entry in docs/kafka-reference.md"


def test_citations_are_found():
    """The form of the ids is recognised: a change of it would otherwise check nothing."""
    found = [name for _, name in cited()]
    assert len(found) > 350
    assert {"A7", "A7d", "B12", "F1", "I6", "P4w", "P19", "S29", "W7"} <= set(found)
    assert set(ids("S43-S45, I13; B30.")) == {"S43", "S44", "S45", "I13", "B30"}


def test_an_id_has_one_entry():
    """No id is explained twice, and no heading repeats a row."""
    anchors = re.findall(r'<a id="([^"]+)"></a>', TEXT)
    headings = [name.lower() for name in re.findall(r"^### ([A-Z]\d+) ", TEXT, re.MULTILINE)]
    assert len({*anchors, *headings}) == len(anchors) + len(headings)


def test_a_counterexample_of_the_ledger_has_the_length_that_its_model_expects():
    """`spec:model` N in the ledger is a model that expects a violation in N steps."""
    found = _MODEL.findall(TEXT)
    specs = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "spec").rglob("*.spec")}
    assert len(found) > 50
    for spec, model, steps in found:
        assert expected(specs[spec], model) == steps, f"{spec}:{model}"


def expected(text: str, model: str) -> str | None:
    """The number of steps that a model of a spec expects."""
    lines = iter(text.split(f"\nmodel {model}", 1)[1].splitlines()[1:])
    body = []
    for line in lines:
        if line and not line.startswith((" ", "#")):
            break
        body.append(line)
    steps = re.search(r"expect violates \w+ in (\d+) steps", "\n".join(body))
    return steps[1] if steps else None


def test_the_switches_are_those_of_the_spec_and_of_replog():
    """The table of switches names constants of the specs, and every field of `Protocol` once."""
    section = TEXT.split("### G.2", 1)[1].split("\n## ", 1)[0]
    rows = _SWITCHES.findall(section)[1:]
    names = ("replication", "isr_timing", "reassignment", "log_start", "coordinator", "controller_log")
    text = "".join((ROOT / "spec" / f"{name}.spec").read_text(encoding="utf-8") for name in names)
    constants = {name for left, _ in rows for name in re.findall(r"`(\w+)`", left)} - set(names)
    assert constants
    assert all(re.search(rf"^const {name} *:", text, re.MULTILINE) for name in constants), constants
    fields = sorted(name for _, right in rows for name in re.findall(r"`(\w+)`", right))
    assert fields == sorted(Protocol.__dataclass_fields__)
