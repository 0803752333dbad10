"""Bindings to processes: the same results as in this process, and every failure is a finding."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conform.bank import BankBinding, bank
from hang import HANG_S
from specchk.conform.adapter import ProcessBinding, RemoteSystem, request
from specchk.conform.adapter.wire import BrokenProtocol, WireRequest, answer_of
from specchk.conform.contract.binding import Answer, BindingError, Impossible, action
from specchk.conform.contract.failures import ImplementationFailure
from specchk.conform.contract.known_bad import BadFile, BadStart
from specchk.conform.covers.cover import build_suite
from specchk.conform.gate.controls import Trial, try_control
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.conform.replay.shrink import shrunk_result
from specchk.conform.replay.suites import SuiteResult, SuiteWalks, run_product, run_walks

HERE = Path(__file__).parent
PROGRAM = bank().program
CAPABILITIES = ("", "reset", "snapshot", "reset,snapshot,ask")


class StubbornBinding(ProcessBinding):
    """The bank in its own process."""

    spec: ClassVar[str] = "bank.spec"
    folder = HERE
    command = (sys.executable, "stubborn.py", "snapshot")
    implementation = ("stubborn.py",)
    timeout_s = HANG_S

    toss, sleep = request("toss", ways=("heads", "tails")), request("sleep")

    @action("transfer")
    def transfer(self, system: RemoteSystem, source: str, target: str) -> Answer:
        if source == target:
            return Impossible("there is no such form")
        return system.do("transfer", self.named("transfer", source, target))


def stubborn(can: str, mode: str = "", **members: Any) -> ProcessBinding:
    words = {"command": (sys.executable, "stubborn.py", can, mode), **members}
    cls: type[ProcessBinding] = type("StubbornBinding", (StubbornBinding,), words)
    return cls(PROGRAM)


def figures(result: SuiteResult) -> SuiteResult:
    return replace(result, seconds=0.0)


# Without capabilities every probe is a new process and all of its history.
LONG = [pytest.param(can, kind, marks=pytest.mark.slow)
        for can, kind in product(CAPABILITIES[:-1], ("product", "edges"))]  # fmt: skip
SHORT = [
    *product(CAPABILITIES, ("classes", "walks")),
    (CAPABILITIES[-1], "product"),
    (CAPABILITIES[-1], "edges"),
]


@pytest.mark.parametrize(("can", "kind"), [*SHORT, *LONG])
def test_a_process_has_the_results_of_the_same_code_in_this_process(can: str, kind: str):
    """States, steps, refusals and coverage are equal, whatever the process can do."""

    def run(binding: Any) -> SuiteResult:
        replayer = Replayer(binding)
        if kind == "product":
            return run_product(replayer)
        if kind == "walks":
            return run_walks(replayer, SuiteWalks(1, 3, 6))
        # Sequences once; without capabilities every probe would start a process.
        more = {} if can == CAPABILITIES[-1] else {"sequences": 0}
        return run_suite(replayer, build_suite(PROGRAM, kind, **more))

    found = figures(run(stubborn(can)))
    assert found.divergence is None
    assert found.steps > 5
    assert found == figures(run(BankBinding(PROGRAM)))


FINDINGS: Mapping[str, tuple[str, str]] = {
    "exits": ("died", "exited with code 3"), "killed": ("died", "killed by SIGKILL"),
    "half": ("died", "exited with code 0 in the middle of a line"),
    "deaf": ("died", "closed its output and did not exit"),
    "garbage": ("garbled", "a line is not JSON: 'tossing now'"),
    "list": ("garbled", "not a JSON object"), "other_id": ("garbled", "has another id than"),
    "no_id": ("garbled", "another id"), "two_members": ("garbled", "not have exactly one member"),
    "long": ("garbled", "longer than"), "not_utf8": ("garbled", "not JSON"),
    "error": ("raised", "the coin is lost"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "can"), [*((mode, "reset,snapshot") for mode in FINDINGS), ("exits", ""), ("garbage", "")]
)
def test_a_failing_process_is_a_finding_with_its_last_words(mode: str, can: str):
    """The kind, the reason, the step, and the trace to it; it is found again when repeated."""
    kind, reason = FINDINGS[mode]
    result = run_suite(Replayer(stubborn(can, mode)), build_suite(PROGRAM, "classes"))
    found = shrunk_result(Replayer(stubborn(can, mode)), result).divergence
    assert found is not None
    assert (found.kind, str(found.step), found.trace.steps) == (kind, "toss()", ())
    assert reason in found.reason
    assert "answering `do toss" in found.reason
    assert "did not reproduce" not in found.reason


@pytest.mark.parametrize("can", ["snapshot", "reset", "reset,snapshot"])
def test_a_process_that_cannot_rewind_is_a_finding(can: str):
    """A false `ok` is not a success: the state is not the requested one."""
    found = run_suite(Replayer(stubborn(can, "unable")), build_suite(PROGRAM, "classes")).divergence
    assert found is not None
    assert re.search("garbled: .*`ok` is not true.*the vault is open", f"{found.kind}: {found.reason}")


@pytest.mark.parametrize(("kind", "answer"), [
    ("reset", '"ok": false'), ("reset", '"ok": null'), ("restore", '"ok": 1'), ("do", '"refused": false'),
    ("do", '"impossible": null'), ("do", '"error": 7'), ("ask", '"answer": NaN'), ("ask", '"answer": 1e999'),
])  # fmt: skip
def test_the_value_of_an_answer_is_examined(kind: str, answer: str):
    """`ok` is true or missing, a reason is a text, and a value is valid JSON."""
    with pytest.raises(BrokenProtocol) as broken:
        answer_of(f'{{"id": 1, {answer}}}'.encode(), 1, WireRequest(kind))
    assert answer in str(broken.value)


def test_the_last_words_on_stderr_are_in_the_reason():
    """Line by line, below what happened."""
    found = run_product(Replayer(stubborn("snapshot", "exits"))).divergence
    assert found is not None
    assert found.reason.splitlines()[1:] == ["stderr: cannot toss:", "stderr: no coin"]


@pytest.mark.parametrize("mode", ["hangs", "blind"])
def test_a_process_that_hangs_is_a_finding(mode: str):
    """After the timeout of the binding; the checker continues."""
    binding = stubborn("snapshot", mode, timeout_s=1.0)
    result = run_product(Replayer(binding))
    assert result.divergence is not None
    assert (result.divergence.kind, str(result.divergence.step)) == ("hung", "toss()")
    assert "no answer after 1 s" in result.divergence.reason


def test_a_process_that_hangs_is_not_tried_for_every_shorter_path():
    """Only the straight path is tried, since each try lasts as long as the timeout."""
    binding = stubborn("snapshot", "hangs", timeout_s=0.5)
    result = run_walks(Replayer(binding), SuiteWalks(3, 20, 20))
    assert result.divergence is not None
    short = shrunk_result(Replayer(binding), result).divergence
    assert short is not None
    assert (short.kind, short.found_after) == ("hung", len(result.divergence.trace.steps))


def test_much_on_stderr_blocks_nothing():
    """It is drained, and is not a finding unless the binding requires silence."""
    assert run_product(Replayer(stubborn("snapshot", "floods"))).divergence is None
    found = run_product(Replayer(stubborn("snapshot", "floods", is_quiet=True))).divergence
    assert found is not None
    assert (found.kind, "wrote to stderr" in found.reason) == ("garbled", True)
    assert len(found.reason.splitlines()) == 22


def test_a_process_that_does_not_repeat_itself_is_a_finding():
    """Without snapshots the requests are sent again; a different answer is reported as such."""
    found = run_walks(Replayer(stubborn("reset", "fickle")), SuiteWalks(0, 20, 20)).divergence
    assert found is not None
    assert found.kind in ("unrepeatable", "refused")


def test_what_cannot_start_is_an_error_of_the_binding():
    """No such program, and another version of the protocol; a process that dies at the start is a finding."""
    with pytest.raises(BindingError, match=r"`no-such-program` cannot be started"):
        run_product(Replayer(stubborn("", command=("no-such-program",))))
    with pytest.raises(BindingError, match="the implementation has protocol 2, this specchk 1"):
        run_product(Replayer(stubborn("", "version")))
    found = run_product(Replayer(stubborn("", "no_start"))).divergence
    assert found is not None
    assert (found.kind, found.step) == ("died", None)
    assert "at the start: it exited with code 7" in found.reason
    found = run_product(Replayer(stubborn("flying"))).divergence
    assert found is not None
    assert (found.kind, "flying" in found.reason) == ("garbled", True)


@pytest.mark.parametrize(("members", "message"), [
    ({"command": ()}, "has no `command`"), ({"folder": None}, "has no `folder`"),
    ({"implementation": ()}, "does not name the files"),
    ({"implementation": ("stubborn.py", "*.js")}, r"no file is named by `\*.js`"),
])  # fmt: skip
def test_a_binding_that_says_too_little_is_rejected(members: dict[str, Any], message: str):
    """Before anything is started."""
    with pytest.raises(BindingError, match=message):
        Replayer(stubborn("", **members))


def test_a_question_needs_the_capability():
    """`ask` is answered, or refused with a hint."""
    assert stubborn("reset,snapshot,ask").start().ask("nights") == 0
    with pytest.raises(BindingError, match="does not offer `ask`"):
        stubborn("snapshot").start().ask("nights")


def test_after_a_failure_nothing_is_answered_until_it_is_rewound():
    """Otherwise a new process would answer for the dead one."""
    system = stubborn("snapshot", "exits").start()
    kept = system.keep()
    with pytest.raises(ImplementationFailure, match="died"):
        system.do("toss", {"way": "heads"})
    with pytest.raises(ImplementationFailure, match="ended before"):
        system.observe()
    system.back(kept)
    assert system.observe()["coin"] == "unseen"


@pytest.mark.parametrize("can", CAPABILITIES)
def test_what_is_kept_outlives_what_is_done_later(can: str):
    """Later steps, refusals and changes of the environment's memory are undone, and the memory is a copy."""
    system = stubborn(can).start()
    system.memory = {"seen": []}
    system.do("sleep")
    system.memory["seen"].append(1)
    kept = system.keep()
    system.do("sleep")
    system.memory["seen"].append(2)
    for _ in range(2):
        system.back(kept)
        assert (system.observe()["days"], system.memory) == (1, {"seen": [1]})
        system.memory["seen"].append(3)
    system.end()


