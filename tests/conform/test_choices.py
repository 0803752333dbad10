"""The choices that an implementation never makes are established by its whole product, and are verified."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from stairs import SPEC, EitherWay, StairsBinding

from binding import ReplogBinding
from laws.sources import ROOT
from specchk.cli.commands.conform import command
from specchk.conform.contract.binding import Answer, At, action
from specchk.conform.gate.choices import listed_of, of_model
from specchk.conform.gate.chosen import NotExplored, explored
from specchk.conform.gate.lock import of_spec
from specchk.conform.gate.tiers import Part, SuiteBudget, parts_of, run_part, run_parts
from specchk.conform.replay.suites import Coverage, SuiteResult
from specchk.conform.work.lock_file import NAME, BadLock, Choices, ChosenPath, Listed, LockFile, read, write
from specchk.lang.frontend import check

CHECKED = check("stairs.spec", SPEC)
FINGERPRINT = of_spec(CHECKED)[0]
ABOUT = Choices(FINGERPRINT, "impl1", {})


def parts(cls=StairsBinding, choices: Choices | None = None) -> list[Part]:
    return parts_of(cls, CHECKED, cls.gate, choices)


def run(cls=StairsBinding, choices: Choices | None = None) -> list[SuiteResult]:
    results = run_parts(parts(cls, choices), SuiteBudget(sequences=0), 1)
    assert all(result.divergence is None and not result.vacuous for result in results)
    return results


def covered(cls=StairsBinding, choices: Choices | None = None) -> Coverage:
    found = run(cls, choices)[0].coverage
    assert found is not None
    return found


@pytest.fixture(scope="module")
def choices() -> Choices:
    return explored(parts(), run(), SuiteBudget(sequences=0), ABOUT)


def test_a_class_that_no_step_has_is_never_taken(choices):
    """The jump to 2 is the only one of the spec's classes that this implementation lacks."""
    (said,) = choices.suites["small"].never.values()
    assert said.startswith("jump")
    listed = choices.suites["small"]
    assert (listed.states, listed.steps) == (7, 6)  # 0 to 4, and done in 3 and 4; the spec has 7 and 7
    assert set(choices.suites) == {"small", "high"}


def test_a_class_that_is_taken_elsewhere_gets_a_way(choices):
    """Cases alone do not reach the end, since the nearest path is through 2; with the listed ways they do."""
    assert "rest" in {one.action for one in covered().missed}
    found = covered(choices=choices)
    assert (found.missed, found.wrong, len(found.never)) == ((), (), 1)
    assert len(found.covered) == found.reachable == len(found.classes) - 1
    assert str(found).endswith("classes (1 more are allowed but never taken), classes alone")


def test_one_who_chooses_everything_has_no_list():
    """Nothing is missed, so nothing is explored."""
    assert explored(parts(EitherWay), run(EitherWay), SuiteBudget(sequences=0), ABOUT).suites == {}


def test_a_class_that_is_taken_after_all_is_told(choices):
    """A list that another implementation refutes is wrong in these classes, and they do not count."""
    found = covered(EitherWay, choices)
    assert [one.action for one in found.wrong] == ["jump"]
    assert (found.never, found.missed) == ((), ())


def test_a_list_of_another_spec_or_model_does_not_count(choices):
    """By the spec's fingerprint, the model's constants, and the suite's name."""
    program = parts()[0].instance.program
    assert listed_of(choices, FINGERPRINT, "small", program) is not None
    assert listed_of(choices, "another", "small", program) is None
    assert listed_of(choices, FINGERPRINT, "small", parts()[1].instance.program) is None
    assert listed_of(choices, FINGERPRINT, "other", program) is None
    other = covered(choices=replace(choices, spec="another"))
    assert (other.never, other.missed) == ((), covered().missed)


def test_reasons_are_kept(choices):
    """A reason written by a person is kept when the rest is explored again."""
    suites = {"small": replace(choices.suites["small"], reason="one step at a time")}
    again = explored(parts(), run(), SuiteBudget(sequences=0), replace(ABOUT, suites=suites))
    assert again.suites == {**choices.suites, **suites}


