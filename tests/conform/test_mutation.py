"""Mutants are applied as written, run alone, and reported correctly; one that does not fit is refused."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from types import ModuleType

import msgspec
import pytest
from bank import SPEC, BankBinding
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from till_folder import TILL, build, mutate

from laws.sources import ROOT
from seeded import few_of
from specchk.conform.contract.binding import At
from specchk.conform.mutation import harness
from specchk.conform.mutation.members import Bench, Kill, members_of
from specchk.conform.mutation.mutants import Mutant, MutantError, chosen, diff, load
from specchk.conform.mutation.operators import argued, generated, sampled
from specchk.conform.mutation.outcomes import MutantOutcome
from specchk.conform.mutation.patches import Patch, StalePatch, forget, install, patched, run_file
from specchk.conform.mutation.reach import reaches, recording, touched
from specchk.conform.mutation.scores import REQUIRED, Requirement, Score, headline
from specchk.conform.work.forks import run_all
from specchk.lang.frontend import check

MUTANTS = ROOT / "conformance" / "mutants"
TARGETS = [
    "replog.core.log.epochs",
    "replog.core.broker.isr",
    "replog.core.broker.leader",
    "replog.core.log.logview",
]


def test_a_text_that_is_not_there_exactly_once_is_refused():
    """A mutant cannot become outdated: neither a missing text nor an ambiguous one is patched."""
    for old in ("z", "a"):
        with pytest.raises(StalePatch, match="is found"):
            patched("a = a\n", [Patch("m", old, "b")])
    with pytest.raises(StalePatch, match="no longer"):
        patched("a = a\n", [Patch("m", "b", "c", at=0)])


@given(parts=st.lists(st.sampled_from("abc"), min_size=1, max_size=6), data=st.data())
def test_patches_with_places_do_not_disturb_each_other(parts, data):
    """Each place gets its own text, whatever the lengths of the others."""
    news = data.draw(st.lists(st.sampled_from(["", "x", "xyz"]), min_size=len(parts), max_size=len(parts)))
    patches = [Patch("m", old, new, at) for at, (old, new) in enumerate(zip(parts, news, strict=True))]
    assert patched("".join(parts), patches) == "".join(news)
    sent = msgspec.json.encode(patches)
    assert msgspec.json.decode(sent, type=tuple[Patch, ...]) == tuple(patches)


@pytest.fixture
def till(tmp_path, monkeypatch):
    """A package `till` with one module, importable."""
    (tmp_path / "till").mkdir()
    (tmp_path / "till" / "__init__.py").write_text("")
    (tmp_path / "till" / "drawer.py").write_text(
        "def most():\n    return 4\n\n\ndef least():\n    return 0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget(["till"])


def test_a_patch_is_in_force_from_the_import_on_and_leaves_the_file_alone(till):
    """The module is compiled from the patched text; without the patch it is unchanged."""
    from till import drawer

    assert drawer.most() == 4
    forget(["till"])
    patcher = install([Patch("till.drawer", "return 4", "return 3")])
    from till import drawer as wrong

    assert (wrong.most(), patcher.used) == (3, {"till.drawer"})
    sys.meta_path.remove(patcher)
    forget(["till"])
    from till import drawer as again

    assert again.most() == 4
    assert "return 4" in (till / "till" / "drawer.py").read_text()


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    """As its own error, and not as that of an import."""
    with pytest.raises(FileNotFoundError):
        run_file(tmp_path / "gone.py", ModuleType("gone"))


def test_only_lines_that_are_run_are_recorded(till):
    """The functions that were called, not the module's own lines; a patch elsewhere is not reached."""
    from till.drawer import most

    with recording(["till"]) as tracer:
        most()
    assert tracer.lines() == {"till.drawer": {1, 2}}
    assert reaches(tracer.lines(), touched([Patch("till.drawer", "return 4", "pass")]))
    assert not reaches(tracer.lines(), touched([Patch("till.drawer", "return 0", "pass")]))
    assert touched([Patch("till.drawer", "def most", "def moist")]) is None


