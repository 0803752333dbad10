"""docs/rules.md has a row for every rule, and each name in it exists and checks the rule.

A mutant that a row cites changes a function of that row, and diverges on the gate's model beside it; a test
that a row cites enters a function of that row.  So a name that is only similar to the right one is found.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from laws.sources import ROOT
from replog.play import stories
from specchk.conform.contract.known_bad import BadCode, Control
from specchk.conform.contract.load import load_binding
from specchk.conform.mutation.mutants import Mutant, load
from specchk.conform.work import lock_file

TEXT = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
SPECS = {path.stem: path for path in (ROOT / "spec").glob("*.spec")}
FOLDER = ROOT / "conformance" / "mutants"
REPLOG = ROOT / "tests" / "replog"
IDS = [*(f"S{n}" for n in range(1, 65)), *(f"I{n}" for n in range(1, 35))]
# These sets only shrink.
NOT_HELD: set[str] = set()
ABSTRACTED = {"S41", "S63", "S64", "I12"}
WITHOUT_MUTANT = {"S1", "S51"}
_ROW = re.compile(r"^\| \[([SI]\d+)\]\(kafka-reference\.md#(\w+)\) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
_PART = re.compile(r"(?P<kind>gate|binding|mutant|test|spec|story)s? (?:`(?P<of>\w+)`: )?(?P<names>`.+)")
_NAME = re.compile(r"`([^`]+)`")
_KIND = "action|def|const|type|var|(?:step )?invariant|reachable|model|scenario"


@dataclass(frozen=True)
class Row:
    """One rule, with the names of its cells; of the last one by kind and heading."""

    rule: str
    anchor: str
    spec: tuple[str, ...]
    replog: tuple[str, ...]
    held: str

    def names(self, *kinds: str) -> list[tuple[str, str]]:
        """The names of some kinds in the last cell, each with its heading: a model of the gate, a binding."""
        parts = [_PART.match(part) for part in self.held.split(". ")[0].split("; ")]
        found = [part for part in parts if part is not None and part["kind"] in kinds]
        return [(part["of"] or "", name) for part in found for name in _NAME.findall(part["names"])]


ROWS = [
    Row(rule, anchor, tuple(_NAME.findall(spec)), tuple(_NAME.findall(replog)), held)
    for rule, anchor, spec, replog, held in _ROW.findall(TEXT)
]
MUTANTS = {one.id: one for path in sorted(FOLDER.glob("*.toml")) for one in load(FOLDER, path.name)}


@cache
def line_of(name: str) -> int:
    """The line where `file:name` is declared, or is among the alternatives of a type; 0 if nowhere."""
    stem, _, word = name.partition(":")
    lines = SPECS[stem].read_text(encoding="utf-8").splitlines() if stem in SPECS else []
    declared = re.compile(rf"^\s*(?:{_KIND}) {word}\b|enum \{{[^}}]*\b{word}\b|[=|] {word}\(")
    return next((number for number, line in enumerate(lines, 1) if declared.search(line)), 0)


def is_repeated(name: str) -> bool:
    """Whether `specchk test` repeats `file:name`: a scenario, or a model with an expectation."""
    stem, _, word = name.partition(":")
    text = SPECS[stem].read_text(encoding="utf-8") if stem in SPECS else ""
    model = re.search(rf"^model {word}\b.*\n(?:[ #].*\n)+", text, re.MULTILINE)
    return f"\nscenario {word} on " in text or (model is not None and "expect " in model[0])


def is_test(name: str) -> bool:
    path, _, test = name.partition("::")
    return (REPLOG / path).is_file() and f"\ndef {test}(" in (REPLOG / path).read_text(encoding="utf-8")


@cache
def controls(folder: str) -> dict[str, Control]:
    """The planted errors of a binding, by name."""
    path = ROOT / "conformance" / folder / "binding.py"
    return {one.name: one for one in load_binding(path).controls} if path.is_file() else {}


def suites() -> set[str]:
    """The models of the gate."""
    gate = lock_file.read(ROOT / "conformance" / lock_file.NAME).gate
    assert gate is not None
    return {name.split()[0] for name in gate.suites}


def test_every_rule_has_its_row():
    """S1 to S64 and I1 to I34, each once, in order, with a link to its entry."""
    assert [row.rule for row in ROWS] == IDS
    assert all(row.anchor == row.rule.lower() for row in ROWS)
    assert len(TEXT.split("\n| [")) == len(IDS) + 1, "a row is not in the form of a row"
    read = sum(len(row.names("gate", "binding", "mutant", "test", "spec", "story")) for row in ROWS)
    headings = sum(len(re.findall("(?:gate|binding) `", row.held)) for row in ROWS)
    assert read + headings == sum(len(_NAME.findall(row.held)) for row in ROWS), "a cell is not in its form"


def test_every_name_is_there():
    """A name changed elsewhere must be changed here."""
    missing = [(row.rule, name) for row in ROWS for name in row.spec if not line_of(name)]
    missing += [(row.rule, name) for row in ROWS for name in row.replog if not _resolves(name)]
    missing += [(row.rule, name) for row in ROWS for _, name in row.names("test") if not is_test(name)]
    missing += [(row.rule, name) for row in ROWS for _, name in row.names("spec") if not is_repeated(name)]
    files = [(row.rule, name) for row in ROWS for _, name in row.names("story")]
    missing += [(rule, name) for rule, name in files if name not in stories()]
    assert missing == []


def _resolves(name: str) -> bool:
    try:
        resolve_name(f"replog.{name}")
    except (ImportError, AttributeError):
        return False
    return True


def test_no_row_is_empty_except_those_listed():
    """A rule has a line of a spec, a function, and something that fails if it is wrong; or the reason."""
    open_rows = {row.rule for row in ROWS if "*Not held*: " in row.held}
    abstracted = {row.rule for row in ROWS if "*Abstracted in replog*: " in row.held}
    full = {row.rule for row in ROWS if row.spec and row.replog and _NAME.search(row.held)}
    assert (open_rows, abstracted) == (NOT_HELD, ABSTRACTED)
    assert (full | open_rows | abstracted, full & abstracted, full & open_rows) == (set(IDS), set(), set())
    assert all(row.spec and _NAME.search(row.held) for row in ROWS if row.rule in abstracted)
    planted = {row.rule for row in ROWS if row.names("gate", "binding", "mutant")}
    assert full - planted == WITHOUT_MUTANT


def test_a_mutant_changes_a_function_of_its_row():
    """And diverges on the model beside it, which the gate runs; a binding's planted error alike."""
    wrong = []
    for row in ROWS:
        for model, name in row.names("gate", "mutant"):
            mutant = MUTANTS.get(name)
            is_shown = mutant is not None and mutant.shown == model and {model} <= {"", *suites()}
            if mutant is None or not is_shown or not any(_changes(mutant, one) for one in row.replog):
                wrong.append((row.rule, name))
        for folder, name in row.names("binding"):
            planted = controls(folder).get(name)
            if not isinstance(planted, BadCode) or _name_of(planted) not in row.replog:
                wrong.append((row.rule, name))
    assert wrong == []


