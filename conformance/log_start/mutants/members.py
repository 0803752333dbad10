"""What may kill a mutant of the log start: the suites of its binding."""

from __future__ import annotations

from specchk.conform.contract.binding import At
from specchk.conform.mutation.members import SuiteMember

SMALL = {"MaxOffset": "1"}
LAGS = {"MaxOffset": "1", "MaxEpoch": "0", "MaxShrinks": "1"}
FENCED = {"MaxOffset": "1", "MaxEpoch": "1", "MaxFences": "1"}
UNCLEAN = {"MaxOffset": "1", "requests": "false"}

MEMBERS = (
    SuiteMember("classes slow_follower", At("slow_follower", LAGS), limit=200_000),
    SuiteMember("classes two_brokers", At("two_brokers", SMALL), limit=200_000),
    SuiteMember("classes false_suspicion", At("false_suspicion", FENCED), limit=200_000),
    SuiteMember("classes unclean", At("unclean", UNCLEAN), limit=200_000),
)
