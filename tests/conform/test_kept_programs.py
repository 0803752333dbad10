"""Kept programs: equal to new ones, each for one spec, model and override; never damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from specchk.compile import instantiate as instantiate_module
from specchk.compile.instantiate import Instance
from specchk.conform.work.programs import steps_instance, whole_instance
from specchk.ir.program import Program
from specchk.ir.walk import expressions
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper

ROOT = Path(__file__).resolve().parents[2]
PLACEMENT = check(str(ROOT / "spec" / "placement.spec"))
RECORDED = check(str(ROOT / "spec" / "recorded.spec"))  # extends another file


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the programs, not created yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specchk" / "programs"


def made_once(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs created from here on."""
    made: list[Program] = []
    original = instantiate_module._instance

    def noted(*args: object, **options: bool) -> Instance:
        instance = original(*args, **options)
        made.append(instance.program)
        return instance

    monkeypatch.setattr(instantiate_module, "_instance", noted)
    return made


def test_a_kept_program_is_the_made_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every span, the same steps, and expressions over its states."""
    made = made_once(monkeypatch)
    first, second = (steps_instance(RECORDED, "waiting_fetches", {"Broker": "2"}) for _ in range(2))
    assert made == [first.program]
    assert second.program is not first.program
    assert repr(second.program) == repr(first.program)
    spans = [[one.span for one in expressions(instance.program)] for instance in (first, second)]
    assert spans[0] == spans[1] != []
    (state,) = initial_states(first.program)
    assert Stepper(second.program).successors(state) == Stepper(first.program).successors(state) != []
    assert second.expression("leo(log[b1])") == first.expression("leo(log[b1])")
    assert second.lowering.named_types() == first.lowering.named_types()


def test_a_program_with_properties_is_kept_as_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite needs the constraints, and reads the properties; a recording needs neither."""
    made = made_once(monkeypatch)
    whole, steps, again = (
        make(PLACEMENT, None, {}) for make in (whole_instance, steps_instance, whole_instance)
    )
    assert made == [whole.program, steps.program]
    assert again.program is not whole.program
    assert repr(again.program) == repr(whole.program)
    assert again.model.properties == whole.model.properties != steps.model.properties
    assert whole.program.invariants
    assert not steps.program.invariants


def test_a_program_is_of_one_spec_model_and_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one, or another text of a base file, is another program."""
    made = made_once(monkeypatch)
    wanted = (
        (RECORDED, "waiting_fetches", {}),
        (RECORDED, "waiting_fetches", {"MaxOffset": "2"}),
        (RECORDED, "several_laggards", {}),
        (PLACEMENT, None, {}),
    )
    programs = [steps_instance(*one).program for one in (*wanted, *wanted)]
    assert len(made) == 4
    assert [repr(one) for one in programs[:4]] == [repr(one) for one in programs[4:]]
    assert len({repr(one) for one in programs}) == 4


def test_a_spec_that_was_copied_has_the_program_with_its_own_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an executor's copies, in a folder for each session, no program is computed again."""
    made = made_once(monkeypatch)
    first = steps_instance(RECORDED, "waiting_fetches", {})
    for file in (ROOT / "spec").glob("*.spec"):
        (tmp_path / file.name).write_text(file.read_text())
    copied = check(str(tmp_path / "recorded.spec"))
    second = steps_instance(copied, "waiting_fetches", {})
    assert made == [first.program]
    assert second.program == replace(first.program, path=str(tmp_path / "recorded.spec"))
    places = {one.span.source.path for one in expressions(second.program) if one.span is not None}
    assert places == {str(tmp_path / name) for name in ("recorded.spec", "replication.spec")}


def test_a_changed_file_that_is_extended_is_another_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts of all files determine it, not only that of the first."""
    made = made_once(monkeypatch)
    base, top = tmp_path / "base.spec", tmp_path / "top.spec"
    top.write_text("spec top\nextends base\nmodel m:\n    expect holds\n")
    for most in (1, 2):
        padding = "#" * 1024
        base.write_text(f"spec base\n# {padding}\nvar n : 0..{most} = 0\naction up():\n    n' = n + 1\n")
        program = steps_instance(check(str(top)), "m", {}).program
        assert str(most) in repr(program.variables[0].type)
    assert len(made) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_a_damaged_program_is_made_again(cache: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was not written completely is not read."""
    made = made_once(monkeypatch)
    first = steps_instance(PLACEMENT, None, {})
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    flipped = bytes([*whole[:-900], whole[-900] ^ 1, *whole[-899:]])
    file.write_bytes({"empty": b"", "cut": whole[:1000], "flipped": flipped}[damage])
    assert repr(steps_instance(PLACEMENT, None, {}).program) == repr(first.program)
    assert len(made) == 2


def test_a_short_spec_and_one_that_is_refused_leave_no_file(cache: Path) -> None:
    """The first is computed as fast as it is read; for the second each run reports the errors."""
    short = check("short.spec", "spec short\nvar n : 0..1 = 0\nmodel m:\n    expect holds\n")
    steps_instance(short, "m", {})
    for _ in range(2):
        with pytest.raises(SpecError):
            steps_instance(RECORDED, "waiting_fetches", {"MaxOffset": "no number"})
    assert not cache.exists()
