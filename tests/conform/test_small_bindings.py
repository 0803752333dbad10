"""replog's smaller bindings conform to their specs, and planted errors in them are detected.

Each binding is a gate of its own; `binding.py` has the protocol.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from laws.sources import ROOT
from replog.core.log import producer
from specchk.cli.commands.conform import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, Binding, BindingError
from specchk.conform.contract.known_bad import BadCode, planted
from specchk.conform.contract.load import load_binding
from specchk.conform.gate.lock import of_spec
from specchk.conform.work.lock_file import NAME, read
from specchk.lang.frontend import check

CONFORMANCE = ROOT / "conformance"
LARGE = (CONFORMANCE / "binding.py", CONFORMANCE / "past_rules.py")
FOLDERS = (
    "controller_log",
    "coordinator",
    "delivery",
    "fetcher",
    "groups",
    "isr_timing",
    "log_start",
    "membership",
    "metadata",
    "placement",
    "producer_state",
    "proposals",
    "quorum",
    "reassignment",
    "requests",
    "store",
)


def path_of(folder: str) -> Path:
    return CONFORMANCE / folder / "binding.py"


def bound(folder: str, model: str, bounds: dict[str, str] | None = None) -> Binding[Any]:
    program = instantiate(check(str(ROOT / "spec" / f"{folder}.spec")), model, bounds or {}).program
    return load_binding(path_of(folder))(program)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_the_store_conforms_on_other_paths_than_those_of_its_gate(number):
    """A product has one system for each state, and the contents of the disk depend also on the path to it.

    In the last suite the power fails inside of every call, also of starts and of cuts below the log start.
    """
    suites = load_binding(path_of("store")).exhaustive
    assert [at.suite for at in suites] == [*["classes"] * 4, "faults"]
    chosen = suites[number]
    bounds = [word for name, value in chosen.bounds.items() for word in ("--set", f"{name}={value}")]
    words = [str(path_of("store")), "--model", str(chosen.model), *bounds, "--suite", chosen.suite, "--json"]
    found = CliRunner().invoke(command, words)
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize("folder", ["isr_timing", "store"])
def test_replog_conforms_in_a_second(folder):
    """The smallest suites; all of each binding run in `make gate`."""
    found = CliRunner().invoke(command, [str(path_of(folder)), "--tier", "smoke", "--json"])
    assert found.exit_code == 0, found.output


@pytest.mark.parametrize(
    "path", [*map(path_of, FOLDERS), *LARGE], ids=lambda path: str(path.relative_to(CONFORMANCE))
)
def test_every_planted_error_fits_the_source(path):
    """A control without its text ends a gate with an error, and gates take minutes."""
    found = [one for one in load_binding(path).controls if isinstance(one, BadCode)]
    assert found
    for one in found:
        with planted(one):
            pass


def test_a_binding_imports_its_own_neighbours(monkeypatch):
    """Whatever was loaded before: each folder here has a `binding.py`, and past_rules.py imports its own."""
    monkeypatch.delitem(sys.modules, "binding", raising=False)
    load_binding(path_of("delivery"))
    assert load_binding(CONFORMANCE / "past_rules.py").__mro__[1].__name__ == "ReplogBinding"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_lock_has_every_suite_and_every_control(folder):
    """The gate of each binding runs in `make gate`, compared with this lock, and not here."""
    binding = load_binding(path_of(folder))
    lock = read(path_of(folder).with_name(NAME)).gate
    assert lock is not None
    assert len(lock.suites) == len(binding.gate)
    assert lock.controls == tuple(sorted(one.name for one in binding.controls))
    # Only the gate says so else, which is no test: every change of the tree's classes is another fingerprint.
    assert (lock.spec, lock.actions) == of_spec(check(path_of(folder).parent / binding.spec))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert folder in re.search(r"^SMALL +:= (.*)$", makefile, re.MULTILINE)[1].split()


def test_a_fetch_that_is_no_news_moves_no_high_watermark():
    """I4: the scenario `unmoved_fetch` on replog; the spec once moved HW here."""
    binding = bound("isr_timing", "one_batch_behind")
    pair = binding.start()
    steps = "tick produce one tick tick produce lost produce tick one"
    for step in steps.split():
        answer = getattr(binding, step)(pair) if hasattr(binding, step) else binding.fetch(pair, step)
        assert answer == Accepted()
    assert (pair.leader.state.log.leo, pair.leader.state.log.hw, pair.leading.isr) == (3, 2, (0,))


@pytest.mark.parametrize("wrong", [False, True])
def test_the_oldest_of_five_in_flight_is_recognised(wrong, monkeypatch):
    """KIP-98: the scenario `oldest_is_recognised` on replog; with a window of four it is out of order."""
    if wrong:
        monkeypatch.setattr(producer, "WINDOW", 4)
    binding = bound("delivery", "five_in_flight")
    parties = binding.start()
    steps = "send 0, handle, receive 0, send 1, send 2, send 3, send 4, send 5" + ", handle" * 5
    names = {"send": "send", "handle": "handle_request", "receive": "receive_answer", "lose": "lose_answer"}
    for step in f"{steps}, lose 1, retry 1, handle".split(", "):
        verb, *message = step.split()
        answer = getattr(binding, names.get(verb, verb))(parties, *map(int, message))
        assert answer == Accepted(), step
    assert binding.state(parties)["status"][1] == ("refused" if wrong else "appended")
    assert binding.state(parties)["log"] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("folder", "model", "change"),
    [("controller_log", "one_start", {"answered_when": "appended"}),
     ("reassignment", "removed_and_added", {"removal_bumps_epoch": "false"}),
     ("reassignment", "removed_and_added", {"first_partition": "false"}),
     ("log_start", "two_brokers", {"follower_adopts": "false"}),
     ("store", "all_calls", {"flaw": "kept_point"}),
     ("isr_timing", "today", {"rule": "caught_up"}), ("isr_timing", "today", {"expiration_period": "2"}),
     ("membership", "restarts", {"leaving_expire": "false"}),
     ("producer_state", "two_instances", {"begins_at_zero": "false"}),
     ("groups", "leads_again", {"own_log": "false"}),
     ("requests", "waiting", {"wakes_consumers": "false"}),
     ("fetcher", "two_leaders", {"own_fetcher": "false"}),
     ("metadata", "far_behind", {"requests_gaps": "false"}),
     ("proposals", "two_lives", {"newest_only": "false"}),
     ("quorum", "all_is_kept", {"role_is_stored": "true"}),
     ("coordinator", "offset_commits", {"fence_fetch": "false"}),
     ("delivery", "exactly_once", {"idempotent": "false"}), ("delivery", "exactly_once", {"inflight": "1"})],
)  # fmt: skip
def test_rules_that_replog_does_not_follow_here_are_refused(folder, model, change):
    """A binding that ran replog by its own rules would diverge, and the spec would not be at fault."""
    with pytest.raises(BindingError, match=next(iter(change))):
        bound(folder, model, change)
