"""A lock records the basis of a gate, and a gate below it is detected."""

from __future__ import annotations

from pathlib import Path

import pytest
from bank import SPEC
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from specchk.conform.gate.lock import lowered, of_spec, raised
from specchk.conform.work.lock_file import (
    BadLock,
    Choices,
    ConditionCounts,
    GateConditions,
    GateFigures,
    Kills,
    LockFile,
    Numbers,
    read,
    write,
)
from specchk.lang.frontend import check

NUMBERS = Numbers("classes", 100, 200, 30, 30, 40, 20)
LOCK = GateFigures(
    "BankBinding", "spec1", ("coin",), ("a wrong guard", "a wrong line"), "impl1", 3,
    {"toss": "a1", "sleep": "b1"}, {"small": NUMBERS, "big N=2": NUMBERS},
    {"bank.py": {"Bank.toss": "1a"}}, ("a flaw",), ConditionCounts(40, 2, 1),
    {"curated": Kills(50, 50, "n1")},
)  # fmt: skip
KEYS = tuple(name for name in Numbers.__struct_fields__ if name != "suite")
words = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=12)


def places(lock: GateFigures, found: GateFigures) -> list[str]:
    return [one.place for one in lowered(lock, found)]


def with_numbers(numbers: Numbers) -> GateFigures:
    return replace(LOCK, suites={**LOCK.suites, "small": numbers})


@given(names=st.lists(words, unique=True, max_size=4), count=st.integers(0, 10**6))
def test_a_lock_is_read_as_it_was_written(tmp_path_factory, names, count):
    """`read` is the inverse of `write`, for all names that models, variables and controls can have."""
    suites = {name: replace(NUMBERS, states=count) for name in names}
    lock = replace(LOCK, suites=suites, unobserved=tuple(names), controls=tuple(names))
    path = tmp_path_factory.mktemp("lock") / "specchk.lock"
    write(path, LockFile(lock))
    assert read(path) == LockFile(lock)


def test_the_same_run_writes_the_same_bytes(tmp_path: Path):
    """Whatever the order of suites and actions."""
    write(tmp_path / "one", LockFile(LOCK))
    other = replace(LOCK, suites=dict(reversed(LOCK.suites.items())), actions={"sleep": "b1", "toss": "a1"})
    write(tmp_path / "other", LockFile(other))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_the_same_gate_holds_its_lock():
    """Nothing is below the lock, nothing above it."""
    assert (lowered(LOCK, LOCK), raised(LOCK, LOCK)) == ((), ())


@pytest.mark.parametrize("key", KEYS)
def test_each_number_that_falls_is_told(key: str):
    """By the suite and the number, with both values; a number above its lock is not a failure."""
    fewer = with_numbers(replace(NUMBERS, **{key: getattr(NUMBERS, key) - 1}))
    (found,) = lowered(LOCK, fewer)
    assert (
        str(found)
        == f"small: {key}: the lock has {getattr(NUMBERS, key)}, this run {getattr(NUMBERS, key) - 1}"
    )
    assert lowered(fewer, LOCK) == ()
    assert [one.place for one in raised(fewer, LOCK)] == [f"small: {key}"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"suites": {"small": NUMBERS}}, 'suite "big N=2"'),
        ({"unobserved": ("coin", "days")}, "unobserved"),
        ({"controls": ("a wrong guard",)}, "controls"),
        ({"binding": "OtherBinding"}, "binding"),
        ({"spec": "spec2"}, "spec"),
        ({"judges": {"bank.py": {"Bank.toss": "1b"}}}, "the binding changed"),
        ({"judges": {}}, "the binding changed"),
        ({"mutants": {"curated": Kills(49, 50, "n1")}}, "mutants: curated"),
        ({"mutants": {"curated": Kills(50, 51, "n1")}}, "mutants: curated"),
        ({"conditions": ConditionCounts(40, 3, 1)}, "conditions"),
        ({"conditions": ConditionCounts(39, 2, 1)}, "conditions"),
        ({"conditions": ConditionCounts(40, 2, 2)}, "conditions"),
        ({"conditions": None}, "conditions"),
    ],
)
def test_a_gate_that_sees_less_is_told(change, place):
    """A suite, a control or a kill less, another unobserved variable, another spec."""
    assert places(LOCK, replace(LOCK, **change)) == [place]


def test_another_implementation_is_no_fault():
    """That is the gate's purpose."""
    assert places(LOCK, replace(LOCK, implementation="impl2", files=9)) == []


def test_mutants_that_were_not_run_are_no_fault():
    """The gate does not run them; it only checks given scores."""
    assert places(LOCK, replace(LOCK, mutants={})) == []


def test_what_is_no_lock_is_refused(tmp_path: Path):
    """Broken TOML, another version, missing parts, no text; a missing file has no section."""
    path = tmp_path / "specchk.lock"
    assert read(path) == LockFile()
    for text in (b"[[", b"version = 99", b"version = 4", b"version = 4\nseal = 3\n[gate]", b"\xff"):
        path.write_bytes(text)
        with pytest.raises(BadLock, match=r"specchk\.lock.*restore the reviewed file"):
            read(path)


