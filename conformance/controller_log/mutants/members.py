"""The members that may kill a mutant of the quorum: its binding's suite, then simulations under faults."""

from __future__ import annotations

from replog.sim.faults.profiles import profile
from replog.sim.run import Simulation
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import Outside, SuiteMember, each_seed


def broken(seed: int) -> str:
    """Run a simulation in which controllers fail over; return the broken promise, if any."""
    report = Simulation(seed, profile("controllers"), max_events=100_000).run()
    return f"{report.oracle}: {report.detail}" if report.is_failure else ""


MEMBERS = (
    SuiteMember("classes one_start", At("one_start", {"MaxTerm": "3"}), limit=200_000),
    Outside("simulation controllers", each_seed(range(40), broken), ("replog",)),
)
