"""TLA+ modules: golden texts, names, what is rejected, and TLC's counts where there is a TLC."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from report.conftest import Golden
from specchk.compile.instantiate import instantiate
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.rules import DERIVED
from specchk.report.tla.layout import Tight, atom, bracketed, combined, junction, let
from specchk.report.tla.module import VARIANTS, Exported, exported
from specchk.report.tla.names import TlaNames
from specchk.report.tla.operators import RULES
from specchk.search.engine import Options
from specchk.search.reference import search

TLC = os.environ.get("SPECCHK_TLC_JAR")  # the path of tla2tools.jar


def path_of(name: str) -> str:
    """A bundled example, or the spec of rare forms."""
    return "tests/golden/tla/forms.spec" if name == "forms" else f"spec/examples/{name}.spec"


def made(path: str, model: str | None = None, *, symmetry: bool = True) -> Exported:
    """A bundled spec in TLA+."""
    return exported(instantiate(check(path), model).program, "M", symmetry=symmetry)


@pytest.mark.parametrize(
    "name", ["fair_channel", "forms", "logical_clock", "memory", "two_phase_transaction"]
)
def test_the_module_and_the_configuration_of_a_spec(name: str, golden: Golden) -> None:
    """Fairness; rare operators; bags and horizons; unions, options and symmetry; a refinement."""
    text = made(path_of(name))
    golden(f"tla/{name}.tla", text.module + "\n" + text.configuration)


def test_every_operator_has_a_rule() -> None:
    """One of TLA+, or one that is read from the page of rules."""
    assert {*RULES, *DERIVED} == set(Op)


def test_no_name_is_given_twice_or_taken_from_tla() -> None:
    """Words of TLA+, names of helpers, and names that differ only in characters that TLA+ lacks."""
    names = TlaNames()
    assert [names.new(name) for name in ("Len", "SumOf", "log.Path", "log_Path", "WF_x", "x")] == [
        "Len_2", "SumOf_2", "log_Path", "log_Path_2", "n_WF_x", "x",
    ]  # fmt: skip
    assert names.local("x", ["x_2"]) == "x_3"


def test_a_text_in_a_list_never_moves_to_the_left() -> None:
    """TLA+ reads the columns of lists: a list within an operand, a call and a `LET` keeps its own."""
    inner = junction("\\/", [atom("a" * 50), atom("b" * 50)], "FALSE")
    parts = [combined(inner, "+", atom("c")), let("x", inner, bracketed("f(", [inner], ")"))]
    text = junction("/\\", parts, "")
    assert text.level is Tight.JUNCTION
    assert text.lines == (
        "/\\ (\\/ " + "a" * 50,
        "    \\/ " + "b" * 50 + ")",
        "     + c",
        "/\\ LET x == \\/ " + "a" * 50,
        "            \\/ " + "b" * 50,
        "   IN  f(\\/ " + "a" * 50,
        "         \\/ " + "b" * 50 + ")",
    )


def test_the_assignments_of_a_path_come_behind_its_conditions(tmp_path: Path) -> None:
    """Also where a condition follows a branch that assigns: TLC would evaluate what has no value."""
    path = tmp_path / "late.spec"
    lines = ["spec late", "var o : (0..2)? = none", "var n : 0..2 = 0", "action take():", "    either:"]
    lines += ["        n' = get(o)", "    or:", "        n' = 0", "    require o != none", ""]
    path.write_text("\n".join(lines), encoding="utf-8")
    take = "take == (o # None /\\ n' = o[1] /\\ UNCHANGED o) \\/ (o # None /\\ n' = 0 /\\ UNCHANGED o)"
    assert take in made(str(path)).module.splitlines()


def test_what_has_no_form_is_rejected_with_its_place(tmp_path: Path) -> None:
    """Never left out silently."""
    path = tmp_path / "first.spec"
    lines = [
        "spec first",
        "var s : set[0..1] = {}",
        "action a():",
        "    s' = choose t in { s, {1} }: 1 in t",
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SpecError) as rejected:
        made(str(path))
    (diagnostic,) = rejected.value.diagnostics
    assert (diagnostic.code, diagnostic.where) == ("S704", f"{path}:4:10")


def tlc(program: Program, folder: Path) -> str:
    """What TLC says of a program."""
    text = exported(program, "M", symmetry=False)
    files = {"M.tla": text.module, "M.cfg": text.configuration, "Variants.tla": VARIANTS}
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8")
    command = ["java", "-XX:+UseSerialGC", "-cp", str(TLC), "tlc2.TLC", "-continue", "-workers", "1", "M"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


NEEDS_TLC = pytest.mark.skipif(TLC is None, reason="SPECCHK_TLC_JAR does not name a tla2tools.jar")
DEADLOCK = """
spec ends
var n : nat upto 3 = 0
var done : bool = false
action grow():
    require not done
    n' = n + 1
action stop():
    require n == 2 and not done
    done' = true
deadlock ok when n < 2
"""


@pytest.mark.slow
@NEEDS_TLC
@pytest.mark.parametrize(
    "name", ["barrier", "fair_channel", "forms", "leases", "logical_clock", "memory", "two_phase_transaction"]
)
def test_tlc_finds_as_many_states(name: str, tmp_path: Path) -> None:
    """With all of a model's properties, and without symmetry."""
    program = instantiate(check(path_of(name)), None).program
    said = tlc(program, tmp_path)
    counts = search(program, Options(symmetry=False, keep_going=True)).statistics
    assert re.findall(r"(\d+) distinct states found", said)[-1:] == [str(counts.distinct)], said


@pytest.mark.slow
@NEEDS_TLC
def test_a_step_above_a_horizon_is_not_taken_and_no_deadlock(tmp_path: Path) -> None:
    """`deadlock ok when` is an invariant: TLC finds the one deadlock, and none at the horizon."""
    path = tmp_path / "ends.spec"
    path.write_text(DEADLOCK.lstrip(), encoding="utf-8")
    said = tlc(instantiate(check(str(path)), None).program, tmp_path)
    assert said.count("is violated") == said.count("Invariant NoDeadlock is violated") == 1
    assert "5 distinct states found, 0 states left" in said