def control(mistake: BadFile | BadStart, **members: Any) -> str:
    cls: Any = type(stubborn("snapshot", **members))
    cls.controls = (mistake,)
    suite = build_suite(PROGRAM, "classes")
    tried = try_control(cls, Trial(0, PROGRAM, lambda: suite))
    assert not (tried.divergence and tried.outdated)
    return tried.divergence or tried.outdated


def test_controls_are_planted_in_copies_and_at_the_start():
    """In a file, whatever its language, with arguments, and in the environment; the file itself stays."""
    text = (HERE / "stubborn.py").read_text(encoding="utf-8")
    poor = 'bank["balance"][args["a"]] -= 1'
    assert control(BadFile("rich", "stubborn.py", poor, "pass", "small")).startswith("state, step 1")
    assert control(BadStart("dies", "small", ("exits",)), command=(sys.executable, "stubborn.py", "snapshot"))
    assert control(BadStart("same", "small", (), {"NO": "1"})) == ""
    assert (HERE / "stubborn.py").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("file", "was", "now", "message"), [
    ("stubborn.py", "no such text", "", "occurs 0 times in stubborn.py"),
    ("bank.py", "days", "", "which is not a file of `implementation`"),
    ("stubborn.py", "def main(", "def main((", "does not start"),
])  # fmt: skip
def test_a_control_that_does_not_fit_is_outdated(file: str, was: str, now: str, message: str):
    """It must not become a control that plants nothing, or one that only shows that a program is missing."""
    assert message in control(BadFile("old", file, was, now, "small"))


