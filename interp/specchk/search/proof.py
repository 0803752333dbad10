"""The result of an attempted proof by induction: plain values, shared by engine, report and CLI.

A proof has three parts for each property: *initiation* (the initial states satisfy it), *consecution*
(no action leads out of the states that satisfy all invariants) and, for k > 1, the first k - 1 steps.
An action that may be undefined in a state that satisfies all invariants fails `definedness`.
"""

from __future__ import annotations

from msgspec import Struct

from specchk.ir.program import Program, Property
from specchk.meaning.explain import Blame
from specchk.search.verdict import Trace, Verdict


class Failure(Struct, frozen=True):
    """A step that induction does not exclude: `trace` starts in a state that satisfies all invariants.

    `kind` is that of the property, or `undefined`.  `reached` is whether the enumerated states
    contain its first state: None if that was not searched, or the search ended before an answer.
    """

    kind: str
    name: str
    trace: Trace
    blame: Blame | None
    reached: bool | None = None


class Unanswered(Struct, frozen=True):
    """A query that the solver did not decide."""

    kind: str
    name: str
    action: str
    reason: str


class ProofCosts(Struct, frozen=True):
    """Counts of a proof: `settled` obligations needed no query, `alike` actions are renamed copies."""

    queries: int
    settled: int
    instances: int
    alike: int
    seconds: float
    seconds_solver: float


class Suggestion(Struct, frozen=True):
    """Lemmas found for a proof, each as an invariant and as text of the spec.

    Of `tried` candidates `held` hold in `states` enumerated states, with none that implies them, and
    `inductive` of them are inductive together.
    """

    lemmas: tuple[tuple[Property, str], ...]
    tried: int
    states: int
    held: int
    inductive: int


class Proof(Struct, frozen=True):
    """The outcome of `--prove`: `proved` names the properties whose obligations all hold."""

    program: Program
    k: int
    verdict: Verdict
    proved: tuple[str, ...]
    failures: tuple[Failure, ...]
    unanswered: tuple[Unanswered, ...]
    effort: ProofCosts
    suggestion: Suggestion | None = None  # its lemmas are among the program's invariants
    certificate: str | None = None  # the file that was written of the proof
