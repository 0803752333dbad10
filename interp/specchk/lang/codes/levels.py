"""S4xx: the states that an expression may read, and the places that an action may write."""

from __future__ import annotations

from specchk.lang.codes.page import Page

PAGES = (
    Page(
        "S401", "a prime where there is no step",
        """`x'` is the value of `x` after a step.  Invariants, witnesses, guards and the right sides
        of assignments read only one state; in an action, every right side
        reads the state before the step.""",
        """Use a `step invariant` to relate two states.  In an action, repeat the value, or name it
        with `let` and assign it.""",
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
        "S402", "a state where only constants are allowed",
        """Bounds, default values, initial values and the bindings of a model are evaluated before
        any state exists, so they cannot read variables.""",
        """Use constants.  Initial values that depend on each other are described by `init: e`.""",
        """
spec unsettled
var leo : 0..3 = 2
var hw : 0..3 = leo
""",
    ),
    Page(
        "S403", "a temporal operator outside liveness",
        """`always`, `eventually` and `leadsto` describe whole behaviours; invariants, guards and
        definitions describe states.""",
        """Put it into a `liveness` property.  An invariant implies `always` already.""",
        """
spec behaviours
var done : bool = false
invariant ends: eventually done
""",
    ),
    Page(
        "S404", "a place that is assigned twice",
        """An action is a set of simultaneous changes, so a place is assigned at most once on each
        path.  Assignments whose text shows the conflict are reported here; two indices that turn
        out to be equal are reported as a violation when that happens.""",
        """Keep one assignment, or put them into the branches of `when` or `either`.""",
        """
spec double
var leo : 0..3 = 0
action grow():
    leo' = 1
    leo' = 2
""",
    ),
)  # fmt: skip
