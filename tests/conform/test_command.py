"""`specchk conform` reports its result in its exit code and in JSON."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import click
import pytest
from bank import SPEC
from click.testing import CliRunner

from laws.sources import ROOT
from specchk.cli.commands.conform import command
from specchk.compile.instantiate import instantiate
from specchk.conform.covers.graph import explore
from specchk.conform.replay.runner import PASSING
from specchk.lang.frontend import check
from specchk.meaning.properties import NoAnswer

BINDING = str(ROOT / "conformance" / "binding.py")
A_GATE = pytest.param(
    ["--set", "MaxOffset=1", "--set", "MaxCrashes=0"], 0, "conforms: replication", marks=pytest.mark.system
)


@pytest.mark.parametrize(
    ("options", "code", "first"),
    [
        (["--tier", "smoke"], 0, "conforms: replication, model two_brokers"),
        A_GATE,
        (["--suite", "product", "--max-states", "20"], 20, "conforms so far: replication"),
        (["--suite", "classes", "--max-states", "20"], 20, "conforms so far: replication"),
        (["--suite", "walks", "--walks", "1", "--steps", "1"], 0, "conforms: replication"),
    ],
)
def test_the_exit_code_and_the_first_line_agree(options, code, first):
    """A suite that a budget ended is not a success, and a divergence has its own code."""
    result = CliRunner().invoke(command, [BINDING, *options])
    assert result.exit_code == code
    assert result.output.startswith(first)


def test_a_divergence_has_its_own_exit_code(lossy):
    """13, and the first line describes the difference."""
    result = CliRunner().invoke(command, [str(lossy)])
    assert result.exit_code == 13
    assert result.output.startswith("diverges: the implementation took the step to a state")


def conform_ending(lossy, ends, *options):
    """A run in which each transfer first ends its process."""
    ending = lossy.read_text().replace("answer = ", f"{ends}\n        answer = ")
    lossy.write_text(f"import os, threading\n{ending}")
    places = [str(ROOT / "interp"), str(Path(__file__).parent)]
    return subprocess.run(
        [sys.executable, "-m", "specchk", "conform", str(lossy), *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.system
@pytest.mark.parametrize("suite", ["classes", "product"])
def test_an_implementation_that_ends_its_process_diverges(lossy, suite):
    """`os._exit(0)` determines neither specchk's exit code nor its output."""
    done = conform_ending(lossy, "os._exit(0)", "--suite", suite)
    assert (done.returncode, done.stderr) == (13, "")
    assert "SystemExit: 0" in done.stdout


@pytest.mark.system
def test_a_thread_that_ends_its_process_is_no_success(lossy):
    """It ends specchk, too, with a sentence and the exit code of a divergence."""
    done = conform_ending(
        lossy, "(t := threading.Thread(target=os._exit, args=(0,))).start(); t.join()", "--suite", "product"
    )
    assert (done.returncode, done.stdout) == (13, "")
    assert done.stderr == "os._exit(0) was called in a thread, which ends the process\n"


@pytest.mark.system
@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", 13, "ended the process that ran it: SIGSEGV"),
        ("ctypes.CDLL(None)._exit(0)", 13, "ended the process that ran it: exit code 0"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 21, "was killed, by a person or because memory ran out"),
    ],
)
def test_a_process_that_ends_beside_others_is_no_internal_error(lossy, ends, code, said):
    """An end by C code or a signal has no step to report, but a sentence and an exit code."""
    lossy.write_text(f"import ctypes, signal\n{lossy.read_text()}")
    done = conform_ending(lossy, ends, "--tier", "gate", "--json")
    assert (done.returncode, done.stderr) == (code, "")
    assert said in json.loads(done.stdout)["reason"]


def test_json_has_the_path_and_the_places_that_differ(lossy):
    """Everything in the text that a program may need."""
    result = CliRunner().invoke(command, [str(lossy), "--json"])
    found = json.loads(result.output)
    assert (found["schema"], found["verdict"], found["exit_code"]) == ("specchk.conform/1", "diverges", 13)
    assert found["divergence"]["path"] == ["transfer(a1, a2)"]
    assert found["divergence"]["step"] == "transfer(a1, a2)"
    assert [one["place"] for one in found["divergence"]["differences"]] == ["balance[a2]"]


def test_a_model_that_the_binding_is_not_for_is_rejected():
    """Like a wrong spec: with the error and the remedy."""
    result = CliRunner().invoke(command, [BINDING, "--model", "b1_truncate_to_hw"])
    assert result.exit_code == 30
    assert "the model sets `truncation`" in result.output


