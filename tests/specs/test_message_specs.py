"""The examples with sets of messages and of sets have the counts of plain searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine
from specchk.native.machine.rooms import is_roomy
from specchk.search.verdict import Outcome
from specs.message_searches import Raft, paxos, sliding_block

EXAMPLES = Path(__file__).parents[2] / "spec" / "examples"


def program(file: str, model: str, given: Mapping[str, str] = MappingProxyType({})) -> Program:
    return instantiate(check(str(EXAMPLES / f"{file}.spec")), model, dict(given)).program


def found(file: str, model: str, given: Mapping[str, str] = MappingProxyType({})) -> Outcome:
    return engine.search(program(file, model, given), engine.NativeOptions(symmetry=False))


@pytest.mark.parametrize(
    ("file", "model", "plain"),
    [
        ("raft", "one_term", Raft(3, 1, 1, 2).run),
        ("raft", "two_servers", Raft(2, 2, 2, 2).run),
        ("paxos", "two_ballots", lambda: paxos(3, 2, 2)),
        pytest.param("sliding_block", "huarong_dao", sliding_block, marks=pytest.mark.slow),
    ],
)
def test_an_example_has_the_counts_of_a_plain_search(
    file: str, model: str, plain: Callable[[], tuple[int, int]]
) -> None:
    """States and levels, as Python's sets count them."""
    statistics = found(file, model).statistics
    assert (statistics.distinct, statistics.depth) == plain()


@pytest.mark.slow
def test_paxos_of_three_ballots_has_the_counts_of_a_plain_search() -> None:
    """The same with more messages, as constants of the model."""
    statistics = found("paxos", "two_ballots", {"Ballots": "3"}).statistics
    assert (statistics.distinct, statistics.depth) == paxos(3, 2, 3) == (185_369, 25)


def test_the_puzzle_takes_116_moves() -> None:
    """The known length of the shortest solution of Huarong Dao, by moves of one cell."""
    outcome = found("sliding_block", "huarong_dao")
    assert [len(trace.steps) for name, trace in outcome.witnesses if name == "solved"] == [116]


@pytest.mark.parametrize(("file", "model"), [("raft", "two_servers"), ("sliding_block", "huarong_dao")])
def test_the_sets_of_an_example_are_listed(file: str, model: str) -> None:
    """They are examples of what they were made for."""
    assert is_roomy(program(file, model))