def test_a_product_that_was_cut_says_nothing():
    """Beyond the limit there may be a step of the class."""
    with pytest.raises(NotExplored, match="more than 2 states"):
        explored(parts(), run(), SuiteBudget(2), ABOUT)


def test_a_product_that_diverges_says_nothing():
    """The cases need not have seen it."""

    class TooHigh(StairsBinding):
        @action("climb")
        def climb(self, stairs: dict[str, int]) -> Answer:
            return self._go(stairs, 0 < stairs["n"] <= 9, 9 if stairs["n"] == 3 else stairs["n"] + 1)

    with pytest.raises(NotExplored, match="diverges"):
        explored(parts(TooHigh), run(), SuiteBudget(sequences=0), ABOUT)


def test_a_way_that_is_no_path_is_refused(choices):
    """A manually edited file is not trusted."""
    for steps in ((("fly", 0),), (("rest", 0),), (("jump", 7),)):
        small = replace(choices.suites["small"], ways=(ChosenPath(0, steps),))
        with pytest.raises(BadLock, match="not a path"):
            covered(choices=replace(choices, suites={"small": small}))


names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=9)
steps = st.tuples(names, names, st.integers(0, 3)) | st.tuples(names, st.integers(0, 3))
ways = st.builds(ChosenPath, st.integers(0, 2), st.lists(steps, max_size=2).map(tuple))
lists = st.builds(
    Listed, names, st.integers(0, 9), st.integers(0, 9), names, st.dictionaries(names, names, max_size=2),
    st.lists(ways, max_size=2).map(tuple),
)  # fmt: skip


@given(found=st.builds(Choices, names, names, st.dictionaries(names, lists, max_size=2)))
def test_choices_are_read_as_they_were_written(tmp_path_factory, found):
    """`read` is the inverse of `write`."""
    path = tmp_path_factory.mktemp("choices") / NAME
    write(path, LockFile(choices=found))
    assert read(path) == LockFile(choices=found)


def test_a_model_is_known_by_what_it_sets():
    """Two models of one spec have two names."""
    assert len({of_model(part.instance.program) for part in parts()}) == 2


