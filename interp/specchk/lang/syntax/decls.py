"""The syntax tree above expressions: statements, declarations, models, scenarios.

Same rules as `lang.syntax.tree`: immutable, spanned, equality ignores spans.
"""

from __future__ import annotations

from specchk.deferred import dataclass
from specchk.lang.syntax.bound import Bound
from specchk.lang.syntax.tree import Accessor, Binder, CallExpr, Expr, Name, Node, TypeExpr


@dataclass(frozen=True, slots=True)
class Require(Node):
    """`require e`: the action is enabled only if `e` holds."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let x = e`, or `let x = e else skip`, which unwraps an option or disables the action."""

    bound: Bound
    value: Expr
    unwraps: bool = False


@dataclass(frozen=True, slots=True)
class Assign(Node):
    """`x' = e`, `x'[k].f = e`."""

    target: Name
    path: tuple[Accessor, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class AssignIn(Node):
    """`x' in S`: any element of S."""

    target: Name
    path: tuple[Accessor, ...]
    domain: Expr


@dataclass(frozen=True, slots=True)
class Skip(Node):
    """`skip`: no effect."""


@dataclass(frozen=True, slots=True)
class Any(Node):
    """`any m in S: ...`: one successor for each choice."""

    binders: tuple[Binder, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Either(Node):
    """`either: ... or: ...`: one successor for each branch."""

    branches: tuple[tuple[Stmt, ...], ...]


@dataclass(frozen=True, slots=True)
class When(Node):
    """`when c: ... else: ...`: conditional effect."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class CallHelper(Node):
    """`advance_hw(r)`: the statements of a helper action."""

    call: CallExpr


Stmt = Require | Let | Assign | AssignIn | Skip | Any | Either | When | CallHelper


@dataclass(frozen=True, slots=True)
class Header(Node):
    """`spec name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Import(Node):
    """`import log`: another file's types, constants and definitions, as `log.x`; `with` sets some of them."""

    path: tuple[str, ...]
    alias: str
    given: tuple[ModelBinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Extends(Node):
    """`extends base`: all declarations of another spec except its models and scenarios."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sort(Node):
    """`sort Replica`: interchangeable names; their number is fixed by a model or (`given`) an import."""

    name: str
    given: ModelBinding | None = None


@dataclass(frozen=True, slots=True)
class Const(Node):
    """`const MaxOffset : int`, with an optional default `= e`; `given`: the value that an import gives it."""

    name: str
    type: TypeExpr
    default: Expr | None
    given: ModelBinding | None = None


@dataclass(frozen=True, slots=True)
class TypeDecl(Node):
    """`type Offset = nat upto MaxOffset`."""

    name: str
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class Var(Node):
    """`var leo : Replica -> Offset = e`; `in S` is a choice; with neither, `init` decides."""

    name: str
    type: TypeExpr
    initial: Expr | None
    choices: Expr | None


@dataclass(frozen=True, slots=True)
class Init(Node):
    """`init: p`: the initial states are those that satisfy every `init`."""

    conjuncts: tuple[Expr, ...]
    lets: tuple[Let, ...]


@dataclass(frozen=True, slots=True)
class Assume(Node):
    """`assume: p`: the constants of every model satisfy every `assume`."""

    conjuncts: tuple[Expr, ...]
    lets: tuple[Let, ...]


@dataclass(frozen=True, slots=True)
class Param(Node):
    """`f: Replica`."""

    name: str
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class OperatorParam(Node):
    """`ok: (Replica) => bool`: an operator as the parameter of a definition."""

    name: str
    params: tuple[TypeExpr, ...]
    result: TypeExpr


@dataclass(frozen=True, slots=True)
class Def(Node):
    """`def isr_end(): Offset = e`; `lets` precede the value in the block form.

    A recursive one has a `measure`, `def length(s: Row): int decreases s = e`.
    """

    name: str
    params: tuple[Param | OperatorParam, ...]
    returns: TypeExpr | None
    lets: tuple[Let, ...]
    value: Expr
    measure: Expr | None = None


@dataclass(frozen=True, slots=True)
class Action(Node):
    """`action serve_fetch(f: Replica): ...`."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Helper(Node):
    """`helper action advance_hw(r: Replica): ...`: named statements that are not a step by themselves."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Property(Node):
    """`invariant`, `step invariant`, `reachable`, `liveness` or `constraint`; a conjunct list."""

    kind: str
    name: str
    lets: tuple[Let, ...]
    conjuncts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class DeadlockOk(Node):
    """`deadlock ok` or `deadlock ok when e`."""

    when: Expr | None


@dataclass(frozen=True, slots=True)
class FairAction(Node):
    """`send`, or `send(f, _)`: one condition for each f; without names, one for the whole action."""

    action: Name
    params: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fair(Node):
    """`fair a, b` and `strong fair a`."""

    strong: bool
    actions: tuple[FairAction, ...]


@dataclass(frozen=True, slots=True)
class Refines(Node):
    """`refines other as name with { x = e }`."""

    path: tuple[str, ...]
    alias: str
    mapping: tuple[ModelBinding, ...]


@dataclass(frozen=True, slots=True)
class ModelBinding(Node):
    """`Replica = 2` in a model, `x = e` in a refinement."""

    name: Name
    value: Expr


@dataclass(frozen=True, slots=True)
class Selection(Node):
    """`actions a, b`, `properties p, q` or `ignore x, y` in a model; `kind` is the first word."""

    kind: str
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Expect(Node):
    """`expect holds`, `expect violates p in 9 steps`, `expect deadlock`, `expect states 5973`, ...

    `kind` is `holds`, `violates`, `deadlock`, `undefined`, `unreachable`, `states`,
    `transitions` or `depth`; `number` is the steps or the count.
    """

    kind: str
    name: Name | None
    number: int | None


@dataclass(frozen=True, slots=True)
class Model(Node):
    """`model small extends base: ...`."""

    name: str
    base: Name | None
    items: tuple[ModelBinding | Selection | Expect, ...]


@dataclass(frozen=True, slots=True)
class TakeStep(Node):
    """`serve_fetch(r2)` in a scenario, with `where e` to pick a branch; `refused` expects none."""

    call: CallExpr
    where: Expr | None
    refused: bool


@dataclass(frozen=True, slots=True)
class Assert(Node):
    """`assert e` in a scenario: true in the state reached (in each of them, if a choice was left open)."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Scenario(Node):
    """`scenario first_sync on small: ...`."""

    name: str
    model: Name
    steps: tuple[TakeStep | Assert, ...]


@dataclass(frozen=True, slots=True)
class Shown(Node):
    """`log: e`, `mark hw: e` or `label role: e` in a view."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Arrow(Node):
    """`arrow send_fetch(f): f -> e`: a step of the action is drawn as a message between lanes."""

    action: str
    params: tuple[str, ...]
    source: Expr
    target: Expr


@dataclass(frozen=True, slots=True)
class View(Node):
    """`view b in Broker: ...`: how pictures show the states of a spec."""

    lane: str
    sort: Name
    logs: tuple[Shown, ...]
    marks: tuple[Shown, ...]
    labels: tuple[Shown, ...]
    hidden: tuple[Name, ...]
    arrows: tuple[Arrow, ...]


Decl = (
    Header | Import | Extends | Sort | Const | Assume | TypeDecl | Var | Init | Def | Action | Helper
    | Property | DeadlockOk | Fair | Refines | Model | Scenario | View
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module(Node):
    """One parsed file: its declarations in source order."""

    decls: tuple[Decl, ...]


Named = Sort | Const | TypeDecl | Var | Def | Action | Helper | Property | Model | Scenario
