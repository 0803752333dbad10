"""S3xx: types."""

from __future__ import annotations

from specchk.lang.codes.page import Page

PAGES = (
    Page(
        "S301", "a value of the wrong type",
        """Every place has a type: both sides of `==` have the same type, a condition is a `bool`, and
        an assigned value has the variable's type.  Ranges are not distinguished here: all integers
        have one type in expressions, and a range is checked where a value is stored.""",
        """The message gives both types.  Options are unwrapped with `let x = e else skip`,
        `get(e)` or `match`, and made with `some(e)`; `0..n` is the set of numbers from 0 to n.""",
        """
spec mixed
var reply : (0..3)? = none
var leo : 0..3 = 0
action apply():
    leo' = reply
""".replace("(0..3)?", "Offset?").replace("spec mixed\n", "spec mixed\ntype Offset = 0..3\n"),
    ),
    Page(
        "S302", "wrong arguments",
        """A definition, an action or a built-in function has more or fewer arguments than
        parameters, labelled arguments where only positional ones are allowed, a comprehension
        that it does not accept, or a value where its parameter is an operator.  An operator is
        not a value: it can only be an argument of `fold` and of definitions with such a parameter.""",
        """The message gives the number of parameters.  Labels are for the fields of union
        constructors: `Fetch(offset: 1)`.  An operator is `(x) => e`, or the name of a definition
        whose parameters are values.""",
        """
spec arguments
var leo : 0..3 = 0
def capped(n: int, top: int): int = min(n, top)
action grow():
    leo' = capped(leo + 1)
""",
    ),
    Page(
        "S303", "a type that cannot be inferred",
        """Types of local names are inferred from their values.  `{}`, `[]` and `none` are values of
        many types, and the context of this one does not determine its type.""",
        """Use the value where a type is declared: write it into the variable or the argument
        directly, or give it to a definition with a result type.""",
        """
spec untyped
var x : 0..3 = 0
def nothing() = {}
""",
    ),
    Page(
        "S304", "values that have no order",
        """`<`, `<=`, `>` and `>=` compare integers.  The elements of a sort are
        interchangeable names, which makes symmetry sound, so they can only be compared with
        `==`; the same holds for enums, records and options.""",
        """Compare with `==` or `!=`; sets with `subset`.  To order the values of an enum, map them
        to numbers with a definition.""",
        """
spec unordered
sort Replica
var leader : set[Replica] = {}
invariant one: forall a in leader, b in leader: a <= b
""",
    ),
    Page(
        "S305", "fields that do not match",
        """A record or a variant of a union has an additional, missing or misspelt field, or the
        type has no field of the name that is read.""",
        """The message or the hint shows the type.  A record literal gives every field; to change
        some fields of a record write `{ r with field: e }`.""",
        """
spec fields
type Reply = { end: 0..3, hw: 0..3 }
var reply : Reply = { end: 0, high: 0 }
""",
    ),
    Page(
        "S306", "an incomplete match",
        """The arms of a `match` cover each case once: `some` and `none` of an option, the variants
        of a union, the members of an enum.  This way, a variant or member
        that is added later cannot be forgotten.""",
        """Add the missing arms, remove the duplicate, or end with `_: e` for all the rest.""",
        """
spec matching
type Message = Fetch(offset: 0..3) | Ping
var last : Message = Ping
def offset(): int = match last { Fetch f: f.offset }
""",
    ),
    Page(
        "S307", "a variable without bounds",
        """The type of a variable or of an action's parameter is finite once a model has fixed the
        constants: `int` and sequences without a limit are not finite.  Constants and
        definitions may use `int`.""",
        """Use a range `0..N`, an offset `nat upto N` (whose horizon the symbolic engine drops), or
        a limit: `seq[T] upto N`.""",
        """
spec infinite
var leo : int = 0
""",
    ),
    Page(
        "S308", "an enum or union without a name",
        """Enums and unions are identified by name, so that two of them with the same members
        are different types.""",
        """Declare it with `type Name = enum {...}` and use the name.""",
        """
spec anonymous
var state : enum {idle, busy} = idle
""",
    ),
    Page(
        "S309", "a map that is not total",
        """A map has a value for every value of its key type.  A map comprehension runs over the
        whole type with the bound name as its key, and a map literal gives each key once.""",
        """Give the remaining keys a value.  For a partial map make the values options:
        `K -> V?`, with `none` where there is no value.""",
        """
spec partial
sort Replica
var leo : Replica -> 0..3 = { r: 0 for r in {} }
model two: Replica = 2
""".replace("model two: ", "model two:\n    "),
        needs_model=True,
    ),
    Page(
        "S310", "a variable without an initial value",
        """Every variable has an initial value, a set to choose it from, or an `init` that describes
        the initial states.""",
        """Write `= e`, `in S`, or add `init: e`.""",
        """
spec no_start
var leo : 0..3
""",
    ),
    Page(
        "S311", "a type that is too large",
        """Types may use each other within limits: once all names are expanded, a type may have
        at most 2000 parts, and a chain of types, each using the next, at most 50 types.""",
        """Omit parts that the spec does not need; a large table is a map, not a record.""",
        "spec explosion\ntype T0 = bool\n"
        + "".join(f"type T{n} = {{ a: T{n - 1}, b: T{n - 1} }}\n" for n in range(1, 11))
        + "var x : T1 = { a: true, b: true }\n",
        shown="spec explosion\ntype T0 = bool\ntype T1 = { a: T0, b: T0 }\n"
        "type T2 = { a: T1, b: T1 }\n# and so on to T10",
    ),
)  # fmt: skip