def test_a_build_that_fails_is_an_error_with_its_last_words():
    """And one that cannot be run, and one that does not end."""
    fails = (sys.executable, "-c", "raise SystemExit('no compiler here')")
    for build, message in ((fails, "no compiler here"), (("no-such-cc",), "install no-such-cc")):
        with pytest.raises(BindingError, match=message):
            stubborn("", build=build).start()
    endless = (sys.executable, "-c", "import time; time.sleep(3600)")
    with pytest.raises(BindingError, match=r"no end after 0.1 s"):
        stubborn("", build=endless, build_timeout_s=0.1).start()


def test_a_built_program_lies_in_a_private_folder_that_is_removed():
    """`{build}` is the folder, in both commands."""
    copy = (
        sys.executable,
        "-c",
        "import shutil, sys; shutil.copy('stubborn.py', sys.argv[1])",
        "{build}/made.py",
    )
    binding = stubborn("", build=copy, command=(sys.executable, "{build}/made.py", "snapshot"))
    folder = Path(binding.start().terms.launch.command[1]).parents[1]
    assert (folder / "build" / "made.py").exists()
    assert run_product(Replayer(binding)).divergence is None
    del binding
    assert not folder.exists()


def test_a_fork_has_a_process_of_its_own():
    """Suites run in forks; they must not write to one pipe."""
    binding = stubborn("snapshot")
    suite = build_suite(PROGRAM, "classes")
    binding.start()
    found = run_suite(Replayer(binding), suite, workers=3)
    assert figures(found) == figures(run_suite(Replayer(binding), suite))