def test_only_the_contents_are_sealed(tmp_path: Path):
    """A number, a name or a line that was changed is refused; comments, line ends and layout may be."""
    path = tmp_path / "specchk.lock"
    write(path, LockFile(LOCK))
    text = path.read_text(encoding="utf-8")
    for same in (text.replace("\n", "\r\n"), f"{text}# seen\n", text.replace(" = ", "=")):
        path.write_text(same, encoding="utf-8", newline="")
        assert read(path) == LockFile(LOCK)
    lines = text.splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if line.startswith("version"))
    for number, line in enumerate(lines[first:], first):
        if line.strip():
            path.write_text("".join(lines[:number] + lines[number + 1 :]), encoding="utf-8")
            with pytest.raises(BadLock):
                read(path)
    for was, now in (("covered = 30", "covered = 29"), ('"coin"', ""), ("killed = 50", "killed = 49")):
        assert was in text
        path.write_text(text.replace(was, now, 1), encoding="utf-8")
        with pytest.raises(BadLock, match="was edited"):
            read(path)


def test_a_section_is_written_alone(tmp_path: Path):
    """Each of the update commands leaves the sections of the others as they were."""
    contents = LockFile(LOCK, Choices("spec1", "impl1", {}), GateConditions("spec2", 3, {}, ()))
    path = tmp_path / "specchk.lock"
    write(path, contents)
    for section in ("gate", "choices", "conditions"):
        write(path, replace(read(path), **{section: None}))
        assert read(path) == replace(contents, **{section: None})
        write(path, contents)


def test_layout_and_comments_do_not_change_a_spec():
    """The fingerprint covers only the meaning."""
    other = SPEC.replace("action toss():", "# heads or tails\naction toss( ):").replace("days + 1", "days+1")
    assert of_spec(check("bank.spec", SPEC)) == of_spec(check("bank.spec", other))


def test_a_guard_changes_its_action_and_the_whole():
    """So a lock shows which actions have changed."""
    whole, actions = of_spec(check("bank.spec", SPEC))
    other, changed = of_spec(check("bank.spec", SPEC.replace("balance[a] > 0", "balance[a] > 1")))
    assert whole != other
    assert [name for name in actions if actions[name] != changed[name]] == ["transfer"]


CHANGES = {
    "a constant": ("const Most : int = 2", "const Most : int = 3"),
    "a type": ("enum { unseen, heads, tails }", "enum { unseen, tails, heads }"),
    "a variable's range": ("0..4 =", "0..5 ="),
    "an initial value": ("a: 2 for", "a: 1 for"),
    "a horizon": ("nat upto Most", "nat upto 2"),
    "a guard": ("require a != b and", "require"),
    "an operator": ("balance[a] - 1", "balance[a] - 1 - 0"),
    "an order of arguments": ("transfer(a: Account, b: Account)", "transfer(b: Account, a: Account)"),
    "an effect": ("    days' = days + 1\n", "    days' = days + 1\n    coin' = unseen\n"),
    "a choice": ("coin' = tails", "coin' = heads"),
    "an action": ("invariant rich", "action wait():\n    skip\ninvariant rich"),
    "a name": ("sleep()", "rest()"),
    "a constraint": ("invariant rich", "constraint little: days < 2\ninvariant rich"),
    "a definition": ("invariant rich", "def one() = 1\ninvariant rich"),
    "a helper": ("invariant rich", "helper action stay():\n    coin' = coin\ninvariant rich"),
}


@pytest.mark.parametrize(("old", "new"), CHANGES.values(), ids=CHANGES)
def test_each_change_of_meaning_changes_the_fingerprint(old: str, new: str):
    """Of every kind of declaration that steps depend on."""
    assert SPEC.count(old) == 1
    assert of_spec(check("bank.spec", SPEC))[0] != of_spec(check("bank.spec", SPEC.replace(old, new)))[0]


def test_a_library_is_in_the_fingerprint(tmp_path: Path):
    """Its definitions decide steps; its invariants do not."""
    near, top = tmp_path / "near.spec", tmp_path / "top.spec"
    top.write_text("spec top\nimport near\nvar x : 0..9 = 0\naction go():\n    x' = near.one()\n")
    found = []
    for text in ("def one() = 1", "# again\ndef one()  = 1", "def one() = 2"):
        near.write_text(f"spec near\n{text}\n")
        found.append(of_spec(check(str(top)))[0])
    assert found[0] == found[1] != found[2]


def test_what_no_step_depends_on_is_not_in_the_fingerprint():
    """Invariants and models are not conformance requirements."""
    other = SPEC.replace("balance[a] >= 0", "balance[a] >= 1").replace("model small", "model little")
    assert of_spec(check("bank.spec", SPEC)) == of_spec(check("bank.spec", other))
