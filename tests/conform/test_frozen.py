"""A frozen divergence is a test: it fails while the implementation is wrong, and passes once it is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from bank import BankBinding, bank
from broken import BROKEN, ForgetsOnDisk
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import binding as replog_binding
from laws.sources import ROOT
from replog.core.broker import follower
from specchk.cli.commands.conform import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Binding
from specchk.conform.contract.values import Some as PlainSome
from specchk.conform.contract.values import plain
from specchk.conform.replay.frozen import CannotFreeze, exact, frozen
from specchk.conform.replay.frozen_run import Bag, Items, Some, same
from specchk.conform.replay.place import Diverged, Divergence
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.shrink import shrunk
from specchk.conform.replay.suites import SuiteWalks, run_product, run_walks
from specchk.ir import types
from specchk.lang.frontend import check
from specchk.meaning.values import universe

HERE = Path(__file__).parent
BANK = bank()
FROZEN = [one[0] for one in BROKEN if one[1] != "ambiguous"]
BLOCKED = dedent("""
    import sys
    class NoSpecchk:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "specchk":
                raise ImportError("specchk is not installed here")
    sys.meta_path.insert(0, NoSpecchk())
    import pytest
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
""")


def found_in(cls: type[BankBinding]) -> Divergence:
    found = run_product(Replayer(cls(BANK.program))).divergence
    assert found is not None
    return found


def run(text: str, target: Path) -> None:
    """Run a frozen test in this process."""
    names: dict[str, Any] = {"__file__": str(target), "__name__": "frozen"}
    exec(compile(text, str(target), "exec"), names)
    names["test_the_implementation_follows_the_spec"]()


@pytest.mark.parametrize("cls", FROZEN, ids=lambda cls: cls.__name__)
def test_it_fails_where_the_implementation_is_wrong(cls, tmp_path):
    """For every kind of divergence that an implementation can show."""
    target = tmp_path / "test_frozen.py"
    text = frozen(BANK, cls(BANK.program), HERE / "broken.py", found_in(cls), target)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run(text, target)


@pytest.mark.parametrize("cls", FROZEN, ids=lambda cls: cls.__name__)
def test_it_passes_once_the_implementation_is_right(cls, tmp_path):
    """The same path on the correct bank."""
    target = tmp_path / "test_frozen.py"

    class Right(BankBinding):
        pass

    Right.__name__ = "BankBinding"
    run(frozen(BANK, Right(BANK.program), HERE / "bank.py", found_in(cls), target), target)


@pytest.mark.system
def test_the_same_divergence_is_written_in_the_same_bytes(lossy, tmp_path):
    """In other processes too, whatever the order of their sets."""
    texts = set()
    for seed in ("1", "2", "3"):
        target = tmp_path / "test_frozen.py"
        asked = [str(lossy), "--suite", "product", "--freeze", str(target)]
        env = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-m", "specchk", "conform", *asked], check=False, env=env)
        assert done.returncode == 13
        texts.add(target.read_bytes())
    assert len(texts) == 1


def test_modules_are_left_as_they_were(tmp_path):
    """The stand-ins for specchk, and the modules imported with them, are removed after the test."""
    before = dict(sys.modules)
    target = tmp_path / "test_frozen.py"
    cls = FROZEN[0]
    with pytest.raises(AssertionError):
        run(frozen(BANK, cls(BANK.program), HERE / "broken.py", found_in(cls), target), target)
    assert {name: id(one) for name, one in sys.modules.items()} == {n: id(one) for n, one in before.items()}


def test_what_only_the_binding_shows_is_not_frozen(tmp_path):
    """A projection that shows too little is not a fault of the implementation."""
    cls = next(one[0] for one in BROKEN if one[1] == "ambiguous")
    with pytest.raises(CannotFreeze, match="observes too little"):
        frozen(BANK, cls(BANK.program), HERE / "broken.py", found_in(cls), tmp_path / "test_frozen.py")


def test_a_disk_that_forgets_is_frozen(tmp_path):
    """The files on disk are reopened at the end of the path."""
    made = ForgetsOnDisk(BANK.program)
    replayer = Replayer(made)
    toss = next(one for one in replayer.spec.instances if one.label.action == "toss")
    start = replayer.begin()
    place = replayer.take(start, toss, replayer.spec.allowed(start.state, toss))[0]
    with pytest.raises(Diverged) as caught:
        replayer.check_reopened(place)
    found = shrunk(Replayer(made), caught.value.divergence)
    assert (found.kind, [step.action for step in found.trace.steps]) == ("reopened", ["toss"])
    target = tmp_path / "test_frozen.py"
    with pytest.raises(AssertionError, match="coin is 'unseen'"):
        run(frozen(BANK, made, HERE / "broken.py", found, target), target)
    with pytest.raises(CannotFreeze, match="only the harness"):
        frozen(BANK, made, HERE / "broken.py", replace(found, kind="fault"), target)


@pytest.mark.system
def test_it_runs_without_specchk(lossy, tmp_path):
    """In a process in which specchk cannot be imported; a failure reports where and how."""
    target = tmp_path / "test_lossy.py"
    result = CliRunner().invoke(command, [str(lossy), "--suite", "product", "--freeze", str(target)])
    assert result.exit_code == 13
    assert f"wrote {target}" in result.output
    assert "balance is {'a1': 0, 'a2': 3}, the spec has {'a1': 0, 'a2': 4}" in without_specchk(target)
    lossy.write_text(lossy.read_text().replace('["a2"], 3)', '["a2"], 2 + 2)'))
    assert "1 passed" in without_specchk(target)


def without_specchk(target: Path) -> str:
    """The output of pytest for a test file in a process without specchk."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(target)], env={"PYTHONPATH": str(HERE), "PATH": ""},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


