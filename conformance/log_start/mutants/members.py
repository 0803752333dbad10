"""The members that may kill a mutant of the log start: recordings of its profiles, and its suites."""

from __future__ import annotations

from functools import partial

from replog.sim.recording.start_run import record_starts
from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import SuiteMember
from specchk.conform.mutation.recorded import Recorded

SMALL = {"MaxOffset": "1"}
LAGS = {"MaxOffset": "1", "MaxEpoch": "0", "MaxShrinks": "1"}
FENCED = {"MaxOffset": "1", "MaxEpoch": "1", "MaxFences": "1"}
UNCLEAN = {"MaxOffset": "1", "requests": "false"}

MEMBERS = (
    *(
        Recorded(f"recordings {name}", "start_tracing.py", partial(record_starts, profile=name), range(30))
        for name in ("delete", "retain")
    ),
    SuiteMember("classes slow_follower", At("slow_follower", LAGS), limit=200_000),
    SuiteMember("classes two_brokers", At("two_brokers", SMALL), limit=200_000),
    SuiteMember("classes false_suspicion", At("false_suspicion", FENCED), limit=200_000),
    SuiteMember("classes unclean", At("unclean", UNCLEAN), limit=200_000),
)