def test_lines_that_threads_run_are_recorded(till):
    """Those of `threading`, and so those of its pools; no tracer is left behind."""
    from till.drawer import least, most

    with recording(["till"]) as tracer:
        one = Thread(target=most)
        one.start()
        one.join()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(least).result()
    assert tracer.lines() == {"till.drawer": {1, 2, 5, 6}}
    assert (sys.gettrace(), threading.gettrace()) == (None, None)


def test_of_a_forked_process_every_line_may_have_run(till):
    """Its parent does not know which lines it ran."""
    from till.drawer import most

    with recording(["till"]) as tracer:
        (ended,) = run_all([lambda say: say(most())], 1)
    assert ended.said == [4]
    assert tracer.lines() == {"till": set(), "till.drawer": {2, 6}}


@pytest.mark.parametrize(
    "how", ["stopped after 9 s", "lost: exit code 3", "the self-check ended with 1: Traceback"]
)
def test_a_mutant_whose_process_did_not_end_well_is_not_killed(how):
    """It is undecided, and there is no score, unless enough tests had already failed."""
    mutant = Mutant("m", "none", "A flaw.", ())
    one = MutantOutcome(mutant, (Kill("tests", "a", "fails", 0.1),), ("tests",), 1, how, 0.2)
    two = replace(one, kills=(*one.kills, Kill("tests", "b", "fails", 0.2)))
    assert [one.verdict(), replace(one, kills=()).verdict(), two.verdict()] == [
        "unfinished", "unfinished", "killed",
    ]  # fmt: skip
    score = Score("curated", REQUIRED["curated"], (one,), None, 0.2)
    assert score.shortfall == f"1 not decided: m ({how})"
    assert score.killed == 0
    assert not score.is_late


def test_what_was_stopped_is_no_verdict_and_hides_none():
    """A campaign that may still reach its mark is inconclusive; one that cannot is below it."""
    late = MutantOutcome(
        Mutant("l", "none", "A flaw.", ()), (), (), 0, "stopped after 9 s", 9.0, is_late=True
    )
    survivor = MutantOutcome(Mutant("s", "none", "A flaw.", ()), (), (), 1, "done", 0.1)
    for wanted, code in (
        (REQUIRED["curated"], "below the mark: 0 of 2 killed"),
        (Requirement(0.5, 1), "inconclusive: 1 not"),
    ):
        score = Score("curated", wanted, (late, survivor), None, 0.2)
        assert headline(score).startswith(code)
        assert score.is_late == code.startswith("inconclusive")


def test_every_curated_mutant_fits_the_source_and_compiles(monkeypatch):
    """At least 50; each has a flaw, a story and a change, and is Python."""
    every = load(MUTANTS)
    assert len([one for one in every if not one.equivalent]) >= 50
    others = [one for folder in sorted((ROOT / "conformance").glob("*/mutants")) for one in load(folder)]
    assert others
    # First: another test may have loaded another folder's `binding.py`, which leaves the folder on the path.
    monkeypatch.syspath_prepend(str(ROOT / "conformance"))
    for one in (*every, *others, *load(MUTANTS / "harness")):
        assert diff(one).count("\n") > 3, one.id


LISTS = {
    "flaws": 80,
    "flaws/second": 50,
    "flaws/third": 48,
    "flaws/fourth": 40,
    "flaws/fifth": 42,
    "refactorings": 10,
}


@pytest.mark.parametrize("folder", LISTS)
def test_every_change_of_the_lists_fits_the_source_and_compiles(folder):
    """Flaws and refactorings are updated with their lines of replog: else the next campaign lacks them."""
    every = load(ROOT / "bench" / "gate" / folder)
    assert len(every) >= LISTS[folder]
    for one in every:
        assert diff(one).count("\n") > 3, one.id


def test_no_control_names_a_function_that_a_refactoring_renames():
    """A control whose function is missing is reported, and must be updated with it: not a false alarm."""
    patches = [patch for one in load(ROOT / "bench" / "gate" / "refactorings") for patch in one.patches]
    renamed = {name for patch in patches for name in re.findall(r"^ *def (\w+)", patch.old, re.MULTILINE)
               if not re.search(rf"\bdef {name}\b", patch.new)}  # fmt: skip
    assert {"stamp", "take_reply"} <= renamed
    bindings = "".join(path.read_text() for path in (ROOT / "conformance").rglob("*.py"))
    assert [name for name in sorted(renamed) if re.search(rf"\.{name}\b", bindings)] == []


