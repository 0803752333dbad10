"""An operator is added by its card, its rule and its word: every engine then has it, and TLA+.

Two are added to a copy of the package, one of numbers and one that may have no value, and no line to an
engine.  Specs that use them are compared on all engines with the same specs that spell them out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hang import HANG_S
from laws.sources import PACKAGES

ADDED = {  # file -> the line before, and the added line
    "ir/ops.py": (
        '    BAG_CARD = Card("card", (Bag,), _size)\n',
        (
            '    GAP = Card("gap", (Int, Int), '
            "_numbers(lambda a, b: (0, max(0, a.high - b.low, b.high - a.low))))\n"
            '    SECOND = Card("second", (Seq,), _content, always, marks="truth", is_part=True)\n'
        ),
    ),
    "meaning/rules.py": (
        "        Op.NEG: lambda a: 0 - a,\n",
        (
            "        Op.GAP: lambda a, b: a - b if b <= a else b - a,\n"
            '        Op.SECOND: lambda a: fail("`second` of less than two") if len(a) < 2 else a[1],\n'
        ),
    ),
    "lang/check/builtins.py": (
        '        "maps": (2, 2, _maps),',
        '        "gap": (2, 2, _extreme), "second": (1, 1, _of(Seq, result=_item)),\n',
    ),
}
SPEC = """spec added
type Offset = nat upto 3
var a : Offset = 0
var b : Offset = 0
var row : seq[Offset] upto 2 = []
action grow():
    require GAP < 2
    a' = a + 1
action follow():
    require GAP > 0
    b' = a
action keep():
    require len(row) < 2
    row' = append(row, a)
action drop():
    require len(row) > ENOUGH
    require SECOND >= 0
    row' = tail(row)
deadlock ok
invariant near: GAP <= 2
invariant late: b <= 2
"""
# What each engine says of a spec, in a line.
RUN = """
import sys
from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native import engine as native
from specchk.report.tla.module import exported
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.joins.engine import JoinOptions
from specchk.symbolic.joins.engine import search as zones

def said(outcome):
    violations = getattr(outcome.verdict, "violations", ())
    return type(outcome.verdict).__name__, [(v.kind, v.name, len(v.trace.steps)) for v in violations]

if __name__ == "__main__":
    for path in sys.argv[1:]:
        program = instantiate(check(path)).program
        counted = [reference.search(program, Options()), native.search(program, native.NativeOptions())]
        print([(said(outcome), outcome.statistics.distinct) for outcome in counted])
        print(said(zones(program, JoinOptions(Budget(), workers=1))), said(bounded(program, 5, Budget())))
        print(prove(program, ProofOptions()).proved)
        print(exported(program, "M").module.split("EXTENDS")[1].split("\\n"))
"""


@pytest.mark.slow
def test_an_operator_needs_its_card_its_rule_and_its_word(tmp_path: Path) -> None:
    """Where it has a value and where it has none; no engine has a line for it."""
    shutil.copytree(PACKAGES["specchk"], tmp_path / "specchk")
    for name, (before, added) in ADDED.items():
        file = tmp_path / "specchk" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(before) == 1
        end = text.index("\n", text.index(before)) + 1
        file.write_text(text[:end] + added + text[end:], encoding="utf-8")
    specs = []
    for enough in ("0", "1"):
        words = {"GAP": "gap(a, b)", "SECOND": "second(row)", "ENOUGH": enough}
        spelt = {"GAP": "(if b <= a then a - b else b - a)", "SECOND": "row[1]", "ENOUGH": enough}
        for number, given in enumerate((words, spelt)):
            text = SPEC
            for word, code in given.items():
                text = text.replace(word, code)
            specs.append(tmp_path / f"{enough}{number}.spec")
            specs[-1].write_text(text, encoding="utf-8")
    script = tmp_path / "run.py"
    script.write_text(RUN, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "kept")}
    done = subprocess.run(
        [sys.executable, str(script), *map(str, specs)],
        capture_output=True,
        text=True,
        env=env,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 16
    assert lines[:4] == lines[4:8]
    assert lines[8:12] == lines[12:]
    assert "undefined" in lines[0]
    assert "undefined" not in lines[8]
    assert "near" in lines[10]