def _name_of(planted: BadCode) -> str:
    return f"{planted.function.__module__}.{planted.function.__qualname__}".removeprefix("replog.")


def _changes(mutant: Mutant, name: str) -> bool:
    named: Any = resolve_name(f"replog.{name}")
    patches = [one for one in mutant.patches if f"replog.{name}".startswith(f"{one.module}.")]
    if inspect.isfunction(named):
        return any(one.old.strip("\n") in inspect.getsource(named) for one in patches)
    return any(name.rpartition(".")[2] in one.old for one in patches)  # a field, with its default


def test_a_mutant_of_a_rule_is_in_its_row():
    """A rule named in a mutant's file has the mutant in its row."""
    cited = {row.rule: {name for _, name in row.names("gate", "mutant")} for row in ROWS}
    rules = [(rule, one.id) for one in MUTANTS.values() for rule in one.flaw.split(", ") if rule in cited]
    assert len(rules) > 10
    assert [(rule, name) for rule, name in rules if name not in cited[rule]] == []


@pytest.mark.system
def test_a_test_enters_a_function_of_its_row():
    """A test that never runs the function it is cited for checks nothing."""
    tests = sorted({name for row in ROWS for _, name in row.names("test")})
    entered = functions_entered(tests)
    assert set(entered) == set(tests)
    wrong = [(row.rule, name) for row in ROWS for _, name in row.names("test")
             if not {f"replog.{one}" for one in row.replog} & entered[name]]  # fmt: skip
    assert wrong == []


def functions_entered(tests: list[str]) -> dict[str, set[str]]:
    """The functions of replog that each test enters, found by running them in a separate process."""
    script = str(Path(__file__).with_name("entered.py"))
    command = [sys.executable, script, *(str(REPLOG / one) for one in tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, set[str]] = {}
    for test, name in re.findall(r"^entered tests/replog/(\S+) (\S+)$", done.stdout, re.MULTILINE):
        found.setdefault(test, set()).add(name)
    return found