@pytest.mark.system
def test_a_harness_mutant_is_installed_before_what_it_changes_is_loaded():
    """The process of a self-check finds `patches`, and has none of the patched modules yet."""
    every = [patch for one in load(MUTANTS / "harness") for patch in one.patches]
    command = [sys.executable, "-c", harness._START, msgspec.json.encode(every), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[mutant]]\nid = "a"\nflaw = "b"\nstory = "c"\nmodule = "m"\nold = "x"', "lacks `new`"),
        ('[[mutant]]\nid = "a"\nmodule = "m"\nold = "x"\nnew = "y"', "needs an id, a flaw and a story"),
        ('[[mutant]]\nid = "a"\nwhy = "?"\nmodule = "m"\nold = "x"\nnew = "y"', "has the unknown key `why`"),
        ("[[mutant]\n", "Expected"),
    ],
)
def test_a_file_that_says_too_little_or_too_much_is_refused(tmp_path, text, words):
    """With the file, the mutant and the error."""
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(MutantError, match=words):
        load(tmp_path)


def test_an_unknown_id_is_refused():
    """A misspelled mutant is not silently left out."""
    with pytest.raises(MutantError, match="there is no mutant nobody"):
        chosen(load(MUTANTS), ["nobody"])


@pytest.mark.parametrize("module", few_of(TARGETS))
def test_every_generated_mutant_is_another_program(module):
    """Each id occurs once, each text is a program whose syntax tree differs from all others."""
    source = (ROOT / "impl" / Path(*module.split("."))).with_suffix(".py").read_text()
    every = generated(module)
    assert len({one.id for one in every}) == len(every) > 50
    original = ast.dump(ast.parse(source))
    for one in every:
        assert ast.dump(ast.parse(patched(source, one.patches))) != original, one.id


def test_a_sample_is_decided_by_its_seed_alone():
    """The same seed, the same sample; a smaller one is part of it."""
    every = generated(TARGETS[0])
    assert sampled(every, 20, 1) == sampled(every, 20, 1) != sampled(every, 20, 2)
    assert set(sampled(every, 7, 1)) <= set(sampled(every, 20, 1))


@pytest.mark.system
def test_generated_mutants_of_replog_are_listed_and_their_arguments_fit():
    """In its own process, in which `members.py` needs the binding's neighbours; each argument fits."""
    name = "replog.core.broker.purgatory:complete_fetches:drop:0"
    code, text = mutate(str(ROOT / "conformance" / "binding.py"), "--generated", "--show", name)
    assert (code, text.splitlines()[0]) == (0, f"{name} (drop)"), text
    assert "equivalent: Where nobody waits" in text


def test_an_argument_for_another_code_is_refused(tmp_path):
    """An argument is valid for the text for which it was written."""
    every = generated(TARGETS[0])
    path = tmp_path / "generated.toml"
    path.write_text(f'[[equivalent]]\nid = "{every[0].id}"\nwas = "nothing"\nreason = "r"\n')
    with pytest.raises(MutantError, match="not `nothing`"):
        argued(every, path)
    was = " ".join(every[0].patches[0].old.split())
    path.write_text(f"[[equivalent]]\nid = '{every[0].id}'\nwas = '''{was}'''\nreason = 'r'\n")
    assert [one.equivalent for one in argued(every, path)][:2] == ["r", ""]


