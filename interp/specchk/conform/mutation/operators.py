"""Generated mutants: small changes such as slips of the hand, in one place each.

    compare     < to <=, <= to <, == to !=, `is` to `is not`, `in` to `not in`, ...
    logic       `and` to `or`, a condition negated, one side of an `and` or `or` left out
    number      +1, -1 (0 becomes 1), `+` to `-`, min to max, True to False
    statement   a statement dropped, a return at its place where a function returns nothing

Ids are `module:function:operator:number`, the number counting that operator's places in the function,
so they are the same everywhere until the function changes.  A place is an expression or statement of
a function; texts, annotations, defaults, decorators and asserts are left alone.

Theory: the "sufficient" operators of Offutt et al. (TOSEM 1996): ABS, ROR, LCR, UOI, AOR, and statement
deletion (Deng, Offutt, Li 2013).  Not here: which lines are worth it (`reach`), running (`mutate`).
"""

from __future__ import annotations

import ast
import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from specchk.conform.mutation.mutants import Mutant, MutantError
from specchk.conform.mutation.patches import Patch, source_of

_FLIPS: Mapping[type[ast.cmpop], type[ast.cmpop]] = MappingProxyType({
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
})  # fmt: skip
_SWAPS: Mapping[str, str] = MappingProxyType({"min": "max", "max": "min", "any": "all", "all": "any"})
_DROPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Delete, ast.Raise)
Change = tuple[str, ast.expr | str]  # operator, what comes instead


def generated(module: str) -> tuple[Mutant, ...]:
    """All mutants of a module, in the order of its text."""
    source = source_of(module).read_text(encoding="utf-8")
    mutants = []
    for function, node in _functions(ast.parse(source), ()):
        numbers: Counter[str] = Counter()
        for place, (operator, new) in _changes(node):
            number = numbers[operator]
            numbers[operator] += 1
            name = f"{module}:{function}:{operator}:{number}"
            patch = _patch(module, source, place, new)
            story = f"line {place.lineno}: `{_line(patch.old)}` becomes `{_line(patch.new)}`"
            mutants.append(Mutant(name, operator, story, (patch,)))
    return tuple(mutants)


def _line(text: str) -> str:
    return " ".join(text.split())


def _functions(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions with their dotted names; inner functions belong to the outer one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield ".".join((*outer, child.name)), child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*outer, child.name))


def _changes(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt | ast.expr, Change]]:
    """Each place of a function with each possible change to it."""
    returns_nothing = isinstance(function.returns, ast.Constant) and function.returns.value is None
    for statement in _statements(function.body):
        yield from ((statement, change) for change in _of_statement(statement, returns_nothing))
        for expression in _expressions(statement):
            yield from ((expression, change) for change in _of_expression(expression))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for inner in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from _statements(inner.body)


def _of_statement(statement: ast.stmt, returns_nothing: bool) -> Iterator[Change]:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    if isinstance(statement, _DROPPED) and not is_text:
        yield "drop", "pass"
        if returns_nothing:
            yield "return", "return"
    is_plain = isinstance(statement, ast.Return) and statement.value is None
    if is_plain or isinstance(statement, ast.Continue | ast.Break):
        yield "drop", "pass"
    if isinstance(statement, ast.Return) and _is_truth(statement.value):
        yield "negate", ast.UnaryOp(ast.Not(), statement.value or ast.Constant(None))


def _is_truth(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of one statement, without those of nested statements."""
    if isinstance(statement, ast.Assert | ast.FunctionDef | ast.Raise | ast.ClassDef):
        return
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation", "targets", "target"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr):
                yield from _within(part)


def _within(node: ast.expr) -> Iterator[ast.expr]:
    # Texts for people: a change in one is no flaw that a gate should see.
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _within(child)
        elif isinstance(child, ast.keyword):
            yield from _within(child.value)
        elif isinstance(child, ast.comprehension):
            for part in (child.iter, *child.ifs):
                yield from _within(part)


def _of_expression(node: ast.expr) -> Iterator[Change]:
    # New nodes around the old parts: the tree itself gives the other mutants, too.
    match node:
        case ast.Compare(left=left, ops=ops, comparators=right):
            for number, op in enumerate(ops):
                flipped = [*ops[:number], _FLIPS[type(op)](), *ops[number + 1 :]]
                yield "compare", ast.Compare(left, flipped, right)
        case ast.BoolOp(op=op, values=values):
            yield "logic", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for number in range(len(values)):
                rest = [value for at, value in enumerate(values) if at != number]
                yield "side", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "negate", operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield "negate", ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield "sign", ast.BinOp(left, ast.Sub() if isinstance(op, ast.Add) else ast.Add(), right)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _SWAPS:
            yield "swap", ast.Call(ast.Name(_SWAPS[name], ast.Load()), args, keywords)
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield "constant", ast.Constant(value + 1)


def _patch(module: str, source: str, place: ast.stmt | ast.expr, new: ast.expr | str) -> Patch:
    begin = _offset(source, place.lineno, place.col_offset)
    end = _offset(source, place.end_lineno or place.lineno, place.end_col_offset or 0)
    if isinstance(new, str):
        text = new
    elif isinstance(place, ast.Return):
        text = f"return {ast.unparse(ast.fix_missing_locations(new))}"
    else:
        # In parentheses: the replacement may bind less tightly than the original.
        text = f"({ast.unparse(ast.fix_missing_locations(new))})"
    return Patch(module, source[begin:end], text, begin)


def _offset(source: str, line: int, column: int) -> int:
    """A place in characters; the syntax tree counts the bytes of UTF-8 in a line."""
    # Not `splitlines`, which also splits at characters that Python does not count as line ends.
    lines = source.split("\n")
    return sum(len(text) + 1 for text in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())


def sampled(mutants: Sequence[Mutant], count: int, seed: int) -> tuple[Mutant, ...]:
    """A sample determined by a seed, in the mutants' order; each mutant is drawn independently."""
    # By a digest of each id: a mutant more or less changes the lot of no other.
    by_lot = sorted(mutants, key=lambda one: hashlib.sha256(f"{seed} {one.id}".encode()).digest())
    picked = {one.id for one in by_lot[:count]}
    return tuple(mutant for mutant in mutants if mutant.id in picked)


def argued(mutants: Iterable[Mutant], path: Path) -> tuple[Mutant, ...]:
    """The mutants, with a file's arguments for their equivalence.

    The file has `[[equivalent]]` tables of `id`, `was` (the text that is changed, so that an argument is
    about the code that it was made for) and `reason`.  `MutantError` for one that fits no mutant.
    """
    every = tuple(mutants)
    if not path.exists():
        return every
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
        reasons = {table["id"]: (table["was"], table["reason"]) for table in tables}
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise MutantError(f"{path}: {error}") from error
    known = {mutant.id: _line(mutant.patches[0].old) for mutant in every}
    for name, (was, _) in reasons.items():
        if known.get(name) != was:
            raise MutantError(f"{path}: {name} changes `{known.get(name, 'nothing')}`, not `{was}`")
    return tuple(replace(m, equivalent=reasons[m.id][1]) if m.id in reasons else m for m in every)
