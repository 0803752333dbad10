"""The report of a campaign: a table, a JSON object, and its verdict.

    mutant                  flaw           killed by                                   seconds
    joins-below-hw          B30            classes slow_follower 3f2a.. (2 tests)         0.42

Not here: running it (`mutate`).
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType

from msgspec import Struct

from specchk.conform.mutation import outcomes
from specchk.conform.mutation.mutants import diff
from specchk.conform.mutation.outcomes import EQUIVALENT, GOOD, UNFINISHED, Baseline, MutantOutcome

CURATED, GENERATED, HARNESS = "curated", "generated", "harness"


class Requirement(Struct, frozen=True):
    """The share of mutants to be killed, and the number of tests that must kill each."""

    share: float
    tests: int


# Two tests for a curated mutant, so that the gate keeps it when one of them changes.  Of generated ones a
# tenth may survive: some have no visible effect, and they have not all been reviewed.
REQUIRED = MappingProxyType({
    CURATED: Requirement(1.0, 2), GENERATED: Requirement(0.9, 1), HARNESS: Requirement(1.0, 1),
})  # fmt: skip


class Sample(Struct, frozen=True):
    """A sample of `all` mutants, drawn with `seed`."""

    all: int
    seed: int


class Score(Struct, frozen=True):
    """A campaign's outcomes, and the required score."""

    kind: str
    wanted: Requirement
    outcomes: tuple[MutantOutcome, ...]
    ground: Baseline | None
    seconds: float
    sample: Sample | None = None

    def verdict(self, outcome: MutantOutcome) -> str:
        """The verdict on a mutant, by the required number of tests."""
        return outcome.verdict(self.wanted.tests)

    @property
    def counts(self) -> Counter[str]:
        """The number of mutants for each verdict."""
        return Counter(self.verdict(outcome) for outcome in self.outcomes)

    @property
    def counted(self) -> int:
        """The mutants that could have been killed."""
        return len(self.outcomes) - self.counts[EQUIVALENT]

    @property
    def killed(self) -> int:
        """The number of killed mutants, by the required number of tests that failed or did not end."""
        return sum(self.verdict(outcome) in GOOD for outcome in self.outcomes)

    @property
    def shortfall(self) -> str:
        """The reason why the score is insufficient; empty if it is sufficient."""
        # First of all: if the implementation as it is fails, every mutant "fails" with it.
        if self.ground is not None and self.ground.kills:
            first = self.ground.kills[0]
            return f"the unchanged implementation fails {first.member} {first.test}: {first.reason}"
        if self.ground is not None and self.ground.unfinished:
            return f"the unchanged implementation did not finish {self.ground.unfinished[0]}"
        if self.counts[outcomes.WRONGLY]:
            return f"{self.counts[outcomes.WRONGLY]} killed although argued to be equivalent"
        if not self.counted:
            return "there was no mutant to kill"
        # Even if all undecided ones were killed it would not be enough: then that is the answer, not
        # "undecided".
        if self.killed + self.counts[UNFINISHED] < self.wanted.share * self.counted:
            return f"{self.killed} of {self.counted} killed, {self.wanted.share:.0%} required"
        if self.counts[UNFINISHED]:
            undecided = next(outcome for outcome in self.outcomes if self.verdict(outcome) == UNFINISHED)
            return f"{self.counts[UNFINISHED]} not decided: {undecided.mutant.id} ({undecided.how})"
        return ""

    @property
    def is_late(self) -> bool:
        """Whether there is no score because a mutant was stopped, which shows only the machine's speed."""
        if self.ground is not None and not self.ground.is_sound:
            return self.ground.is_late and not self.ground.kills
        undecided = [outcome for outcome in self.outcomes if self.verdict(outcome) == UNFINISHED]
        is_open = self.shortfall.startswith(f"{len(undecided)} not decided")
        return is_open and any(one.is_late for one in undecided)


