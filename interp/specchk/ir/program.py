"""A program of the core: a spec instantiated with the constants of one model.

This is what engines check.  All collections are tuples in declaration order; positions are
identities: `Var.slot` is a position in `variables`, `Cover.point` one in `points`.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from specchk.identity import Identified
from specchk.ir.nodes import Block, Const, Expr, Local, Value
from specchk.ir.types import BOOL, Sort, Type
from specchk.lang.text.source import Source, Span


class Variable(Identified, frozen=True):
    """A state variable."""

    name: str
    type: Type
    span: Span


class Start(Struct, frozen=True):
    """How a variable starts: with `value`, with any of `choices`, or (with neither) as `init` requires."""

    value: Expr | None
    choices: Expr | None


class Action(Identified, frozen=True):
    """An action: its parameters range over all values of their types; then its block runs."""

    name: str
    params: tuple[Local, ...]
    body: Block
    locals: int  # slots in use
    point: int
    span: Span


class Property(Identified, frozen=True):
    """A named predicate: `invariant`, `step invariant`, `refinement`, `reachable` or `constraint`."""

    kind: str
    name: str
    body: Expr
    locals: int
    span: Span


class Point(Identified, frozen=True):
    """A place whose execution is counted: an action, a branch, or a part of a property.

    `kind` is `action`, `branch`, `implication` (its right side), `forall` (its body) or `refinement` (the
    steps of the other spec); `owner` the first action or property that contains it.
    """

    kind: str
    owner: str
    label: str
    span: Span


class Refinement(Property, frozen=True):
    """The claim that a program refines another: every step is a step of the other or leaves it unchanged.

    `images` are the values of the other's variables in a state.  `body` is the claim on steps, a predicate of
    two states, `initial` that on the states in which a behaviour begins.  `abstract` is the other program, in
    which numbers have no ranges: a step out of these leads to no image.  Its fairness is claimed, too.
    `point` counts the steps that change an image.
    """

    images: tuple[Expr, ...]
    initial: Property
    abstract: Program
    point: int


class Form(Enum):
    """The supported forms of temporal formulas; the value is the name in a report."""

    LEADS_TO = "leadsto"
    EVENTUALLY = "eventually"
    ALWAYS_EVENTUALLY = "always eventually"
    EVENTUALLY_ALWAYS = "eventually always"


class Clause(Identified, frozen=True):
    """One temporal formula: `trigger leadsto goal`; the other forms have no trigger.

    `bindings` are the names that a `forall` around it bound, with their values.
    """

    form: Form
    trigger: Property | None
    goal: Property
    bindings: tuple[tuple[str, str], ...]
    span: Span


class Liveness(Identified, frozen=True):
    """A temporal property: all of its clauses must hold."""

    name: str
    clauses: tuple[Clause, ...]
    span: Span


class Fairness(Identified, frozen=True):
    """Weak or strong fairness of some actions, each with the positions of the parameters that it fixes.

    There is one condition for each row: that an instance of one of the actions is taken whose parameters have
    the row's values, of which there is a tuple for each action.
    """

    actions: tuple[tuple[int, tuple[int, ...]], ...]
    strong: bool
    rows: tuple[tuple[tuple[Value, ...], ...], ...]
    span: Span


class Constant(Identified, frozen=True):
    """A constant and its value in the model, which may be the one of its declaration."""

    incidental: ClassVar = frozenset({"span", "is_default"})
    name: str
    type: Type
    value: Value
    span: Span
    is_default: bool = False


class ElementFold(Identified, frozen=True):
    """A fold over a set of elements of a sort, in an action or a property."""

    sort: str
    owner: str
    span: Span


class Program(Identified, frozen=True):
    """A spec under one model."""

    incidental: ClassVar = frozenset({"ignored_at"})
    spec: str
    path: str
    model: str
    sorts: tuple[Sort, ...]
    constants: tuple[Constant, ...]
    variables: tuple[Variable, ...]
    starts: tuple[Start, ...]
    inits: tuple[Property, ...]
    actions: tuple[Action, ...]
    invariants: tuple[Property, ...]
    step_invariants: tuple[Property, ...]
    witnesses: tuple[Property, ...]
    constraints: tuple[Property, ...]
    deadlock_ok: Property | None
    points: tuple[Point, ...]
    horizons: tuple[str, ...]  # "MaxOffset=3", for the verdict line
    left_out: tuple[str, ...]  # properties the model does not select
    liveness: tuple[Liveness, ...] = ()
    fairness: tuple[Fairness, ...] = ()  # none where no temporal property is selected
    left_out_actions: tuple[str, ...] = ()  # actions the model does not select
    folds: tuple[ElementFold, ...] = ()
    # Variables, by position: of states that differ in these only, the first is searched.
    ignored: tuple[int, ...] = ()
    ignored_at: Span | None = None

    @property
    def refinements(self) -> tuple[Refinement, ...]:
        """The step invariants that are refinement claims."""
        return tuple([prop for prop in self.step_invariants if isinstance(prop, Refinement)])

    @property
    def temporal(self) -> tuple[Liveness | Refinement, ...]:
        """The properties of infinite behaviours, including refinements of fair programs."""
        return (*self.liveness, *[prop for prop in self.refinements if prop.abstract.fairness])

    @property
    def ignored_names(self) -> str:
        """The names of the ignored variables, as listed in a model."""
        return ", ".join(self.variables[slot].name for slot in self.ignored)


class Same:
    """A program as a key for cached facts: comparing two would read both completely."""

    __slots__ = ("program",)

    def __init__(self, program: Program) -> None:
        self.program = program

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.program is other.program

    def __hash__(self) -> int:
        return id(self.program)


def nowhere(program: Program) -> Span:
    """A place for a node that does not occur in a spec's text: the beginning of its file."""
    return Span(Source(program.path, ""), 0, 0)


def any_end(program: Program) -> Property:
    """A `deadlock ok` that allows every end."""
    span = nowhere(program)
    return Property("deadlock ok", "deadlock", Const(BOOL, span, True), 0, span)


def without_ends(program: Program) -> Program:
    """The program without witnesses and deadlocks, which a proof by induction does not cover."""
    return replace(program, witnesses=(), deadlock_ok=any_end(program))


def allows_any_end(program: Program) -> bool:
    """Whether no state of the program can be a deadlock, because `deadlock ok` is plainly true."""
    fine = program.deadlock_ok
    return fine is not None and isinstance(fine.body, Const) and bool(fine.body.value)


def setting(program: Program) -> str:
    """The sort elements, constants, constraints and actions that a model fixes, as text."""
    about = (
        [(sort.name, sort.members) for sort in program.sorts],
        [(one.name, one.value) for one in program.constants],
        [one.name for one in program.constraints],
        # Those that it omits, if any: a model with all actions has the text that it had.
        *([program.left_out_actions] if program.left_out_actions else []),
        *([("ignore", program.ignored)] if program.ignored else []),
    )
    return repr(about)
