"""The affected part of a change is never less than the part that it can reach."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest
from two_phase_copy import Copy

from specchk import kept
from specchk.conform.gate.calls import ELSEWHERE, REST, CallTracer, texts
from specchk.conform.gate.lasting import Imported, imported
from specchk.conform.gate.since import CallMap, plan, unclear_files

CODE = """
import functools

LIMIT = 3

class Log:
    size: int = 0

    def write(self, entry):
        def inner():
            return entry
        return inner()

    def read(self, at=LIMIT):
        return at

@functools.lru_cache
def slow(x):
    return x
"""
NOW = texts({"log.py": CODE})
WRITE, READ = ("log.py", "Log.write"), ("log.py", "Log.read")
KNOWN = CallMap({"put": (WRITE,), "get": (READ, WRITE), REST: ()}, NOW)


def edited(was: str, now: str) -> dict[tuple[str, str], str]:
    assert CODE.count(was) == 1
    return texts({"log.py": CODE.replace(was, now)})


def test_a_change_of_a_function_concerns_the_actions_that_run_it():
    """A nested function belongs to the one around it."""
    assert plan(KNOWN, edited("return at", "return at + 1"), NOW).actions == {"get"}
    assert plan(KNOWN, edited("return entry", "return None"), NOW).actions == {"put", "get"}


def test_layout_and_comments_concern_nothing():
    """Syntax trees are compared."""
    then = edited("    def read(self, at=LIMIT):", "    # gets\n    def read( self,at = LIMIT ):")
    assert plan(KNOWN, then, NOW).actions == set()


@pytest.mark.parametrize(
    ("was", "now"),
    [("LIMIT = 3", "LIMIT = 4"), ("size: int = 0", "size: int = 1"), ("at=LIMIT", "at=2"),
     ("return x", "return -x"), ("import functools", "import functools, re"),
     ("@functools.lru_cache", "@functools.cache")],
)  # fmt: skip
def test_what_stands_outside_of_functions_concerns_everything(was: str, now: str):
    """Constants, fields, defaults, imports, decorators; and cached results without a call."""
    found = plan(KNOWN, edited(was, now), NOW)
    assert found.actions is None
    assert "outside functions changed in log.py" in found.reason


def test_what_is_not_known_concerns_everything():
    """No map; other files; code that no file of the binding has; a function run outside of actions."""
    other = texts({"log.py": CODE, "new.py": "x = 1"})
    started = CallMap({**KNOWN.calls, REST: (READ,)}, NOW)
    foreign = CallMap({**KNOWN.calls, "put": (("/elsewhere.py", "f"),)}, NOW)
    changed = edited("return at", "return at + 1")
    for known, then in (
        (None, NOW),
        (KNOWN, other),
        (CallMap(KNOWN.calls, other), NOW),
        (started, changed),
        (foreign, NOW),
    ):
        assert plan(known, then, NOW).actions is None


def test_what_no_case_ran_concerns_everything():
    """Such as a function that fills a table when its module is imported."""
    known = CallMap({"put": (WRITE,), REST: ()}, NOW)
    found = plan(known, edited("return at", "return at + 1"), NOW)
    assert found.actions is None
    assert found.reason == "no call of the changed functions was recorded: Log.read"


def test_a_map_of_other_texts_concerns_what_ran_them():
    """Since the calls were recorded `read` has changed: the calls of `get` are unknown now."""
    older = CallMap(KNOWN.calls, edited("return at", "return at + 1"))
    assert plan(older, NOW, NOW).actions == {"get"}


def test_files_of_which_it_is_not_clear_what_they_do(tmp_path: Path):
    """Specs and data may matter; documents, and Python files that are never imported, do not."""
    names = ("a.spec", "data.json", "README.md", "stray.py", "log.py")
    found = unclear_files([tmp_path / name for name in names], [tmp_path / "log.py"])
    assert [path.name for path in found] == ["a.spec", "data.json"]


TABLES = {
    "tables.py": """
import sys

def table():
    return later()

def later():
    return {n: n + 1 for n in range(9)}

class Registered:
    def __init_subclass__(cls):
        cls.names = names()

def names():
    return ["a"]

def unused():
    return 1

class Put(Registered):
    pass

NEXT = table()
""",
    "binding.py": """
import tables
from specchk.conform.contract import Accepted, Binding, action, project