def render(score: Score) -> str:
    """The report as text: the score first, the table, and the survivors with their diffs."""
    lines = [headline(score), ""]
    widths = (
        max((len(outcome.mutant.id) for outcome in score.outcomes), default=6),
        min(30, max((len(outcome.mutant.flaw) for outcome in score.outcomes), default=4)),
    )
    lines.append(f"{'mutant':<{widths[0]}}  {'flaw':<{widths[1]}}  {'seconds':>7}  killed by")
    lines += [_line(score, outcome, widths) for outcome in score.outcomes]
    left = [outcome for outcome in score.outcomes if score.verdict(outcome) not in (*GOOD, EQUIVALENT)]
    for one in left:
        lines += ["", f"{one.mutant.id} ({score.verdict(one)}): {one.mutant.story}", diff(one.mutant)]
    lines += ["", *_members(score)]
    return "\n".join(lines)


def headline(score: Score) -> str:
    """The score in one line."""
    counts = score.counts
    words = [f"{score.killed} of {score.counted} killed"]
    words += [f"{counts[name]} {text}" for name, text in (
        (outcomes.ENDLESS, "of them by not terminating"), (outcomes.WEAK, "by one test only"),
        (outcomes.SURVIVED, "survived"), (UNFINISHED, "not decided"), (EQUIVALENT, "equivalent"),
        (outcomes.WRONGLY, "wrongly called equivalent")) if counts[name]]  # fmt: skip
    control = "; not run unchanged"
    if score.ground is not None:
        control = f"; unchanged, {score.ground.tests} tests pass"
    if score.is_late:
        return (
            f"inconclusive: {score.shortfall}; see --max-seconds ({score.kind} mutants: {', '.join(words)})"
        )
    if score.shortfall:
        return f"below the mark: {score.shortfall} ({score.kind} mutants: {', '.join(words)})"
    return f"{score.kind} mutants: {', '.join(words)}{control}, {score.seconds:.0f} s"


def _line(score: Score, outcome: MutantOutcome, widths: tuple[int, int]) -> str:
    verdict = score.verdict(outcome)
    tests = dict.fromkeys(f"{kill.member} {kill.test}" for kill in outcome.kills)
    what = ", ".join(tests) if tests else verdict
    if verdict not in (outcomes.KILLED, outcomes.SURVIVED):
        what = f"{verdict}: {', '.join(tests) or outcome.mutant.equivalent or outcome.how}"
    seconds = "kept" if outcome.is_cached else f"{outcome.seconds:.1f}"
    flaw = outcome.mutant.flaw[: widths[1]]
    return f"{outcome.mutant.id:<{widths[0]}}  {flaw:<{widths[1]}}  {seconds:>7}  {what}"


def _members(score: Score) -> list[str]:
    """The number of mutants that each member helped to kill."""
    killers = Counter(member for one in score.outcomes for member in {kill.member for kill in one.kills})
    return [f"{count:5} by {member}" for member, count in killers.most_common()]


def as_json(score: Score, exit_code: int) -> dict[str, object]:
    """The report as JSON, including the reasons of the kills."""
    return {
        "schema": "specchk.mutation/1", "kind": score.kind, "killed": score.killed, "counted": score.counted,
        "counts": dict(score.counts), "shortfall": score.shortfall, "seconds": round(score.seconds, 2),
        "control_tests": None if score.ground is None else score.ground.tests,
        "sample": None if score.sample is None else {"of": score.sample.all, "seed": score.sample.seed},
        "mutants": [_outcome(score, outcome) for outcome in score.outcomes], "exit_code": exit_code,
    }  # fmt: skip


def _outcome(score: Score, outcome: MutantOutcome) -> dict[str, object]:
    mutant = outcome.mutant
    kills = [
        {"member": kill.member, "test": kill.test, "reason": kill.reason, "seconds": round(kill.seconds, 3),
         "endless": kill.is_endless}
        for kill in outcome.kills
    ]  # fmt: skip
    return {
        "id": mutant.id, "flaw": mutant.flaw, "story": mutant.story, "shown": mutant.shown,
        "equivalent": mutant.equivalent, "verdict": score.verdict(outcome), "kills": kills,
        "asked": list(outcome.asked), "tests": outcome.tests, "seconds": round(outcome.seconds, 3),
        "cached": outcome.is_cached,
    }  # fmt: skip
