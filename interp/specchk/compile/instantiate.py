"""From a checked spec and a model to a program that engines can run: the passes, in order.

1. `models`: the model's constants, with `--set` and `--property` applied.
2. `lower`: the spec under these constants becomes a program (`ground` gives types and constants their
   values, `store` puts range checks where values become a variable's).
3. `simplify`: parts that the constants determine are evaluated once.

`verify` runs after each pass, so that a wrong rewrite stops where it was made.  `specchk run` leaves that to
the search, which has time for it while it waits for a compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from specchk.compile.ground import fold
from specchk.compile.lower import Lowering, ground, lower
from specchk.compile.simplify import simplify
from specchk.ir.ignored import check_ignored
from specchk.ir.nodes import Expr
from specchk.ir.program import Program
from specchk.ir.types import Map, cardinality
from specchk.ir.verify import verify
from specchk.lang.check.model_rules import claims
from specchk.lang.check.models import FixedModel
from specchk.lang.frontend import CheckedSpec, check_expression, choose_model
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import Diagnostic, SpecError, nearest, refusal
from specchk.lang.text.source import Source, Span
from specchk.meaning import initial
from specchk.meaning.undefined import Undefined

MAX_TRIES = 1 << 22
MAX_SEARCHED = 1 << 19  # values tried before the number of initial states is known


class Instance(Struct, frozen=True):
    """A program with its model and its lowering, for further expressions; `lowered` if it is not verified."""

    program: Program
    model: FixedModel
    lowering: Lowering
    lowered: Program | None = None

    def expression(self, text: str) -> tuple[Expr, int]:
        """The core of a lone expression over one state, and its number of locals; raises `SpecError`."""
        node, _ = check_expression(self.lowering.ground.checked, self.model, text)
        return self.lowering.expression(node)


def instantiate(
    checked: CheckedSpec, model: str | None = None, overrides: Mapping[str, str] | None = None,
    properties: Sequence[str] = (), *, is_verified: bool = True,
) -> Instance:  # fmt: skip
    """The program of a model (the first by default) with `--set` and `--property` applied.

    Unless it `is_verified`, the search verifies it (`Options.lowered`).
    """
    fixed = choose_model(checked, model, overrides or {})
    if properties:
        _select(checked, fixed, properties)
    return _instance(checked, fixed, is_verified=is_verified)


def instantiate_steps(checked: CheckedSpec, model: str | None, overrides: Mapping[str, str]) -> Instance:
    """A model's program with no properties except its invariants, for callers that take single steps."""
    fixed = choose_model(checked, model, overrides)
    chosen = None if fixed.properties is None else {name.text for name in fixed.properties}
    fixed.properties = tuple(
        tree.Name(prop.span, name)
        for name, prop in checked.spec.properties.items()
        if prop.kind == "invariant" and (chosen is None or name in chosen)
    )
    return _instance(checked, fixed)


def _instance(checked: CheckedSpec, fixed: FixedModel, *, is_verified: bool = True) -> Instance:
    try:
        lowered, lowering = lower(checked, fixed)
        verified = verify(lowered) if is_verified else None
        program = simplify(lowered)
        if verified is not None:
            verify(program, verified)
    except RecursionError:  # each definition is shallow enough, but not put into each other
        span = fixed.decl.span.word(fixed.name) if fixed.decl else Span(checked.spec.source, 0, 0)
        message = "the definitions or constants that this model uses nest too deeply"
        raise refusal("S104", span, message, "reduce their nesting") from None
    _bounded(program)
    check_ignored(program)
    return Instance(program, fixed, lowering, None if is_verified else lowered)


def survey(checked: CheckedSpec, model: str) -> None:
    """Check what a model determines, lowering no more than that; raises `SpecError`."""
    fixed = choose_model(checked, model, {})
    ground(checked, fixed)
    if fixed.ignored:  # whether a constraint reads an ignored variable shows in the program
        _instance(checked, fixed)


def _bounded(program: Program) -> None:
    """Reject a model with more choices of initial values than can be enumerated."""
    tries = 1
    for start, variable in zip(program.starts, program.variables, strict=True):
        if start.choices is not None:
            chosen = fold(start.choices)
            # A set without a value counts as one here: the search reports it, with its place.
            tries *= len(chosen) if isinstance(chosen, tuple) else 1
        elif start.value is None:
            tries *= cardinality(variable.type)
        if tries > MAX_TRIES:
            if _searchable(program):
                return
            message = f"{tries} initial states (through this variable) are too many to enumerate"
            hint = f"give `{variable.name}` a value (`= e`) or fewer choices (`in e`)"
            if isinstance(variable.type, Map):
                hint += f"; for each key, `init: forall k in K: {variable.name}[k] in S`"
            raise refusal("S510", variable.span, message, hint)


def _searchable(program: Program) -> bool:
    """Whether the conjuncts of `init` leave few enough values to enumerate."""
    try:
        return initial.tries(program, MAX_SEARCHED) <= MAX_SEARCHED
    except Undefined:  # reported by the search, with its place
        return True


def _select(checked: CheckedSpec, fixed: FixedModel, properties: Sequence[str]) -> None:
    known = claims(checked.spec)
    unknown = [name for name in properties if name not in known]
    if unknown:
        raise SpecError(
            [
                Diagnostic(
                    "S201", f"there is no property `{name}`", hint=nearest(name, known), path="--property"
                )
                for name in unknown
            ]
        )
    span = Span(Source("--property", ""), 0, 0)
    fixed.properties = tuple(tree.Name(span, name) for name in properties)
