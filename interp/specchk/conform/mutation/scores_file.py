"""Mutation scores written by `specchk mutate --json`, for the lock and the page of a gate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from specchk.conform.gate.lock import digest_of
from specchk.conform.mutation.outcomes import EQUIVALENT, GOOD, UNFINISHED
from specchk.conform.work.lock_file import Kills

SCHEMA = "specchk.mutation/1"


class ScoreRow(Struct, frozen=True):
    """One mutant: its kind, name and flaw, the verdict, and the number of tests that killed it."""

    kind: str
    name: str
    flaw: str
    verdict: str
    kills: int


class Scores(Struct, frozen=True):
    """The contents of some files: the scores by kind, and every mutant."""

    kills: Mapping[str, Kills]
    rows: tuple[ScoreRow, ...]


class NoScores(Exception):
    """A file without mutation scores."""


def read_scores(paths: Sequence[str]) -> Scores:
    """The scores in some files, one for each kind of mutants; raises `NoScores`.

    A score is invalid if its campaign did not run the unchanged implementation, if it leaves
    mutants undecided, or if its rows do not add up to it.
    """
    kills: dict[str, Kills] = {}
    rows: list[ScoreRow] = []
    for path in paths:
        try:
            report = json.loads(Path(path).read_text(encoding="utf-8"))
            if report["schema"] != SCHEMA:
                raise NoScores(f"{path} has the schema {report['schema']}, not {SCHEMA}")
            # Kills count only against an implementation that passes: tests that always fail would kill every
            # mutant.
            if not report["control_tests"]:
                raise NoScores(f"{path} has no control: the unchanged implementation was not run")
            own = [
                ScoreRow(
                    report["kind"], str(one["id"]), str(one["flaw"]), str(one["verdict"]), len(one["kills"])
                )
                for one in report["mutants"]
            ]
            kills[report["kind"]] = _kills(path, own, int(report["killed"]), int(report["counted"]))
            rows += own
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise NoScores(f"{path} has no mutation scores: {type(error).__name__}: {error}") from None
    return Scores(kills, tuple(rows))


def _kills(path: str, rows: Sequence[ScoreRow], killed: int, counted: int) -> Kills:
    """The score, if the rows confirm it."""
    open_ = [row.name for row in rows if row.verdict == UNFINISHED]
    if open_:
        raise NoScores(
            f"{path} has no score: {len(open_)} mutants are not decided, {open_[0]} first; run them again"
        )
    names = [row.name for row in rows if row.verdict != EQUIVALENT]
    score = Kills(sum(row.verdict in GOOD for row in rows), len(names), digest_of(names))
    # A file that was edited by hand, or whose rows were written by another version.
    if (score.killed, score.all) != (killed, counted):
        raise NoScores(
            f"{path} reports {killed} of {counted} killed, but its mutants give {score.killed} of {score.all}"
        )
    return score
