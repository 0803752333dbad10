"""Types of calls: definitions, built-in functions, constructors."""

from __future__ import annotations

from specchk.lang.check.builtins import BUILTINS
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.lambdas import check_operator, check_operator_call
from specchk.lang.check.names import foreign_hint, no_import
from specchk.lang.check.spec import Ref, Spec
from specchk.lang.check.types import UNKNOWN, Record, Type, Union, show
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import counted, nearest


def check_call(checker: Checker, node: tree.CallExpr, context: Context, expected: Type | None) -> Type:
    """A definition, built-in or constructor applied to arguments."""
    home = context.spec.lookup(node.callee.qualifier)
    name = node.callee.text
    if node.callee.qualifier is None and name in context.operators:
        return check_operator_call(checker, node, context)
    if home is not None and name in home.variants:
        return _construct(checker, node, home, context)
    if home is not None and name in home.defs and home.has_definitions_for(context.spec):
        return _apply(checker, node, home, context)
    # After the spec's own definitions, which may have the same name: a built-in function that is added to the
    # language later then changes no spec.
    if node.callee.qualifier is None and name in BUILTINS:
        return _builtin(checker, node, context, expected)
    for arg in node.args:
        checker.check(arg.value, context)
    _not_callable(checker, node, home, context)
    return UNKNOWN


def _not_callable(checker: Checker, node: tree.CallExpr, home: Spec | None, context: Context) -> None:
    name = node.callee.text
    if home is None:
        no_import(checker, node.callee, context)
    elif name in home.declared or name in context.locals:
        tables = (
            (home.actions, "an action", f"whether it is enabled is `enabled({name}(...))`"),
            (home.helpers, "a helper action", "its call is a statement of an action, on a line of its own"),
            (home.defs, "a definition of the refined spec", None),
            (home.variables, "not a definition", "maps are indexed with brackets: `m[k]`"),
        )
        kinds = [(what, hint) for table, what, hint in tables if name in table]
        what, hint = kinds[0] if kinds else ("not a definition", None)
        message = f"`{name}` is {what}, it cannot be called in an expression"
        checker.report.add("S203", node.callee.span, message, hint)
    else:
        known = [*home.defs, *home.variants, *BUILTINS]
        hint = home.qualified_hint(node.callee) or foreign_hint(name) or nearest(name, known)
        checker.report.add("S201", node.callee.span, f"no definition `{name}` is known here", hint)


def _builtin(checker: Checker, node: tree.CallExpr, context: Context, expected: Type | None) -> Type:
    checker.facts.refs[id(node)] = Ref("builtin", node.callee.text)
    fewest, most, rule = BUILTINS[node.callee.text]
    values = _positional(checker, node)
    if not fewest <= len(values) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
        message = f"`{node.callee.text}` takes {counted(wanted)}, not {len(values)}"
        checker.report.add("S302", node.span, message)
        for value in values:
            checker.check(value, context)
        return UNKNOWN
    return rule(checker, values, context, expected)


def _positional(checker: Checker, node: tree.CallExpr) -> tuple[tree.Expr, ...]:
    checker.refuse_labels(node.callee.text, node.args, "labels are for the fields of a union's constructor")
    return tuple(arg.value for arg in node.args)


def _apply(checker: Checker, node: tree.CallExpr, home: Spec, context: Context) -> Type:
    decl = home.defs[node.callee.text]
    checker.facts.refs[id(node)] = Ref("def", decl.name, home)
    values = _positional(checker, node)
    checker.check_count(decl, len(values), node.span)
    for value, param in zip(values, decl.params, strict=False):
        if isinstance(param, decls.OperatorParam):
            check_operator(checker, value, context, checker.signature(param, home))
        else:
            checker.check(value, context, checker.resolver.resolve(param.type, home))
    for value in values[len(decl.params) :]:
        checker.check(value, context)
    return checker.returns(decl, home, node)


def _construct(checker: Checker, node: tree.CallExpr, home: Spec, context: Context) -> Type:
    tag = node.callee.text
    owner = home.variants[tag]
    kind = checker.resolver.declared(owner, home, home.types[owner])
    checker.facts.refs[id(node)] = Ref("constructor", tag, home)
    fields = (kind.get(tag) if isinstance(kind, Union) else None) or Record(())

    def shape() -> str:
        return f"it is {tag}({show(fields)[2:-2]})"

    given: set[str] = set()
    # With an unknown label the missing field is most likely its correct name: one error, not two.
    strangers = False
    for arg in node.args:
        label = arg.label or ""
        wanted = fields.get(label)
        if label and label in given:
            checker.report.add("S202", arg.span, f"field `{label}` is given twice")
        elif wanted is None:
            strangers = True
            message = (
                f"`{tag}` has no field `{label}`" if label else f"the fields of `{tag}` are given by name"
            )
            checker.report.add("S305", arg.span, message, shape())
        given.add(label)
        checker.check(arg.value, context, wanted)
    missing = [name for name, _ in fields.fields if name not in given]
    if missing and not strangers:
        checker.report.add("S305", node.span, f"`{tag}` lacks {', '.join(missing)}", shape())
    return kind
