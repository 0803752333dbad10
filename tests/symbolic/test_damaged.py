"""Damaged certificates are refused: an enumerating oracle decides which of them are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random

import cvc5
import pytest
from damaged import Oracle, certified, damaged
from sums import SPECS
from test_certificates import KINDS, fixpoint
from zoned import program_of

from specchk.symbolic.certificates.checker import CertificateChecker, OnQuery
from specchk.symbolic.certificates.format import CertifiedPart
from specchk.symbolic.certificates.states import CertifiedStates
from specchk.symbolic.differences.obligations import DifferenceDecider

ALL = (*[name for name in SPECS if name != "segment"], "two_round_fetch")  # a segment has 1024 offsets


def refused(oracle: Oracle, parts: list[CertifiedPart], on_query: OnQuery | None = None) -> bool:
    """Whether the check refuses a certificate; with `on_query` every obligation is a query."""
    states = CertifiedStates(oracle.program, parts)
    decider = DifferenceDecider(states) if on_query is None else None
    checker = CertificateChecker(oracle.program, on_query=on_query, decider=decider)
    return bool(checker.parts(states).problems)


def wrong_ones(oracles: list[Oracle]) -> Iterator[tuple[int, Oracle, list[CertifiedPart]]]:
    """Damaged certificates that are wrong, with their seeds."""
    for seed in count():
        random = Random(seed)
        oracle = random.choice(oracles)
        parts = damaged(random, oracle.parts)
        if oracle.is_wrong(parts):
            yield seed, oracle, parts


def accepted(oracles: list[Oracle], most: int) -> list[int]:
    """The seeds of wrong certificates that are accepted, among this many wrong ones."""
    return [seed for _, (seed, oracle, parts) in zip(range(most), wrong_ones(oracles), strict=False)
            if not refused(oracle, parts)]  # fmt: skip


def test_some_wrong_certificates_are_refused(tmp_path):
    """A sample of the next test; undamaged certificates are neither wrong nor refused."""
    oracles = list(certified(tmp_path, ["sum_below", "parity", "two_round_fetch"]))
    assert accepted(oracles, 15) == []
    assert [oracle for oracle in oracles if oracle.is_wrong(oracle.parts)] == []
    assert [oracle for oracle in oracles if refused(oracle, oracle.parts)] == []


def test_a_planted_error_of_the_check_is_detected(tmp_path, monkeypatch):
    """A check without consecution accepts some of these."""
    oracles = list(certified(tmp_path, ["sum_below"]))
    monkeypatch.setattr(CertifiedStates, "member", lambda *_: True)
    assert accepted(oracles, 5)


def of_kinds(folder: Path) -> Oracle:
    """Offsets in a union, an option and a sequence, and bounds of differences."""
    program = program_of(KINDS, folder)
    return Oracle(program, fixpoint(program))


def test_differences_and_z3_refuse_the_same(tmp_path):
    """Where every obligation is a query, differences decide nothing."""
    oracles = [*certified(tmp_path, ["two_round_fetch", "sum_below"]), of_kinds(tmp_path)]
    some = islice(wrong_ones(oracles), 25)
    for oracle, parts in [*[(one, one.parts) for one in oracles], *[(one, parts) for _, one, parts in some]]:
        queries: list[str] = []
        by_z3 = refused(oracle, parts, lambda _, problem, text: queries.append(problem))  # noqa: B023
        assert refused(oracle, parts) == by_z3
        assert len(queries) > len({part.state for part in parts})


@pytest.mark.slow
def test_a_thousand_wrong_certificates_are_refused(tmp_path):
    """All that are not inductive, not safe, or without an initial state."""
    assert accepted(list(certified(tmp_path, ALL)), 1000) == []


def note_answer(answers: set[str], _number: int, _problem: str, text: str) -> None:
    answers.add(answer_of(text))


def answer_of(text: str) -> str:
    """cvc5's answer to a query."""
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols, answer = parser.getSymbolManager(), ""
    while True:
        step = parser.nextCommand()
        if step.isNull():
            return answer.strip()
        answer = step.invoke(solver, symbols) or answer


@pytest.mark.parametrize("most", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_another_solver_refuses_the_same(most, tmp_path):
    """For cvc5 some query of each wrong certificate is satisfiable, and none of a correct one."""
    oracles = list(certified(tmp_path, ["sum_below", "half", "two_round_fetch"]))
    wrong = [(oracle, parts) for _, (_, oracle, parts) in zip(range(most), wrong_ones(oracles), strict=False)]
    for oracle, parts in [*[(oracle, oracle.parts) for oracle in oracles], *wrong]:
        answers: set[str] = set()
        is_refused = refused(oracle, parts, partial(note_answer, answers))
        assert ("sat" in answers) == is_refused
        assert answers <= {"sat", "unsat"}
