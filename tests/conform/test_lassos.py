"""Lassos contain every class on a loop, and detect state that grows from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bank import Bank, BankBinding, bank
from click.testing import CliRunner

from agreement.both import of_seed
from conform.test_cover import along
from laws.sources import ROOT
from seeded import few_of
from specchk.cli.commands.conform import command
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, Answer, Refused, action
from specchk.conform.covers.cases import Suite, as_json, from_json
from specchk.conform.covers.cover import build_suite
from specchk.conform.covers.graph import explore
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer
from specchk.meaning.tracing import Tracer
from specchk.meaning.undefined import Faulty


def on_loops(program: Program, max_states: int | None = None) -> set[str]:
    """The ids of the classes of all edges from whose end there is a path back, computed naively."""
    graph = explore(program, max_states, keep_edges=True)
    ahead: list[set[int]] = []
    for state in range(len(graph.states)):
        reached = {state}
        queue = [state]
        while queue:
            for edge in graph.edges_of(queue.pop()):
                if edge.target not in reached:
                    reached.add(edge.target)
                    queue.append(edge.target)
        ahead.append(reached)
    numbers = {
        number
        for state in range(len(graph.states))
        for edge, classes in graph.edges_of(state).items()
        if state in ahead[edge.target]
        for number in classes
    }
    return {graph.classifier.described(graph.classes.keys[number]).id for number in numbers}


def check_lassos(program: Program, suite: Suite, rounds: int, wanted: set[str]) -> None:
    """Check that each case ends in rounds of one loop, and that the classes of the last are counted."""
    tracer = Tracer(program)
    for case in suite.cases:
        states = [
            initial_states(program)[case.start],
            *(after for _, _, after in along(program, tracer, case)),
        ]
        last = sum(1 for classes in case.classes if classes)
        stem = len(case.steps) - rounds * last
        assert stem >= 0
        assert not any(case.classes[:-last])
        assert case.steps[stem:] == case.steps[-last:] * rounds
        assert states[stem:] == [states[stem], *states[-last:] * rounds]
    taken = {suite.classes[number].id for case in suite.cases for of in case.classes for number in of}
    assert taken == {one.id for one in suite.classes} == wanted


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("name", ["bank", "replication"])
def test_every_class_on_a_loop_is_in_the_loop_of_a_lasso(name: str, rounds: int) -> None:
    checked = check(str(ROOT / "spec" / "replication.spec"))
    small = {"MaxOffset": "1", "MaxCrashes": "0"}
    program = bank().program if name == "bank" else instantiate(checked, "two_brokers", small).program
    suite = build_suite(program, "lassos", rounds=rounds)
    assert from_json(as_json(suite)) == suite
    assert suite.complete
    check_lassos(program, suite, rounds, on_loops(program))


@pytest.mark.parametrize("seed", few_of(range(60), 12))
def test_lassos_of_random_specs(seed: int, tmp_path: Path) -> None:
    """Of graphs that a limit has truncated, too."""
    program = of_seed(seed, tmp_path)
    if program is None:
        return
    try:
        suite = build_suite(program, "lassos", max_states=60)
        wanted = on_loops(program, 60)
    except (Faulty, NoAnswer):
        return
    check_lassos(program, suite, 3, wanted)


@dataclass
class TiredBank(Bank):
    """A bank that counts transfers, which is not in a state of the spec."""

    moved: int = 0


class TiredBinding(BankBinding):
    """A sequence number of two bits, which overflows."""

    def start(self) -> Bank:
        return TiredBank()

    @action("transfer")
    def transfer(self, system: Any, a: str, b: str) -> Answer:
        if system.moved == 4:
            return Refused("no number is left")
        answer = super().transfer(system, a, b)
        system.moved += isinstance(answer, Accepted)
        return answer


def test_what_a_round_uses_up_is_detected() -> None:
    """The fifth transfer is in the third round; no class is as far from the start."""
    program = bank().program
    assert run_suite(Replayer(TiredBinding(program)), build_suite(program, sequences=0)).divergence is None
    assert run_suite(Replayer(BankBinding(program)), build_suite(program, "lassos")).divergence is None
    found = run_suite(Replayer(TiredBinding(program)), build_suite(program, "lassos"))
    assert found.divergence is not None
    assert "no number is left" in str(found.divergence)
    once = build_suite(program, "lassos", rounds=1)
    assert run_suite(Replayer(TiredBinding(program)), once).divergence is None


STAIRS = """spec stairs
var floor : 0..3 = 0
action up():
    require floor < 3
    floor' = floor + 1
deadlock ok
model m:
    expect holds
"""
STAIRS_BINDING = """from specchk.conform.contract.binding import Accepted, Binding, Refused, action, project


class StairsBinding(Binding[list[int]]):
    spec = "stairs.spec"

    def start(self):
        return [0]

    @action("up")
    def up(self, system):
        if system[0] == 3:
            return Refused("top")
        system[0] += 1
        return Accepted()

    @project
    def state(self, system):
        return {"floor": system[0]}
"""


def conform(folder: Path, spec: str, binding: str, *options: str) -> tuple[int, str]:
    (folder / "stairs.spec").write_text(spec, encoding="utf-8")
    (folder / "binding.py").write_text(binding, encoding="utf-8")
    found = CliRunner().invoke(command, [str(folder / "binding.py"), "--suite", "lassos", *options])
    return found.exit_code, found.output


def test_a_spec_without_loops_says_so(tmp_path: Path) -> None:
    """No step was repeated, so the suite does not claim conformance."""
    code, output = conform(tmp_path, STAIRS, STAIRS_BINDING)
    assert code == 21
    assert "vacuous: no step of the spec is on a loop" in output


@pytest.mark.parametrize(("rounds", "said"), [(1, "1 round each"), (7, "7 rounds each")])
def test_rounds_are_an_option(rounds: int, said: str, tmp_path: Path) -> None:
    """A wheel of four floors has one loop."""
    wheel = STAIRS.replace("    require floor < 3\n    floor' = floor + 1", "    floor' = (floor + 1) % 4")
    binding = STAIRS_BINDING.replace('if system[0] == 3:\n            return Refused("top")', "pass")
    binding = binding.replace("system[0] += 1", "system[0] = (system[0] + 1) % 4")
    code, output = conform(tmp_path, wheel, binding, "--rounds", str(rounds))
    assert code == 0, output
    assert f" {4 * rounds} steps taken" in output
    assert f"cover: 1 loop, {said}" in output
    assert (
        f"lassos: 1 case, 1 loop, {said}"
        in conform(tmp_path, wheel, binding, "--list", "--rounds", str(rounds))[1]
    )
