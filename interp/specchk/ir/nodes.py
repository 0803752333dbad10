"""The typed core: a closed set of expression and statement nodes.

Every engine consumes these nodes and nothing else of the language.  Expressions carry their type
and the span of the source they come from.  `and`, `or`, `implies`, `if`, quantifiers and `Case`
are nodes of their own because they do not evaluate all of their parts; every `Op` is strict.
Definitions are inlined, constants are values, names are slots.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar

from msgspec import Struct

from specchk.identity import Identified
from specchk.ir.ops import Op
from specchk.ir.types import Type
from specchk.lang.text.source import Span

Value = int | tuple["Value", ...]  # a bool is an int; `meaning.values` has the encoding


class Node(Identified, frozen=True):
    """An expression of the core: its type and the source it comes from."""

    type: Type
    span: Span


class Const(Node, frozen=True):
    """A value of the type.

    `ends_at_horizon`: the set of all values of a type that has a horizon.  In a state without bounds it
    would go on, so it is never computed with beforehand, and what depends on it is bounded.
    """

    value: Value
    ends_at_horizon: bool = False


class Var(Node, frozen=True):
    """A state variable, by position, before the step or (`primed`) after it; the name is only for display."""

    incidental: ClassVar = frozenset({"span", "name"})
    slot: int
    primed: bool
    name: str = ""


class Local(Node, frozen=True):
    """A bound name; slots are unique within one action or property."""

    incidental: ClassVar = frozenset({"span", "name"})
    slot: int
    name: str


class Apply(Node, frozen=True):
    """A strict operator applied to its arguments, evaluated left to right."""

    op: Op
    args: tuple[Expr, ...]
    data: int = 0


class And(Node, frozen=True):
    """True if all parts are; stops at the first false one."""

    parts: tuple[Expr, ...]


class Or(Node, frozen=True):
    """True if at least one part is; stops at the first true one."""

    parts: tuple[Expr, ...]


class Implies(Node, frozen=True):
    """Implication; `right` is evaluated only if `left` is true."""

    left: Expr
    right: Expr


class If(Node, frozen=True):
    """A conditional; only one branch is evaluated."""

    condition: Expr
    then: Expr
    orelse: Expr


class Quantifier(Node, frozen=True):
    """`forall` (`every`) or `exists` over the items of a set, ascending, stopping early."""

    every: bool
    local: Local
    domain: Expr
    body: Expr


class Choose(Node, frozen=True):
    """The least item of the set for which the body holds; undefined if there is none.

    `unique`: no other item does, so that elements of sorts may be renamed: a key is looked up.
    """

    local: Local
    domain: Expr
    body: Expr
    unique: bool = False

    @property
    def reason(self) -> str:
        """The reason for being undefined, if there is one."""
        if self.unique:
            return "the map has no such key"
        return "`choose` has no value that satisfies its condition"


class Gather(Enum):
    """The result that `Collect` builds from its items."""

    SET = auto()
    SUM = auto()
    MIN = auto()  # undefined when there are none
    MAX = auto()


class Collect(Node, frozen=True):
    """`{ body for x in S, y in T if condition }` and the folds of the same form."""

    gather: Gather
    binders: tuple[tuple[Local, Expr], ...]
    condition: Expr | None
    body: Expr


class MapOf(Node, frozen=True):
    """`{ k: body for k in K }`: the total map over the key type."""

    local: Local
    body: Expr


class Let(Node, frozen=True):
    """`value` is evaluated once, then the body."""

    local: Local
    value: Expr
    body: Expr


class Case(Node, frozen=True):
    """A match: the arm of the scrutinee's variant (options: 0 none, 1 some), else the default."""

    scrutinee: Expr
    arms: tuple[tuple[int, Local | None, Expr], ...]
    default: Expr | None


class Narrow(Node, frozen=True):
    """The value of the body in `type`, which has the same shape.

    Undefined outside its ranges and limits, but above a horizon the step is not taken.
    """

    body: Expr


class Cover(Node, frozen=True):
    """The value of the body; its evaluation is counted at a coverage point."""

    point: int
    body: Expr


Expr = (
    Const | Var | Local | Apply | And | Or | Implies | If | Quantifier | Choose | Collect | MapOf | Let
    | Case | Narrow | Cover
)  # fmt: skip


class Guard(Struct, frozen=True):
    """The rest of the block runs only if the condition holds."""

    condition: Expr


class Bind(Struct, frozen=True):
    """`let x = e` for the rest of the block."""

    local: Local
    value: Expr


class Unwrap(Struct, frozen=True):
    """`let x = e else skip`: the rest of the block runs only if the option is some."""

    local: Local
    value: Expr


class PathStep(Struct, frozen=True):
    """One accessor of an assignment's path: a record field, or a key of a map or sequence."""

    field: int | None
    key: Expr | None
    container: Type


class Assign(Identified, frozen=True):
    """`x'path = value`; the other parts of the variable are unchanged."""

    slot: int
    path: tuple[PathStep, ...]
    value: Expr
    span: Span


class Choice(Struct, frozen=True):
    """`any x in S:` - the block runs once for each item, ascending, then the rest after it."""

    local: Local
    domain: Expr
    body: Block


class Either(Struct, frozen=True):
    """Each branch is a separate alternative; `points` are the coverage points of the branches."""

    branches: tuple[Block, ...]
    points: tuple[int, ...]


class When(Struct, frozen=True):
    """The then block or the else block, depending on the condition; `points` as in `Either`."""

    condition: Expr
    then: Block
    orelse: Block
    points: tuple[int, int]


Stmt = Guard | Bind | Unwrap | Assign | Choice | Either | When
Block = tuple[Stmt, ...]
