"""Limits of time and memory end a command wherever its work is: never with `holds`, a trace or a hang."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import pytest
from cli_process import process

from hang import HANG_S

HOSTILE = Path(__file__).parents[2] / "bench/engines/hostile"
# Models that would take from minutes to years, each within a part of the work that does not look at limits.
ENDLESS = [
    ("one_level", "run --engine symbolic --workers 2"),  # in another process
    ("one_level", "run --engine symbolic --workers 1"),
    ("pigeons", "run --prove"),  # within a query
    ("pigeons", "run --depth 40"),
    ("pigeons", "run --prove --suggest"),
    ("guard", "run"),  # in compiled code
    ("guard", "run --engine reference"),
    ("guard", "simulate --seed 1"),
    ("guard", "simulate --seed 1 --engine reference"),
    ("comprehension", "run --engine reference"),
    ("constant", "run"),  # while it is compiled
    ("constant", "conditions"),
    ("constant", "draw"),
    ("many_beginnings", "run --engine reference"),
    ("maps", "run"),
]


@pytest.mark.parametrize(("name", "command"), ENDLESS)
def test_a_limit_of_time_ends_work_that_does_not_look_at_it(name: str, command: str) -> None:
    """With the limit as the reason, in one line without a trace."""
    kind, *words = command.split()
    with process(kind, str(HOSTILE / f"{name}.spec"), *words, "--max-seconds", "1") as running:
        out, err = running.communicate(timeout=HANG_S)
    text = (out + err).decode()
    assert running.returncode == 20, text
    if kind == "conditions" and out:
        assert "a budget ended the search" in text
    else:
        assert "inconclusive: the limit of 1 s (--max-seconds) was reached" in text
    assert "Traceback" not in text
    assert "holds" not in text


def test_a_limit_without_a_report_is_json_too() -> None:
    """The object of a command that ended without one."""
    with process("run", str(HOSTILE / "constant.spec"), "--json", "--max-seconds", "1") as running:
        out, _ = running.communicate(timeout=HANG_S)
    report = json.loads(out)
    assert (running.returncode, report["verdict"], report["exit_code"]) == (20, "inconclusive", 20)
    assert "--max-seconds" in report["reason"]


def test_each_model_of_a_test_has_the_limit_for_itself(tmp_path: Path) -> None:
    """One that reaches it is not as expected, and the others are tested."""
    text = (HOSTILE / "scenario.spec").read_text(encoding="utf-8")
    file = tmp_path / "scenario.spec"
    file.write_text(text.replace("0..1000000", "0..3").replace("n' = n + 1", "require n < 3\n    n' = n + 1")
                    .replace("model m:\n", "deadlock ok\nmodel m:\n"), encoding="utf-8")  # fmt: skip
    with process("test", str(file), "--json", "--max-seconds", "6") as running:
        out, err = running.communicate(timeout=HANG_S)
    results = json.loads(out)["results"]
    assert running.returncode == 10, err
    assert [result["passed"] for result in results] == [True, False]
    assert results[1]["problems"] == ["the limit of 6 s (--max-seconds) was reached"]


def test_the_loading_of_a_tested_file_is_limited(tmp_path: Path) -> None:
    """Before a model begins; 600 actions load in many seconds."""
    lines = ["spec code", "var f : 0..9 -> 0..99 = { p: 0 for p in 0..9 }"]
    other = "if r == p then (f[r] + {0}) % 99 else if f[r] > {0} then f[q] else f[r]"
    for number in range(600):
        lines += [f"action a{number}(p: 0..9, q: 0..9):"]
        lines += [f"    f' = {{ r: ({other.format(number % 99)}) for r in 0..9 }}"]
    file = tmp_path / "code.spec"
    file.write_text("\n".join([*lines, "model m:", "    expect holds", ""]), encoding="utf-8")
    with process("test", str(file), "--max-seconds", "0.5") as running:
        out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 20, out + err
    assert b"the limit of 0.5 s (--max-seconds) was reached" in out + err
    assert b"m:" not in out


@pytest.mark.parametrize("command", ["run --engine reference", "run --engine symbolic --workers 1"])
def test_a_limit_of_memory_is_kept_within_one_evaluation(command: str) -> None:
    """Where one set takes all of it."""
    kind, *words = command.split()
    with process(kind, str(HOSTILE / "comprehension.spec"), *words, "--max-memory", "300M") as running:
        out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 20, out + err
    assert b"(--max-memory) was reached" in out + err


def test_values_that_take_long_are_left_out_of_a_report() -> None:
    """The violation is known by then."""
    command = ["run", str(HOSTILE / "violated.spec"), "--engine", "reference", "--max-seconds", "2"]
    slow = "sum(x * y + f[0] for x in 0..9999, y in 0..9999)"
    with process(*command, "--show", slow) as running:
        out, err = running.communicate(timeout=HANG_S)
    assert running.returncode in (10, 20), out + err
    assert b"(--max-seconds)" in out + err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit it")
@pytest.mark.parametrize("megabytes", [100, 500])
@pytest.mark.parametrize(
    "command", ["run", "run --engine symbolic", "run --prove", "simulate --seed 1", "draw"]
)
def test_too_little_address_space_is_inconclusive(megabytes: int, command: str) -> None:
    """Where LLVM or Z3 would not load, or end the process with a signal; with the option to change."""
    kind, *words = command.split()
    space = megabytes << 20
    with process(
        kind, str(HOSTILE / "wide.spec"), *words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)),
    ) as running:  # fmt: skip
        out, err = running.communicate(timeout=HANG_S)
    assert running.returncode == 20, out + err
    assert f"have {megabytes} (`ulimit -v`)".encode() in err
