"""S5xx: models, constants and `--set`; S6xx: features that are parsed and typed but not checked yet."""

from __future__ import annotations

from specchk.lang.codes.page import Page

_DOUBLING = "".join(f"def f{n}(): int = f{n - 1}() + f{n - 1}()\n" for n in range(1, 25))

PAGES = (
    Page(
        "S501", "a model that binds something unknown",
        """The left side of a binding, in a model or in `--set`, must be a constant or a sort of the
        spec; this name is neither, or an import gives it a value.""",
        """Correct the name; constants of an imported file are `file.Name`.""",
        """
spec bindings
const MaxOffset : int
var leo : 0..MaxOffset = 0
model small:
    MaxOffset = 3, MaxOfset = 4
""",
    ),
    Page(
        "S502", "a constant without a binding",
        """A model fixes every constant that has no default, and the size of every sort; otherwise
        it cannot be checked.""",
        """Bind it in the model, give the constant a default (`const N : int = 3`), or pass
        `--set N=3`.""",
        """
spec open_constant
const MaxOffset : int
var leo : 0..MaxOffset = 0
model small:
    expect holds
""",
    ),
    Page(
        "S503", "a constant out of range",
        """The value that the model gives to a constant is not a value of its type, or makes a range
        empty or a limit too large.""",
        """Change the value or the type.  Limits of sequences and bags are at most 64.""",
        """
spec out_of_range
const leader_epoch : 0..5
var epoch : 0..5 = leader_epoch
model late:
    leader_epoch = 6
""",
        needs_model=True,
    ),
    Page(
        "S504", "a model that does not exist",
        """`--model`, a scenario's `on` and a model's `extends` name a model of this file; models of
        extended files are not inherited.""",
        """Correct the name, or declare the model.""",
        """
spec no_model
var x : bool = false
action flip():
    x' = not x
model small:
    expect holds
scenario walk on smal:
    flip()
""",
    ),
    Page(
        "S505", "a sort that is sized wrongly",
        """A sort is sized by a number from 1 to 32 or by a list of different names for its elements,
        and no element belongs to two sorts.""",
        """Write `Replica = 3` or `Replica = {a, b, c}`.  With a number, the elements are
        named by the sort's initial, so list the names if two sorts have the same initial.""",
        """
spec no_replica
sort Replica
var leader : Replica? = none
model none_left:
    Replica = 0
""",
    ),
    Page(
        "S507", "a model that extends itself",
        """Following `extends` from model to model leads back to where it started.""",
        """Remove the `extends` of one of them.""",
        """
spec circle
var x : bool = false
model a extends b
model b extends a
""",
    ),
    Page(
        "S508", "constants that depend on each other",
        """The values of constants may depend on each other in any order, but not in a cycle.  A bound of
        a type may not depend on that type's values.""",
        """Give one of them an independent value.""",
        """
spec mutual
const A : int = B
const B : int = A
var x : 0..A = 0
model default:
    expect holds
""",
        needs_model=True,
    ),
    Page(
        "S509", "definitions that grow too large",
        """Definitions are expanded where they are used.  Here this gives an expression of more
        than a hundred thousand parts, for example because each definition in a chain uses the
        previous one twice.""",
        """Name the repeated part with `let`, so that it is computed once.""",
        "spec doubling\ndef f0(): int = 1\n" + _DOUBLING
        + "var x : bool = false\ninvariant p: f24() > 0\nmodel default:\n    expect holds\n",
        shown="spec doubling\ndef f0(): int = 1\ndef f1(): int = f0() + f0()\n# and so on to f24\n"
        "var x : bool = false\ninvariant p: f24() > 0\nmodel default:\n    expect holds",
        needs_model=True,
    ),
    Page(
        "S510", "too many values to list",
        """A quantifier over a type, a map's keys or an action's parameters need the list of all
        values of a type, and here that list is too long.  A `fold` has a step for each possible
        item, and at most 256.  A call of a recursive definition contains at most 1000 further
        calls, and its measure has a largest value, unlike a `nat upto`.""",
        """Choose smaller constants, or quantify over a set in the state instead of a whole
        type.  Fold over a sequence, or over a set of a smaller type.  If a recursive call occurs
        twice, write it once, with `let`.""",
        """
spec many
type Big = set[0..63]
var x : bool = false
invariant p: forall b in Big: card(b) <= 64
model default:
    expect holds
""",
        needs_model=True,
    ),
    Page(
        "S511", "a constant without a value",
        """The value of a constant, a bound or a binding of a model is undefined: a division by
        zero, `min` of an empty set, an index outside its domain.""",
        """Correct the expression, or bind constants for which it has a value.""",
        """
spec divided
const A : int = 0
const B : int = 4 // A
var x : 0..B = 0
model default:
    expect holds
""",
        needs_model=True,
    ),
    Page(
        "S513", "a variable that cannot be ignored",
        """Of states that differ only in the variables that a model ignores, one is searched.  So a
        constraint cannot read such a variable, since it would exclude only some of these states, and
        temporal properties are not checked, since a loop of the search may not be a behaviour.  A model
        keeps at least one variable.""",
        """Ignore other variables, or check the property in a model that ignores none.""",
        """
spec counted
var on : bool = false
var steps : 0..9 = 0
action switch():
    on' = not on
    steps' = steps + 1
constraint few: steps < 9
model small:
    ignore steps
""",
        needs_model=True,
    ),
    Page(
        "S512", "a broken assumption",
        """An `assume` of the spec, or of one that it imports or refines, is false for the constants
        of the model or of `--set`.""",
        """Change the constants, or weaken the assumption if it is too strong.""",
        """
spec assumed
const N : int
assume: N > 1
var x : 0..N = 0
model default:
    N = 1
""",
        needs_model=True,
    ),
    Page(
        "S601", "a temporal formula that no engine checks",
        """A `liveness` property is a conjunction of `P leadsto Q`, `eventually Q`,
        `always eventually Q` and `eventually always P`, where P and Q are predicates of one state; a
        `forall` over constants may enclose them.  A model that selects any other formula is
        rejected, so that silence is not mistaken for a proof.""",
        """Write it in one of these forms.  For a predicate of every state, use an `invariant`.""",
        """
spec lively
var done : bool = false
action finish():
    done' = true
liveness ends: eventually done or always not done
model default:
    expect holds
""",
        needs_model=True,
    ),
    Page(
        "S602", "fairness with parameters that the action does not have",
        """`fair send` is fairness of the action as a whole: some instance of it is taken.
        `fair send(f, _)` is one condition for each value of the parameter `f`.  The names must be
        the action's parameters, in their order, or `_` for any value.  In `fair send(f) or drop(f)`,
        `f` is the same value, so both have it with the same type.  In `fair forall f in S: send(f)`
        the names are those that `forall` binds.""",
        """Write the parameters as the action declares them, or bind other names with `forall`.""",
        """
spec fairly
var done : 0..2 = 0
action finish(n: 0..2):
    done' = n
fair finish(m)
""",
    ),
    Page(
        "S603", "a refinement that leaves something open",
        """`refines` maps every variable of the refined spec, and every sort and constant that has no
        default, to an expression over ours.  Nothing is mapped by its name alone: otherwise a forgotten
        variable would be mapped to one of ours that happens to have its name.""",
        """Map the names that the message lists.""",
        """
spec refined
var done : bool = false
var at : 0..3 = 0
refines abstract with { finished = done }
""",
        (("abstract.spec", "spec abstract\nvar finished : bool = false\nvar at : 0..3 = 0\n"),),
    ),
    Page(
        "S604", "too many temporal clauses or fairness conditions",
        """A `forall` around a temporal formula gives a clause for each of its values, at most 4096
        in a property.  Fairness of instances gives a condition for each combination of the parameters'
        values, at most 1024 in a model.""",
        """Choose smaller constants, or omit parameters of the fair actions (`_`).""",
        """
spec crowded
var done : 0..1999 = 0
action finish(n: 0..1999):
    done' = n
fair finish(n)
liveness ends: eventually done == 1999
model default:
    expect holds
""",
        needs_model=True,
    ),
    Page(
        "S605", "a sort that is not mapped to a type",
        """The elements of a refined spec's sort, or of one that an import gives, are the values of one of
        our types: a sort, an enum, or another declared type whose values can be listed.""",
        """Name the type: `Client = Broker`.""",
        """
spec refined
var done : bool = false
refines abstract with { Client = 3, finished = done }
""",
        (("abstract.spec", "spec abstract\nsort Client\nvar finished : bool = false\n"),),
    ),
)  # fmt: skip
