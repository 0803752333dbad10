"""S7xx: constructs that some engines, or the form of an export, reject."""

from __future__ import annotations

from specchk.lang.codes.page import Page

PAGES = (
    Page(
        "S701",
        "an offset that must be bounded",
        """In the symbolic engine, numbers of a `nat upto` type are unbounded.  They can be compared,
        copied, added, subtracted, and multiplied or divided by known numbers.  A number of this type,
        or a record or option that contains some, can be chosen (`any n in Offset`, an argument).
        Such numbers cannot be an index or the key of a map, or be multiplied or divided by each other,
        and the set of all of them cannot be listed or used in computations.""",
        """Give the number a bounded type (`0..3`), or run an engine that enumerates.""",
        """
spec listed
type Offset = nat upto 3
var hw : Offset = 0
action advance(): hw' = hw + 1
invariant readable: exists n in Offset: n == hw
""",
        needs_engine=True,
    ),
    Page(
        "S702",
        "a temporal property or a refinement on an engine that checks none",
        """The native, the reference and the Spark engine check `liveness` properties, and refinements
        of specs with `fair` lines.  The symbolic engine, `--prove` and `--depth` do not, and reject a
        model that selects one, so that silence is not mistaken for a proof.  All except the symbolic
        engine check refinements of specs without fairness.""",
        """Run these properties with `--engine native`, and others with `--property p`.""",
        """
spec ending
var done : bool = false
action finish(): done' = true
fair finish
liveness ends: eventually done
""",
        needs_engine=True,
    ),
    Page(
        "S703",
        "a model that ignores variables, on an engine that keeps all",
        """Of states that differ only in ignored variables, the native and the reference engine search
        the first.  Symbolic states have no order, and on Spark the order of states is not determined.  An
        export has all steps between the states that it lists.""",
        """Run the model with `--engine native`, or declare one without `ignore`.""",
        """
spec counted
var on : bool = false
var steps : nat upto 9 = 0
action switch():
    on' = not on
    steps' = steps + 1
model small:
    ignore steps
""",
        needs_engine=True,
    ),
    Page(
        "S704",
        "a part of a spec that has no form in TLA+",
        """`specchk export-tla` writes everything that a verdict depends on, or nothing.  `choose` takes the
        first of several values, and TLA+ has no order of sets, sequences or maps.""",
        """Choose among numbers, names, or records of these.""",
        """
spec chosen
var seen : set[0..1] = {}
action see(n: 0..1):
    seen' = choose s in { seen, seen union {n} }: n in s
deadlock ok
""",
        needs_engine=True,
    ),
)  # fmt: skip