class Tables(Binding):
    spec = "tables.spec"

    def start(self):
        return {"n": 0}

    @project
    def state(self, system):
        return system

    @action("put")
    def put(self, system):
        return Accepted()

    @action("get")
    def get(self, system):
        import lazy
        return Accepted()
""",
    "lazy.py": "def made():\n    return 1\nMADE = made()\n",
}


def test_what_an_import_calls_is_a_part_of_every_case(tmp_path: Path):
    """Also through another function or a class; a binding that cannot be imported again is not evaluated."""
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = {str(tmp_path / "tables.py"): "tables.py"}
    ran = imported(tmp_path / "binding.py", names).calls
    for function in ("table", "later", "names", "Registered.__init_subclass__"):
        assert ("tables.py", function) in ran
    assert ("tables.py", "unused") not in ran
    (tmp_path / "binding.py").write_text("import tables\n", encoding="utf-8")
    assert imported(tmp_path / "binding.py", names) == Imported(frozenset({ELSEWHERE}), {})


def test_what_an_import_in_an_action_calls_is_a_part_of_every_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It runs in the first action that needs it, and the others use its results."""
    (tmp_path / "lazy.py").write_text(TABLES["lazy.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    tracer = CallTracer(within="get")
    with tracer.running():
        importlib.import_module("lazy").made()
    sys.modules.pop("lazy")
    ran = tracer.functions({str(tmp_path / "lazy.py"): "lazy.py"})
    assert ("lazy.py", "made") in ran[REST] & ran["get"]


def test_values_that_cases_change_concern_everything():
    """A value created by one case is visible to another."""
    known = CallMap({**KNOWN.calls, REST: (("values that outlive cases", "TABLE of log.py"),)}, NOW)
    found = plan(known, edited("return entry", "return None"), NOW)
    assert found.actions is None
    assert found.reason == "cases change values that outlive them: TABLE of log.py"


def test_a_table_made_where_it_is_first_needed_concerns_everything(copy: Copy):
    """Only the first action calls the function that creates it."""
    copy.edit("two_phase.py", "\n\nclass Log:", "\nENDS = []\n\n\ndef ends():\n    if not ENDS:\n"
              "        ENDS.extend(both())\n    return ENDS\n\n\ndef both():\n"
              "    return [COMMITTED, ABORTED]\n\n\nclass Log:")  # fmt: skip
    copy.edit("two_phase.py", "target = COMMITTED if outcome == COMMIT else ABORTED",
              "target = ends()[0 if outcome == COMMIT else 1]")  # fmt: skip
    copy.git("commit", "-q", "-a", "-m", "a table")
    assert copy.conform("--since", "HEAD").code == 0
    done = copy.conform("--since", "HEAD")
    assert "affected: everything (cases change values that outlive them: ENDS of two_phase.py)" in done.text


def test_a_table_made_by_an_import_concerns_everything(copy: Copy):
    """`give_up` calls the function that made it, and `learn` reads what was made."""
    copy.edit("two_phase.py", "\n\nclass Log:", "\n\ndef both():\n    return [COMMITTED, ABORTED]\n\n\n"
              "ENDS = both()\n\n\nclass Log:")  # fmt: skip
    copy.edit("two_phase.py", "return self.state == WORKING and self._enter(ABORTED)",
              "return self.state == WORKING and self._enter(both()[1])")  # fmt: skip
    copy.edit("two_phase.py", "target = COMMITTED if outcome == COMMIT else ABORTED",
              "target = ENDS[0 if outcome == COMMIT else 1]")  # fmt: skip
    copy.git("commit", "-q", "-a", "-m", "a table")
    assert copy.conform("--since", "HEAD").code == 0
    copy.edit("two_phase.py", "return [COMMITTED, ABORTED]", "return list((COMMITTED, ABORTED))")
    done = copy.conform("--since", "HEAD")
    assert "affected: everything (a function that runs outside actions changed)" in done.text


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository whose first gate has recorded the calls of its actions, and the cache."""
    place = tmp_path_factory.mktemp("learned")
    (place / "now" / "gate").mkdir(parents=True)
    copy = Copy(place / "now" / "gate")
    copy.edit("binding.py", 'At("two"), At("three")', 'At("two"),')
    copy.git("init", "-q", ".")
    copy.git("add", ".")
    copy.git("commit", "-q", "-m", "first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "now" / "cache"))
        text = copy.conform("--since", "HEAD").text
    assert "affected: everything (the functions that each action calls" in text
    shutil.copytree(place / "now", place / "then")
    return place


@pytest.fixture
def copy(learned: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """A copy of that folder in the same place: kept files are named by its path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(learned / "now" / "cache"))
    shutil.rmtree(learned / "now")
    (learned / "now" / "gate").mkdir(parents=True)
    copy = Copy(learned / "now" / "gate")
    shutil.rmtree(learned / "now")
    shutil.copytree(learned / "then", learned / "now")
    return copy


def test_the_first_run_learns_and_the_next_leaves_out(copy: Copy):
    """Nothing changed: only controls are run; a harmless change of one method: the cases that call it."""
    done = copy.conform("--since", "HEAD", "--audit")
    assert done.code == 0
    assert "affected: no action" in done.text
    assert "none runs changed code, none diverges" in done.text
    copy.edit("two_phase.py", "if self.decision == UNDECIDED:", "if UNDECIDED == self.decision:")
    done = copy.conform("--since", "HEAD", "--audit")
    assert done.code == 0
    assert "affected: hear (changed: Coordinator.receive)" in done.text
    assert "none runs changed code, none diverges" in done.text


def test_a_bug_in_a_changed_function_is_found_by_its_cases(copy: Copy):
    """13, as in the whole gate."""
    copy.edit("two_phase.py", "self.state == WORKING and self._enter(ABORTED)", "self._enter(ABORTED)")
    done = copy.conform("--since", "HEAD")
    assert done.code == 13
    assert "affected: give_up (changed: Participant.give_up)" in done.text


def test_the_cases_that_ran_are_those_that_count(copy: Copy):
    """The first divergence ends a suite: omitted cases are neither counted nor passed."""
    copy.edit("two_phase.py", "self.state == WORKING and self._enter(ABORTED)", "self._enter(ABORTED)")
    done = copy.conform("--since", "HEAD", "--json", "--junit", "cases.xml")
    suite = ElementTree.parse(copy.folder / "cases.xml").getroot()[0]
    ran = int(suite.attrib["tests"]) - int(suite.attrib["skipped"])
    since = json.loads(done.text[: done.text.rindex("}") + 1])["since"]
    assert (since["cases"], since["of"]) == (ran, int(suite.attrib["tests"]))
    assert ran < since["of"]


def call(function):
    function()


def in_a_thread(function):
    thread = Thread(target=function)
    thread.start()
    thread.join()


def in_a_fork(function):
    if not (child := os.fork()):
        os._exit(function() or 0)
    os.waitpid(child, 0)


def by_a_program(function):
    subprocess.run([sys.executable, "-c", ""], check=True)


@pytest.mark.parametrize(("way", "actions"), [
    (call, {"put"}), (in_a_thread, {REST}), (in_a_fork, {REST}), (by_a_program, {REST}),
])  # fmt: skip
def test_what_runs_beside_an_action_may_be_of_any(way, actions):
    """A thread may do the work of an earlier action; code run by another process is not seen."""
    tracer = CallTracer(within="put")
    with tracer.running():
        way(lambda: None)
    noted = tracer.functions({__file__: "log.py"})
    mine = ("log.py", "test_what_runs_beside_an_action_may_be_of_any")
    assert {name for name, ran in noted.items() if mine in ran or ELSEWHERE in ran} == actions
    known = CallMap({name: tuple(ran) for name, ran in noted.items()}, NOW)
    assert (plan(known, NOW, NOW).actions is None) == (ELSEWHERE in noted.get(REST, ()))


def test_an_audit_finds_what_was_left_out_wrongly(copy: Copy):
    """A wrong map, as results from an earlier call's value, does not pass the audit."""
    calls = next((copy.folder.parent / "cache").rglob("calls/*.json"))
    known = kept.read(calls)
    assert known is not None
    wrong = json.loads(known)
    receive = ["two_phase.py", "Coordinator.receive"]
    wrong["calls"] = {
        action: [receive] if action == "give_up" else [one for one in ran if one != receive]
        for action, ran in wrong["calls"].items()
    }
    kept.write(calls, json.dumps(wrong).encode())
    copy.edit("two_phase.py", "if self.decision == UNDECIDED:", "if UNDECIDED == self.decision:")
    done = copy.conform("--since", "HEAD", "--audit")
    assert done.code == 21
    assert "runs Coordinator.receive of two_phase.py" in done.text


def test_an_unknown_revision_is_an_error(copy: Copy):
    """The command does not silently run nothing."""
    assert copy.conform("--since", "nowhere").code == 2
