"""Uses of offsets that are not allowed in a spec if they are unbounded.

Unbounded offsets can be compared, copied and computed with as far as that is linear; they cannot be an
index or a map's key, be listed one by one, or be multiplied with each other.  `check` finds all such
uses of a program by the types of its expressions, before anything is searched.
"""

from __future__ import annotations

from collections.abc import Iterator

from specchk.ir.ignored import ignoring
from specchk.ir.nodes import Apply, Choice, Choose, Collect, Const, Expr, MapOf, Quantifier
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import Bag, Int, Map, Set, Type, components, has_horizon, has_horizon_keys
from specchk.ir.walk import assignments, expressions, statements
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.lang.text.source import Span

INDEXING = frozenset({Op.MAP_GET, Op.MAP_SET, Op.SEQ_GET, Op.SEQ_SET, Op.PREFIX, Op.SUFFIX})  # by the second
HINT = "give it a bounded type, or use an engine that enumerates: --engine native"

_REFINEMENT = "the symbolic engine checks no refinement; --prove proves the steps of one by induction"
ENUMERATE = "run them with --engine native, or select other properties with --property"


def check(program: Program) -> None:
    """Raise `SpecError` with all uses that are not allowed for unbounded offsets."""
    # A definition that is used twice is inlined twice; its misuse is one mistake.
    uses = dict.fromkeys([*_uses(program), *_variables(program)])
    found = [Diagnostic("S701", reason, span, HINT) for reason, span in uses]
    # Zones have no loops of states: a loop of zones may be a path on which offsets grow forever.
    temporal = "the symbolic engine does not check temporal properties"
    found += [Diagnostic("S702", temporal, prop.span, ENUMERATE) for prop in program.temporal]
    found += [Diagnostic("S702", _REFINEMENT, prop.span, ENUMERATE) for prop in program.refinements]
    found += ignoring(program, "the symbolic engine keeps")
    if found:
        raise SpecError(found)


def _uses(program: Program) -> Iterator[tuple[str, Span]]:
    stmts = [stmt for action in program.actions for stmt in statements(action.body)]
    chosen = [stmt.domain for stmt in stmts if isinstance(stmt, Choice)]
    # `any n in Offset` chooses one open number and lists nothing; everywhere else such a set would be listed.
    # So the comparison is by identity: an equal set elsewhere is refused.
    allowed = {id(domain) for domain in chosen if not _is_ordered(domain.type)}
    for expr in expressions(program):
        if id(expr) not in allowed and (reason := _wrong(expr)):
            yield reason, expr.span
    for action in program.actions:
        for param in action.params:
            if orders_offsets(param.type) or has_horizon_keys(param.type):
                yield f"`{param.name}` is a set, a bag or a map of offsets", param.span
        for stmt in assignments(action.body):
            for step in stmt.path:
                if step.key is not None and _is_offset(step.key.type):
                    yield "an offset is the index of what is assigned", stmt.span


def _wrong(expr: Expr) -> str:
    match expr:
        case Const(ends_at_horizon=True):
            return "all offsets are listed or computed with"
        case Apply(op=op, args=args) if op in INDEXING and _is_offset(args[1].type):
            return "an offset is used as an index"
        case Apply(op=Op.MUL, args=(a, b)) if _is_offset(a.type) and _is_offset(b.type):
            return "two offsets are multiplied"
        case Apply(op=Op.DIV | Op.MOD, args=(_, b)) if _is_offset(b.type):
            return "a number is divided by an offset"
        case Apply(op=Op.SUBSETS, args=(items,)) if has_horizon(items.type):
            return "the subsets of a set of offsets are listed"
        case Apply(op=Op.MAPS, args=(keys, _)) if has_horizon(keys.type):
            return "the maps from a set of offsets are listed"
        case MapOf(type=Map(key=key)) if has_horizon(key):
            return "a map has offsets as its keys"
        # A range of offsets has no known length, even between two known ends.
        case Quantifier() | Choose() if _is_range(expr.domain):
            return "offsets are listed one by one"
        case Collect() if any(_is_range(domain) for _, domain in expr.binders):
            return "offsets are listed one by one"
    return ""


def _is_ordered(kind: Type) -> bool:
    """Whether choosing a value of a type requires the order of the offsets in it."""
    item = kind.item if isinstance(kind, Set) else kind
    return orders_offsets(item) or has_horizon_keys(item)


def _is_range(domain: Expr) -> bool:
    """Whether a domain is a range of offsets, which may be long."""
    return isinstance(domain, Apply) and domain.op is Op.RANGE and has_horizon(domain.type)


def _variables(program: Program) -> Iterator[tuple[str, Span]]:
    for constant in program.constants:
        # Even if it is not used: a part that was computed beforehand, or a comparison of the whole map, no
        # longer occurs in an expression.  The model gives it values only up to the horizon.
        if has_horizon_keys(constant.type):
            yield f"`{constant.name}` is a map with offsets as its keys", constant.span
    for variable, start in zip(program.variables, program.starts, strict=True):
        if has_horizon_keys(variable.type):
            yield f"`{variable.name}` is a map with offsets as its keys", variable.span
        if has_horizon(variable.type) and start.value is None:
            reason = f"`{variable.name}` has offsets and no initial value, so all of them would be listed"
            yield reason, variable.span


def _is_offset(kind: Type) -> bool:
    return isinstance(kind, Int) and kind.horizon


def orders_offsets(kind: Type) -> bool:
    """Whether a value stores offsets in the order of their size, as sets and bags do."""
    return any(isinstance(part, Set | Bag) and has_horizon(part.item) for part in components(kind))