class Gate:
    """The gate of a binding in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "stairs.spec").write_text(SPEC, encoding="utf-8")
        self.bind("StairsBinding")

    def bind(self, base: str) -> None:
        text = f"from stairs import {base}\n\n\nclass Bound({base}):\n    pass\n"
        (self.folder / "binding.py").write_text(text, encoding="utf-8")

    def conform(self, *options: str) -> tuple[int, str]:
        """The exit code, and the output."""
        kept = list(sys.path)
        try:
            with contextlib.chdir(self.folder):
                done = CliRunner().invoke(command, ["binding.py", *options])
        finally:
            sys.path[:] = kept
        return done.exit_code, done.output


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def test_a_gate_counts_what_was_explored(gate: Gate):
    """Before: classes are missing. After: all possible ones are taken, and the others are listed."""
    assert gate.conform("--json")[0] == 0
    assert "not taken, since" in gate.conform("--model", "small")[1]
    code, text = gate.conform("--update-choices", "--junit", "a.xml", "--html", "a.html")
    assert code == 0
    assert "choices: specchk.lock written; 2 allowed classes are never taken" in text
    assert re.search(r"small, classes, .* (\d+) of \1 classes \(1 more are allowed but never taken\)", text)
    (suite, _) = ElementTree.parse(gate.folder / "a.xml").getroot().findall("testsuite")[:2]
    found = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert found["classes_never"] == "1"
    page = (gate.folder / "a.html").read_text(encoding="utf-8")
    assert page.count('<span class="never-taken"') == 2 + 1  # one in the legend
    assert "<h2>Choices</h2>" in page
    told = json.loads(gate.conform("--json")[1])
    assert (told["choices"]["never"], told["choices"]["of_this_implementation"]) == (2, True)
    for one in told["suites"]:
        (never,) = one["coverage"]["classes_never"]
        assert never["class"].startswith("jump")
        assert one["coverage"]["classes_missed"] == []
    assert "1 more classes" in gate.conform("--model", "small")[1]


def test_a_gate_that_takes_what_it_never_takes_ends_with_14(gate: Gate):
    """The list contradicts this implementation: the list is wrong, and coverage is below the lock, too."""
    gate.conform("--update-choices")
    gate.bind("EitherWay")
    code, text = gate.conform()
    assert code == 14
    assert text.startswith("wrong: 2 classes that specchk.lock lists as never taken were taken")
    assert "small: WRONG: listed as never taken, but taken" in text
    assert "explored with another implementation" in text
    assert [one["label"] for one in json.loads(gate.conform("--json")[1])["choices"]["wrong"]] == [
        "small",
        "high",
    ]
    assert gate.conform("--update-choices")[0] == 0
    assert gate.conform()[0] == 0


def test_a_gate_does_not_count_what_is_stale(gate: Gate):
    """After a change of the spec, or of a model, classes are missing again until they are explored again."""
    gate.conform("--update-choices")
    spec = gate.folder / "stairs.spec"
    spec.write_text(SPEC.replace("Top = 5", "Top = 6"), encoding="utf-8")
    told = json.loads(gate.conform("--json")[1])
    assert (told["choices"]["stale"], told["choices"]["never"]) == (["high"], 1)
    assert "high: STALE" in gate.conform()[1]
    spec.write_text(SPEC.replace("and not done", "and done == false"), encoding="utf-8")
    told = json.loads(gate.conform("--json")[1])
    assert (told["choices"]["of_this_spec"], told["choices"]["never"]) == (False, 0)
    assert all(one["coverage"]["classes_missed"] for one in told["suites"])
    assert "belong to another spec and are ignored" in gate.conform()[1]


def test_a_spoilt_list_is_an_error(gate: Gate):
    """It is not treated as missing."""
    gate.conform("--update-choices")
    path = gate.folder / NAME
    for was, now in (("states = ", "states = 1"), ("\n[", "\n[["), ("seal", "deal")):
        whole = path.read_text(encoding="utf-8")
        path.write_text(whole.replace(was, now, 1), encoding="utf-8")
        code, text = gate.conform()
        assert code != 0
        assert NAME in text
        assert "delete it and write a new one" in text
        path.write_text(whole, encoding="utf-8")


def test_a_reason_is_told_once(gate: Gate):
    """For any number of suites with the same reason."""
    gate.conform("--update-choices")
    path = gate.folder / NAME
    path.write_text(path.read_text(encoding="utf-8").replace('reason = ""', 'reason = "one at a time"'))
    assert gate.conform()[1].count("  because one at a time\n") == 1


def test_a_divergence_is_the_last_that_is_told(gate: Gate):
    """Classes never taken are not relevant for a gate that failed."""
    gate.conform("--update-choices")
    text = "from stairs import StairsBinding\n\n\nclass Bound(StairsBinding):\n    to = 3\n"
    (gate.folder / "binding.py").write_text(text, encoding="utf-8")
    code, told = gate.conform()
    assert code == 13
    assert told.splitlines()[-1].startswith("!! n: the spec has")


@pytest.mark.slow
def test_the_list_of_replog_is_what_its_product_shows():
    """For the smallest of its models the file equals the exploration: states, steps, classes and paths."""
    checked = check(str(ROOT / "spec" / "replication.spec"))
    kept = read(ROOT / "conformance" / NAME).choices
    assert kept is not None
    at = At("two_brokers", {"MaxCrashes": "0", "acks": "one"})
    (part,) = parts_of(ReplogBinding, checked, [at])
    listed = listed_of(kept, of_spec(checked)[0], part.label, part.instance.program)
    assert listed is not None
    found = explored([part], [run_part(part, SuiteBudget())], SuiteBudget(), kept)
    assert found.suites == {part.label: listed}
    assert len(listed.never) > 0
    (way, *_) = listed.ways
    assert way.steps[-1].action == "apply_response"
