"""Arguments other than values: operators, for definitions and `fold`, and actions, for `enabled`.

An operator is no value: it is the name of a definition, `(a, b) => e`, or a parameter that is one, and
it is put in where it is called.  So a place that takes one takes nothing else, and no other place takes
one.  `enabled(act)`, `enabled(act(e, _))` takes the name of an action in the same way.
"""

from __future__ import annotations

from specchk.lang.check.checker import Checker, Context, Signature
from specchk.lang.check.spec import Ref
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Bag, Int, Seq, Set, Type, join, show
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import counted, nearest

MAX_ROUNDS = 16  # in which a fold's type becomes known: a round for each part that another part shows


def check_lone_lambda(checker: Checker, node: tree.Lambda) -> Type:
    """Report an operator in the place of a value."""
    hint = "it is an argument of `fold`, or of a definition with a parameter `p: (T) => U`"
    checker.report.add("S302", node.span, "an operator is not a value", hint)
    return UNKNOWN


def check_operator(checker: Checker, node: tree.Expr, context: Context, wanted: Signature) -> Type:
    """Check an operator given as an argument; return the type of its value."""
    if isinstance(node, tree.Lambda):
        return _lambda(checker, node, context, wanted)
    found = _named(checker, node, context)
    if found is None:
        return UNKNOWN
    ref, signature = found
    checker.facts.refs[id(node)] = ref
    pairs = [*zip(signature.params, wanted.params, strict=False), (signature.result, wanted.result)]
    if len(signature.params) != len(wanted.params) or any(join(a, b) is None for a, b in pairs):
        checker.report.add("S301", node.span, f"expected {wanted.shown}, found {signature.shown}")
    return signature.result


def _lambda(checker: Checker, node: tree.Lambda, context: Context, wanted: Signature) -> Type:
    if len(node.params) != len(wanted.params):
        checker.report.add(
            "S302", node.span,
            f"this operator takes {counted(len(node.params))}, and {wanted.shown} takes {len(wanted.params)}",
        )  # fmt: skip
    # Those beyond the wanted ones, too: their names in the body would be reported as unknown.
    for index, bound in enumerate(node.params):
        kind = wanted.params[index] if index < len(wanted.params) else UNKNOWN
        context = checker.bound(bound, kind, node, context)
    return checker.check(node.body, context, wanted.result)


def _named(checker: Checker, node: tree.Expr, context: Context) -> tuple[Ref, Signature] | None:
    """The operator to which a name refers."""
    name = node
    if isinstance(node, tree.Field) and isinstance(node.base, tree.Name):
        name = tree.Name(node.span, node.name, node.base.text)
    if isinstance(name, tree.Name):
        if name.qualifier is None and name.text in context.operators:
            return Ref("operator", name.text), context.operators[name.text]
        home = context.spec.lookup(name.qualifier)
        if home is not None and name.text in home.defs and home.has_definitions_for(context.spec):
            decl = home.defs[name.text]
            plain = [param for param in decl.params if isinstance(param, decls.Param)]
            if len(plain) == len(decl.params):
                kinds = tuple(checker.resolver.resolve(param.type, home) for param in plain)
                return Ref("def", name.text, home), Signature(kinds, checker.returns(decl, home, node))
    hint = "it is the name of a definition whose parameters are values, or `(x) => e`"
    if isinstance(name, tree.Name) and name.text not in context.spec.declared:
        hint = nearest(name.text, [*context.operators, *context.spec.defs]) or hint
    checker.report.add("S302", node.span, "an operator is expected here", hint)
    return None


def check_operator_call(checker: Checker, node: tree.CallExpr, context: Context) -> Type:
    """Check a call of a parameter that is an operator."""
    name = node.callee.text
    signature = context.operators[name]
    checker.facts.refs[id(node)] = Ref("operator", name)
    for arg, kind in zip(node.args, signature.params, strict=False):
        checker.check(arg.value, context, kind)
    if len(node.args) != len(signature.params) or any(arg.label for arg in node.args):
        checker.report.add(
            "S302", node.span, f"`{name}` is {signature.shown}: it takes {counted(len(signature.params))}"
        )
    return signature.result


def check_item_fold(
    checker: Checker, args: tuple[tree.Expr, ...], context: Context, expected: Type | None
) -> Type:
    """`fold(S, start, (acc, x) => e)`: the type of `start`."""
    items, start, operator = args
    found = checker.check(items, context)
    if not isinstance(found, Set | Seq):
        hint = f"`elements({items.span.text})` is the set of its items" if isinstance(found, Bag) else None
        checker.unfit(items.span, found, f"`fold` ranges over a set or a sequence, not {show(found)}", hint)
    item = found.item if isinstance(found, Set | Seq) else UNKNOWN
    kind = checker.check(start, context, expected)
    # Again while the operator shows more of the type than `start` does: `fold(s, {}, (seen, x) => ...)`.
    # Not after an error, which each round would report again.
    errors = len(checker.report.found)
    for _ in range(MAX_ROUNDS):
        value = check_operator(checker, operator, context, Signature((kind, item), kind))
        joined = join(value, kind)
        if joined is None or joined == kind or len(checker.report.found) > errors:
            # The range of `start` is that of the first value only: a sum leaves it.
            return INT if isinstance(kind, Int) else kind
        kind = checker.check(start, context, joined)
    checker.report.add(
        "S301", operator.span, "the value of this operator has a larger type in each step of the `fold`",
        f"give `{start.span.text.strip()}` and the operator's value one type",
    )  # fmt: skip
    return UNKNOWN


def check_enabled(
    checker: Checker, args: tuple[tree.Expr, ...], context: Context, _: Type | None
) -> Type:  # fmt: skip
    """`enabled(act)` for any arguments, `enabled(act(e, _))` for the given ones."""
    (node,) = args
    name = node.callee if isinstance(node, tree.CallExpr) else node
    values = [arg.value for arg in node.args] if isinstance(node, tree.CallExpr) else []
    action = None
    if isinstance(name, tree.Name) and name.qualifier is None:
        action = context.spec.actions.get(name.text)
    # Arguments are checked where the action is unknown, too: all errors are reported in one run.
    kinds = [checker.resolver.resolve(p.type, context.spec) for p in action.params] if action else []
    for index, value in enumerate(values):
        if not is_any(value):
            checker.check(value, context, kinds[index] if index < len(kinds) else None)
    if action is None:
        if isinstance(name, tree.Name):
            checker.unknown(name, context.spec.actions, "action", context.spec)
        else:
            hint = "write `enabled(act)` or `enabled(act(x, _))`; a condition of this step is `require e`"
            known = nearest(name.span.text.strip(), context.spec.actions) or hint
            checker.report.add("S203", name.span, "`enabled` takes the name of an action", known)
        return BOOL
    checker.facts.refs[id(node)] = Ref("action", action.name, context.spec)
    if isinstance(node, tree.CallExpr):
        checker.refuse_labels(action.name, node.args)
        hint = f"`_` is any value; `enabled({action.name})` leaves all of them open"
        checker.check_count(action, len(values), node.span, hint)
    return BOOL


def is_any(node: tree.Expr) -> bool:
    """Whether an argument is `_`, any value."""
    return isinstance(node, tree.Name) and node.full == "_"
