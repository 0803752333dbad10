"""S4xx: what an expression may look at, and what an action may write."""

from __future__ import annotations

from types import MappingProxyType

from specchk.lang.codes.page import Page

PAGES = MappingProxyType(
    {
        page.code: page
        for page in (
            Page(
                "S401", "a prime where there is no step",
                """`x'` is the value of `x` after a step.  Invariants, witnesses, guards and the right sides
                of assignments look at one state only; in an action every right side reads the state
                before the step.""",
                """Two states are related by a `step invariant`.  In an action write out the value once
                more, or name it with `let` and assign it.""",
                """
spec primes
var leo : 0..3 = 0
var hw : 0..3 = 0
action grow():
    leo' = 1
    hw' = leo'
""",
            ),
            Page(
                "S402", "a state where only constants are",
                """Bounds, default values, initial values and what a model binds have one value before there
                is any state, so they cannot read variables.""",
                """Use constants.  Initial values that depend on each other are described by `init: e`.""",
                """
spec unsettled
var leo : 0..3 = 2
var hw : 0..3 = leo
""",
            ),
            Page(
                "S403", "a temporal operator outside of liveness",
                """`always`, `eventually` and `leadsto` speak of whole behaviours; invariants, guards and
                definitions speak of states.""",
                """Put it into a `liveness` property.  An invariant says `always` already.""",
                """
spec behaviours
var done : bool = false
invariant ends: eventually done
""",
            ),
            Page(
                "S404", "a place that is assigned twice",
                """An action is a set of simultaneous changes, so a place is assigned at most once on each
                path.  What can be told from the text is reported here; two indices that turn out equal
                are reported as a violation when that happens.""",
                """Keep one assignment, or put them into the branches of `when` or `either`.""",
                """
spec double
var leo : 0..3 = 0
action grow():
    leo' = 1
    leo' = 2
""",
            ),
        )
    }
)  # fmt: skip