def test_replogs_binding_can_be_frozen(monkeypatch, tmp_path):
    """Its modules, constants and values; it passes on the unchanged replog, and fails with KAFKA-3083."""
    instance = instantiate(check(str(ROOT / "spec" / "replication.spec")), "one_record_at_a_time")
    right = follower.update_hw

    def hw_beyond_the_log(state, reply):
        state.log.hw = reply.high_watermark

    monkeypatch.setattr(follower, "update_hw", hw_beyond_the_log)
    made: Binding[Any] = replog_binding.ReplogBinding(instance.program)
    found = run_walks(Replayer(made), SuiteWalks(5, 250, 50)).divergence
    assert found is not None
    short = shrunk(Replayer(made), found)
    target = tmp_path / "test_frozen.py"
    text = frozen(instance, made, ROOT / "conformance" / "binding.py", short, target)
    with pytest.raises(AssertionError, match=r"after apply_response\(b2\): hw is"):
        run(text, target)
    monkeypatch.setattr(follower, "update_hw", right)
    run(text, target)


@pytest.mark.system
def test_the_example_of_the_documents_is_frozen(tmp_path):
    """A participant that does not force its log: the test fails on it, and passes on the correct one."""
    folder, target = ROOT / "docs" / "two_phase", tmp_path / "test_frozen.py"
    asked = [str(folder / "forgetful.py"), "--suite", "product", "--freeze", str(target)]
    done = subprocess.run([sys.executable, "-m", "specchk", "conform", *asked], check=False)
    assert done.returncode == 13
    with pytest.raises(AssertionError, match=r"after crash\(p1\): state is"):
        run(target.read_text(), target)
    right = target.read_text().replace("forgetful.py", "binding.py").replace("Forgetful", "TwoPhase")
    run(right, target)


SIDE, BROKER = types.Enum("Side", ("heads", "tails")), types.Sort("Broker", ("b1", "b2"))
SMALL = st.sampled_from([types.BOOL, types.Int(0, 2), SIDE, BROKER])


def deeper(inner: st.SearchStrategy[types.Type]) -> st.SearchStrategy[types.Type]:
    record = st.lists(inner, min_size=1, max_size=2).map(
        lambda items: types.Record(tuple((f"f{i}", item) for i, item in enumerate(items)))
    )
    union = record.map(lambda one: types.Union("U", (("A", types.Record(())), ("B", one))))
    return st.one_of(
        inner.map(types.Option), record, union, st.builds(types.Map, SMALL, inner), inner.map(types.Set),
        st.builds(types.Seq, inner, st.just(2)), st.builds(types.Bag, inner, st.just(2)),
    )  # fmt: skip


@given(kind=st.recursive(SMALL, deeper, max_leaves=3), data=st.data())
def test_values_in_the_text_are_those_of_the_projection(kind, data):
    """The text is Python, and `same` as the plain value, and as no other of the type."""
    if types.cardinality(kind) > 600:
        return
    values = list(universe(kind))
    value, other = (data.draw(st.sampled_from(values)) for _ in range(2))
    written = eval(repr(exact(value, kind)), {"Items": Items, "Bag": Bag, "Some": Some})
    assert same(written, plain(value, kind))
    assert same(written, plain(other, kind)) == (value == other)
    assert PlainSome(1).value == Some(1).value