@pytest.mark.parametrize(("line", "words"), [
    ("def (", "SyntaxError: invalid syntax"),
    ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ("int('x')", "ValueError: invalid literal for int() with base 10: 'x'"),
    ("raise SystemExit(0)", "SystemExit: 0"),
])  # fmt: skip
def test_a_binding_that_cannot_be_run_is_an_error_of_usage(tmp_path, line, words):
    """With the file, the line and the error's message; it is not an internal error of specchk."""
    path = tmp_path / "binding.py"
    path.write_text(f"import json\n{line}\n")
    known = list(sys.path)
    done = CliRunner().invoke(command, [str(path)], standalone_mode=False)
    assert isinstance(done.exception, click.ClickException)
    assert done.exception.format_message() == f"{path}:2: {words}"
    assert sys.path == known


@pytest.mark.parametrize("suite", ["classes", "edges", "lassos", "product", "walks"])
@pytest.mark.parametrize(("init", "code", "why"), [
    ("0 == 1", 30, "no state satisfies the spec's `init`"),
    ("1 // 0 == 1", 1, "the spec is undefined in `init`: division by zero"),
])  # fmt: skip
def test_a_spec_without_an_initial_state_is_rejected(lossy, init, code, why, suite):
    """For any suite: there is no place to start."""
    (lossy.parent / "bank.spec").write_text(f"{SPEC}init: {init}\n")
    result = CliRunner().invoke(command, [str(lossy), "--suite", suite])
    assert result.exit_code == code  # of click's errors 1, which `main` makes 2
    assert why in result.output


@pytest.mark.parametrize("suite", ["classes", "edges", "lassos"])
def test_a_constraint_without_a_value_is_an_error(lossy, suite):
    """No suite can be computed: the bounds of the search have no meaning."""
    (lossy.parent / "bank.spec").write_text(f"{SPEC}constraint far: 1 // 0 == 1\n")
    result = CliRunner().invoke(command, [str(lossy), "--suite", suite])
    assert result.exit_code == 1  # of click's errors, which `main` makes 2
    assert "the spec is undefined in `far`: division by zero" in result.output


def test_a_constraint_without_a_value_is_carried_out_of_a_process(lossy):
    """As suites run on all cores: the exception is passed on with all of its details."""
    (lossy.parent / "bank.spec").write_text(f"{SPEC}constraint far: 1 // 0 == 1\n")
    program = instantiate(check(str(lossy.parent / "bank.spec"))).program
    with pytest.raises(NoAnswer) as raised:
        explore(program)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.name, again.blame, str(again)) == ("far", raised.value.blame, "division by zero")
    assert NoAnswer in PASSING


EVEN = f"{SPEC}constraint even: forall a in Account: balance[a] <= 2\n"


@pytest.mark.parametrize("suite", ["classes", "product", "walks"])
def test_a_constraint_is_a_bound_of_what_conforms(lossy, suite):
    """The error of `lossy` is in the second transfer, and a state after the first is not expanded."""
    (lossy.parent / "bank.spec").write_text(EVEN)
    result = CliRunner().invoke(command, [str(lossy), "--suite", suite])
    first = "conforms within even: bank, model small, on LossyBinding"
    assert (result.exit_code, result.output.splitlines()[0]) == (0, first)
    found = json.loads(CliRunner().invoke(command, [str(lossy), "--suite", suite, "--json"]).output)
    assert (found["verdict"], found["bounds"]) == ("conforms", ["even"])


@pytest.mark.parametrize("suite", ["classes", "edges", "lassos", "product", "walks"])
def test_nothing_begins_outside_a_constraint(lossy, suite):
    """If it excludes the initial state there is no state to search, and no step to take."""
    (lossy.parent / "bank.spec").write_text(f"{SPEC}constraint later: days > 0\n")
    result = CliRunner().invoke(command, [str(lossy), "--suite", suite])
    assert (result.exit_code, result.output.split(":")[0]) == (21, "vacuous")
    assert "0 steps taken" in result.output


def test_a_gate_names_the_constraint_in_each_suite(lossy):
    """With its verdict, in the first line and in those of the suites."""
    (lossy.parent / "bank.spec").write_text(EVEN)
    text = lossy.read_text().replace("import action", "import At, action")
    gate = '    gate = (At("small"), At("small", suite="product"))\n'
    lossy.write_text(
        text.replace('    model: ClassVar[str] = "small"\n', gate + '    model: ClassVar[str] = "small"\n')
    )
    lines = CliRunner().invoke(command, [str(lossy)]).output.splitlines()
    assert lines[0] == "conforms within even: bank on LossyBinding, gate"
    assert [line.split(",")[0] for line in lines[2:4]] == ["  conforms within even: small"] * 2