MEMBERS = """
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import SuiteMember
from specchk.conform.replay.suites import SuiteWalks
WALKS = SuiteMember("walks small", At(suite="walks"), walks=SuiteWalks(0, 15, 20))
MEMBERS = (WALKS, SuiteMember("product small", At(suite="product")))
"""
CASES = {
    "lends": ('if self.balance[source] == 0:', "if False:", "killed", ""),
    "sleepless": ("self.days += 1", "self.days += 0", "killed", ""),
    "loops": ("self.coin = way", "\n        while True: pass", "endless", ""),
    "no-note": ('self.note = "slept"', "pass", "survived", ""),
    "argued": ('self.note = "slept"', "self.note = 1", "equivalent", "nobody reads notes"),
    "wrongly-argued": ("self.balance[target] += 1", "pass", "wrongly", "money is nothing"),
    "never": ("return 1", "return 2", "survived", ""),
    "unloadable": ("class Till:", "class Bill:", "killed", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """A binding of the toy bank, its implementation in a package, and mutants of every fate."""
    tables = []
    for name, (old, new, _, reason) in CASES.items():
        table = {
            "id": name,
            "flaw": "none",
            "story": "A story.",
            "module": "till.drawer",
            "old": old,
            "new": new,
        }
        table |= {"equivalent": reason} if reason else {}
        tables.append(
            "[[mutant]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        )
    return build(tmp_path_factory.mktemp("toy"), MEMBERS, "\n".join(tables))


@pytest.fixture(scope="module")
def told(toy) -> dict[str, object]:
    """The whole campaign on the toy."""
    code, text = mutate(str(toy / "till_binding.py"), "--json", "--no-cache")
    assert code == 14, text
    found: dict[str, object] = json.loads(text)
    return found


@pytest.mark.system
@pytest.mark.parametrize("name", CASES)
def test_each_mutant_is_called_what_it_is(told, name):
    """Killed, endless, survived, equivalent by argument, or wrongly argued."""
    (found,) = [one for one in told["mutants"] if one["id"] == name]
    assert found["verdict"] == CASES[name][2]
    assert found["verdict"] != "killed" or len(found["kills"]) >= 2


@pytest.mark.system
def test_a_mutant_that_no_member_runs_is_not_asked_for(told):
    """Code that is never run cannot make a difference, so no time is spent on it."""
    asked = {one["id"]: one["asked"] for one in told["mutants"]}
    assert asked["never"] == []
    assert asked["no-note"] == ["walks small", "product small"]


@pytest.mark.system
def test_the_score_says_what_is_wrong(told):
    """A wrong argument is worse than a survivor."""
    assert told["shortfall"] == "1 killed although argued to be equivalent"
    assert told["control_tests"] > 0


@pytest.mark.system
def test_one_mutant_is_run_shown_and_kept(toy, monkeypatch, tmp_path):
    """`--only` and `--show`; the second run is the first one's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = str(toy / "till_binding.py")
    assert mutate(path, "--show", "lends")[1].startswith("lends (none)\n  A story.\n\n--- till.drawer")
    first = mutate(path, "--only", "lends")
    again = mutate(path, "--only", "lends")
    assert (first[0], again[0]) == (0, 0)
    assert first[1].startswith("curated mutants: 1 of 1 killed")
    assert "kept  walks small seed" in again[1]
    assert mutate(path, "--only", "nobody") == (30, "error: there is no mutant nobody\n")


@pytest.mark.system
def test_an_implementation_that_fails_as_it_is_has_no_score(toy, tmp_path, monkeypatch):
    """The control of a campaign: without any mutant all tests pass, or no result is valid."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    broken = tmp_path / "broken"
    subprocess.run(["cp", "-r", str(toy), str(broken)], check=True)
    (broken / "till" / "drawer.py").write_text(TILL.replace("self.days += 1", "self.days += 2"))
    code, text = mutate(str(broken / "till_binding.py"), "--only", "lends")
    assert code == 14
    assert text.startswith("below the mark: the unchanged implementation fails walks small seed 0")


def test_members_without_a_list_have_different_names(tmp_path):
    """A gate that already walks over the binding's model gets no second member of that name."""

    class Walking(BankBinding):
        model, gate = "small", (At(), At(suite="walks"))

    class Bound(Bench):
        def binding(self, file=None):
            return Walking

    bench = Bound(tmp_path, "", tmp_path, check("bank.spec", SPEC))
    assert [one.name for one in members_of(tmp_path, bench)] == ["classes small", "walks small"]
