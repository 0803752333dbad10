"""The members that may kill a mutant of reassignment: its bindings' suites, then simulations under faults."""

from __future__ import annotations

from replog.sim.faults.profiles import profile
from replog.sim.run import Simulation
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import Outside, SuiteMember, each_seed

AGAIN = {"MaxVersion": "5"}
TWO = {"Broker": "2", "MaxOffset": "0", "MaxVersion": "6", "cancels": "true"}
FENCED = {"MaxOffset": "0", "MaxVersion": "7"}


def broken(seed: int) -> str:
    """Run a simulation with an operator who moves the partition; return the broken promise, if any."""
    report = Simulation(seed, profile("reassign")).run()
    return f"{report.oracle}: {report.detail}" if report.is_failure else ""


MEMBERS = (
    SuiteMember("classes removed_and_added", At("removed_and_added", AGAIN), limit=200_000),
    SuiteMember("classes overridden", At("overridden", TWO), limit=200_000),
    SuiteMember("classes ends_after_fencing", At("ends_after_fencing", FENCED), limit=200_000),
    Outside("simulation reassign", each_seed(range(20), broken), ("replog",)),
)
