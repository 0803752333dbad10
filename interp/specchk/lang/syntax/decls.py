"""The syntax tree above expressions: statements, declarations, models, scenarios.

Same rules as `lang.syntax.tree`: immutable, spanned, equality ignores spans.
"""

from __future__ import annotations

from specchk.lang.syntax.tree import Accessor, Binder, Bound, CallExpr, Expr, Name, Node, TypeExpr


class Require(Node, frozen=True):
    """`require e`: the action is enabled only if `e` holds."""

    condition: Expr


class Let(Node, frozen=True):
    """`let x = e`, or `let x = e else skip`, which unwraps an option or disables the action."""

    bound: Bound
    value: Expr
    unwraps: bool = False


class Assign(Node, frozen=True):
    """`x' = e`, `x'[k].f = e`."""

    target: Name
    path: tuple[Accessor, ...]
    value: Expr


class AssignIn(Node, frozen=True):
    """`x' in S`: any element of S."""

    target: Name
    path: tuple[Accessor, ...]
    domain: Expr


class Skip(Node, frozen=True):
    """`skip`: no effect."""


class Any(Node, frozen=True):
    """`any m in S: ...`: one successor for each choice."""

    binders: tuple[Binder, ...]
    body: tuple[Stmt, ...]


class Either(Node, frozen=True):
    """`either: ... or: ...`: one successor for each branch."""

    branches: tuple[tuple[Stmt, ...], ...]


class When(Node, frozen=True):
    """`when c: ... else: ...`: conditional effect."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class CallHelper(Node, frozen=True):
    """`advance_hw(r)`: the statements of a helper action."""

    call: CallExpr


Stmt = Require | Let | Assign | AssignIn | Skip | Any | Either | When | CallHelper


class Header(Node, frozen=True):
    """`spec name`."""

    name: str


class Import(Node, frozen=True):
    """`import log`: another file's types, constants and definitions, as `log.x`; `with` sets some of them."""

    path: tuple[str, ...]
    alias: str
    given: tuple[ModelBinding, ...] = ()


class Extends(Node, frozen=True):
    """`extends base`: all declarations of another spec except its models and scenarios."""

    path: tuple[str, ...]


class Sort(Node, frozen=True):
    """`sort Replica`: interchangeable names; their number is fixed by a model or (`given`) an import."""

    name: str
    given: ModelBinding | None = None


class Const(Node, frozen=True):
    """`const MaxOffset : int`, with an optional default `= e`; `given`: the value that an import gives it."""

    name: str
    type: TypeExpr
    default: Expr | None
    given: ModelBinding | None = None


class TypeDecl(Node, frozen=True):
    """`type Offset = nat upto MaxOffset`."""

    name: str
    type: TypeExpr


class Var(Node, frozen=True):
    """`var leo : Replica -> Offset = e`; `in S` is a choice; with neither, `init` decides."""

    name: str
    type: TypeExpr
    initial: Expr | None
    choices: Expr | None


class Init(Node, frozen=True):
    """`init: p`: the initial states are those that satisfy every `init`."""

    lets: tuple[Let, ...]
    conjuncts: tuple[Expr, ...]


class Assume(Node, frozen=True):
    """`assume: p`: the constants of every model satisfy every `assume`."""

    lets: tuple[Let, ...]
    conjuncts: tuple[Expr, ...]


class Param(Node, frozen=True):
    """`f: Replica`."""

    name: str
    type: TypeExpr


class OperatorParam(Node, frozen=True):
    """`ok: (Replica) => bool`: an operator as the parameter of a definition."""

    name: str
    params: tuple[TypeExpr, ...]
    result: TypeExpr


class Def(Node, frozen=True):
    """`def isr_end(): Offset = e`; `lets` precede the value in the block form.

    A recursive one has a `measure`, `def length(s: Row): int decreases s = e`.
    """

    name: str
    params: tuple[Param | OperatorParam, ...]
    returns: TypeExpr | None
    lets: tuple[Let, ...]
    value: Expr
    measure: Expr | None = None


class Action(Node, frozen=True):
    """`action serve_fetch(f: Replica): ...`."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]


class Helper(Node, frozen=True):
    """`helper action advance_hw(r: Replica): ...`: named statements that are not a step by themselves."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]


class Property(Node, frozen=True):
    """`invariant`, `step invariant`, `reachable`, `liveness` or `constraint`; a conjunct list."""

    kind: str
    name: str
    lets: tuple[Let, ...]
    conjuncts: tuple[Expr, ...]


class DeadlockOk(Node, frozen=True):
    """`deadlock ok` or `deadlock ok when e`."""

    when: Expr | None


class FairAction(Node, frozen=True):
    """`send`, or `send(f, _)`: one condition for each f; without names, one for the whole action."""

    action: Name
    params: tuple[str, ...]


class FairEither(Node, frozen=True):
    """`a(r) or b(r, _)`: some of them is taken; with `forall r in S:`, one condition for each r of S."""

    binders: tuple[Binder, ...]
    actions: tuple[FairAction, ...]


class Fair(Node, frozen=True):
    """`fair a, b or c` and `strong fair a`."""

    strong: bool
    actions: tuple[FairAction | FairEither, ...]


class Refines(Node, frozen=True):
    """`refines other as name with { x = e }`."""

    path: tuple[str, ...]
    alias: str
    mapping: tuple[ModelBinding, ...]


class ModelBinding(Node, frozen=True):
    """`Replica = 2` in a model, `x = e` in a refinement."""

    name: Name
    value: Expr


class Selection(Node, frozen=True):
    """`actions a, b`, `properties p, q` or `ignore x, y` in a model; `kind` is the first word."""

    kind: str
    names: tuple[Name, ...]


class Expect(Node, frozen=True):
    """`expect holds`, `expect violates p in 9 steps`, `expect deadlock`, `expect states 5973`, ...

    `kind` is `holds`, `violates`, `deadlock`, `undefined`, `unreachable`, `states`,
    `transitions` or `depth`; `number` is the steps or the count.
    """

    kind: str
    name: Name | None
    number: int | None


class Model(Node, frozen=True):
    """`model small extends base: ...`."""

    name: str
    base: Name | None
    items: tuple[ModelBinding | Selection | Expect, ...]


class TakeStep(Node, frozen=True):
    """`serve_fetch(r2)` in a scenario, with `where e` to pick a branch; `refused` expects none."""

    call: CallExpr
    where: Expr | None
    refused: bool


class Assert(Node, frozen=True):
    """`assert e` in a scenario: true in the state reached (in each of them, if a choice was left open)."""

    condition: Expr


class Scenario(Node, frozen=True):
    """`scenario first_sync on small: ...`."""

    name: str
    model: Name
    steps: tuple[TakeStep | Assert, ...]


class Shown(Node, frozen=True):
    """`log: e`, `mark hw: e` or `label role: e` in a view."""

    name: str
    value: Expr


class Arrow(Node, frozen=True):
    """`arrow send_fetch(f): f -> e`: a step of the action is drawn as a message between lanes."""

    action: str
    params: tuple[str, ...]
    source: Expr
    target: Expr


class View(Node, frozen=True):
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


class Module(Node, frozen=True):
    """One parsed file: its declarations in source order."""

    decls: tuple[Decl, ...]


Named = Sort | Const | TypeDecl | Var | Def | Action | Helper | Property | Model | Scenario