def is_running(pid: int) -> bool:
    """Whether a process is running and not only its entry is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


KILLED = """
import sys, time
sys.path[:0] = [{tests!r}]
from conform.test_adapter import stubborn
binding = stubborn("snapshot", "hangs")
system = binding.start()
system.observe()
print(system._live.link._process.pid, flush=True)
{rest}
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(("rest", "how"), [
    ("system.do('toss', {'way': 'heads'})", signal.SIGKILL),
    ("system.do('toss', {'way': 'heads'})", signal.SIGINT), ("", None),
])  # fmt: skip
def test_the_process_is_killed_with_the_checker(rest: str, how: signal.Signals | None, tmp_path: Path):
    """However the checker ends: by SIGKILL, by Ctrl-C, or normally."""
    script = KILLED.format(tests=str(HERE.parent), rest=rest)
    mark = tmp_path / "hangs"
    checker = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "STUBBORN_MARK": str(mark)},
    )  # fmt: skip
    assert checker.stdout is not None
    pid = int(checker.stdout.readline())
    if how is not None:
        assert is_running(pid)
        while not mark.exists():
            time.sleep(0.05)
        checker.send_signal(how)
    checker.wait(HANG_S)
    checker.stdout.close()
    deadline = time.monotonic() + HANG_S
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def test_grandchildren_are_killed_with_the_process():
    """The whole process group is killed."""
    script = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, 'stubborn.py', 'snapshot']))"
    binding = stubborn("", command=(sys.executable, "-c", script))
    system = binding.start()
    system.observe()
    assert system._live is not None
    group = system._live.link._process.pid
    system._live.link.end()
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process of the group is left")


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_line_is_an_answer_or_breaks_the_protocol(line: bytes):
    """Any bytes are one of the two."""
    with pytest.raises(BrokenProtocol):
        answer_of(line, 5, WireRequest("do", "x"))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one)))
def test_any_value_goes_through_the_pipe(value: Any):
    """A snapshot is any JSON value."""
    system = stubborn_once()
    system.back(replace(system.keep(), snapshot=({**NEW, "extra": value},)))
    assert system.keep().snapshot == ({**NEW, "extra": value},)


NEW = {"balance": {"a1": 2, "a2": 2}, "coin": "unseen", "days": 0, "nights": 0}
_KEPT: list[ProcessBinding] = []


def stubborn_once() -> RemoteSystem:
    if not _KEPT:
        _KEPT.append(stubborn("snapshot"))
        _KEPT[0].start()
    system = _KEPT[0]._remote
    assert system is not None
    return system
