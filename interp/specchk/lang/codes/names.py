"""S2xx: the meaning of names."""

from __future__ import annotations

from specchk.lang.codes.page import Page

PAGES = (
    Page(
        "S201", "an unknown name",
        """No such name is declared in the file, in the files that it extends, or in an enclosing
        scope.  Declarations may be in any order, so their position is not the reason.""",
        """The hint names the nearest known name, if there is a similar one.  Names of an imported
        file are prefixed with its name: `log.truncate`.  The elements of a sort (`r1`, `r2`) are
        known only in models and scenarios.""",
        """
spec typo
const MaxOffset : int
type Offset = nat upto MaxOffset
var leo : Ofset = 0
""",
    ),
    Page(
        "S202", "a name declared twice",
        """A name means one thing in a whole spec: sorts, constants, types, enum members, union
        variants, variables, definitions, actions and properties share one space.  Models and
        scenarios have a separate space each.""",
        """Rename one of them; the note shows the place of the other.""",
        """
spec twice
var leo : 0..3 = 0
def leo(): int = 3
""",
    ),
    Page(
        "S203", "a name of another kind",
        """The name is declared, but is not of the kind needed here: an action used in an
        expression, a constant that is assigned, a definition without its arguments, or a variable
        where a type is expected.""",
        """The message gives the kind of the name, and the note its declaration.  Definitions are
        called with parentheses even without arguments, maps are indexed with brackets, and
        actions happen only as steps.""",
        """
spec kinds
var leo : 0..3 = 0
def top(): int = 3
invariant below: leo <= top
""",
    ),
    Page(
        "S205", "no file is imported under this name",
        """`log.truncate` is the `truncate` of the file imported as `log`, but this file has no
        `import` with that name.""",
        """Add `import log`, or correct the name before the dot.  Names from `extends` are
        written without a prefix.""",
        """
spec no_import
var leo : 0..3 = 0
action cut():
    leo' = log.truncate(leo)
""",
    ),
    Page(
        "S206", "recursion without a measure",
        """A definition that uses itself, directly or through others, must state what decreases with
        each call, so that every evaluation ends and every engine can handle it.  A helper action
        may not use itself,
        and whether an action is enabled may not depend on itself.""",
        """Add the measure, `decreases n`, and the type of the result to one definition of the cycle. Or
        iterate
        over a set or a sequence: a quantifier, a comprehension, `min`, `max`, `sum`, `choose`, or `fold`.
        A loop of steps is an action that is enabled while there is something to do.""",
        """
spec recursive
def factorial(n: int): int = if n == 0 then 1 else n * factorial(n - 1)
""",
    ),
    Page(
        "S207", "a type that contains itself",
        """A recursive type has infinitely many values, but the type of a variable must be finite.""",
        """Refer to the other part by an index: a tree is a map from nodes to parents, a linked list
        is a sequence.""",
        """
spec endless
type Node = { value: 0..3, next: Node? }
""",
    ),
    Page(
        "S208", "a name that shadows another",
        """A parameter, a bound name or a `let` may not have the name of a variable, a constant or
        another name bound around it: the name would be ambiguous to a reader.  For the same reason,
        an element of a sort may not have the name of another value.""",
        """Choose another name for the inner one.""",
        """
spec hiding
sort Replica
var leo : Replica -> 0..3 = { r: 0 for r in Replica }
invariant same: forall leo in Replica: leo == leo
""",
    ),
)  # fmt: skip
