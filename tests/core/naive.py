# ruff: noqa: C901, N802, N815 - a method is named after its node, one long match after its operators
"""An independent oracle: the meaning of specs read off the checked syntax tree, slowly.

Nothing of the product is used but that tree, with its types and models (`tests/laws/test_page.py`).
Values are Python's own - ints, names as strings, frozensets, tuples for sequences, `Dict` (a hashable dict)
for records, maps and the counts of bags, `()` or `("some", x)` for options, (tag, Dict) for unions - and
every construct is one recursive case.
`Nothing` is raised where there is no value, `Cut` where a step would pass a horizon.  A path through an
action collects its changes unevaluated: they mean nothing unless all of its conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from naive_values import Cut, Dict, Nothing, ascending, binding, builtin, counted, read, subsets

from specchk.lang.check import types as lang
from specchk.lang.check.models import FixedModel
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import decls, tree

# An assignment, its new value, and the names in scope.
Change = tuple[decls.Assign | decls.AssignIn, Callable[[], Any], dict[str, Any]]


class Naive:
    """Expressions and steps of a checked spec under a model; states are dicts."""

    def __init__(self, checked: CheckedSpec, model: FixedModel) -> None:
        self.spec, self.facts, self.model = checked.spec, checked.facts, model

    def value(self, node: tree.Expr, state: Dict, names: dict[str, Any]) -> Any:
        method = getattr(self, "on_" + type(node).__name__)
        return method(node, state, names)

    def on_IntLiteral(self, node, state, names):
        return node.value

    on_BoolLiteral = on_IntLiteral

    def on_NoneLiteral(self, node, state, names):
        return ()

    def on_Name(self, node, state, names):
        if node.text in names:
            return names[node.text]
        ref = self.facts.ref(node)
        match ref.kind:
            case "element" | "member":
                return node.text
            case "variable":
                return state[node.text]
            case "constant":
                binding = self.model.bindings.get(node.text)
                return self.value(
                    binding.value if binding else self.spec.consts[node.text].default, Dict(), {}
                )
            case "first":
                return self.model.members[ref.name][0]
            case "constructor":
                return (node.text, Dict())
            case "typeset":
                return frozenset(self.universe(self.facts.type_of(node).item))
            case "property":
                return self.holds(self.spec.properties[node.text], state)
        raise AssertionError(ref)

    def on_Unary(self, node, state, names):
        found = self.value(node.operand, state, names)
        return -found if node.op == "-" else not found

    def on_Binary(self, node, state, names):
        left = self.value(node.left, state, names)
        match node.op:
            case "and":
                return left and self.value(node.right, state, names)
            case "or":
                return left or self.value(node.right, state, names)
            case "implies":
                return not left or self.value(node.right, state, names)
            case "is":
                return left[0] == node.right.text
        right = self.value(node.right, state, names)
        match node.op:
            case "==" | "iff":
                return left == right
            case "!=":
                return left != right
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
            case "in":
                return left in right
            case "not in":
                return left not in right
            case "subset":
                return left <= right
            case "..":
                return frozenset(range(left, right + 1))
            case "++":
                return left + right
            case "intersect":
                return left & right
            case "union" if isinstance(left, frozenset):
                return left | right
            case "union":
                return Dict({k: left.get(k, 0) + right.get(k, 0) for k in {*left, *right}})
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == 0:
            raise Nothing
        return left // right if node.op == "//" else left % right

    def on_Index(self, node, state, names):
        return self.at(self.value(node.base, state, names), self.value(node.key, state, names))

    def at(self, base: Any, key: Any) -> Any:
        if isinstance(base, Dict):
            if key not in base:
                raise Nothing
            return base[key]
        if not 0 <= key < len(base):
            raise Nothing
        return base[key]

    def on_Field(self, node, state, names):
        return self.value(node.base, state, names)[node.name]

    def on_CallExpr(self, node, state, names):
        ref = self.facts.ref(node)
        args = [self.value(arg.value, state, names) for arg in node.args]
        if ref.kind == "builtin":
            return builtin(node.callee.text, args)
        if ref.kind == "constructor":
            return (node.callee.text, Dict({a.label: v for a, v in zip(node.args, args, strict=True)}))
        definition = self.spec.defs[ref.name]
        inner = {param.name: arg for param, arg in zip(definition.params, args, strict=True)}
        for let in definition.lets:
            inner = binding(inner, let.bound, self.value(let.value, state, inner))
        return self.value(definition.value, state, inner)

    def on_IfElse(self, node, state, names):
        branch = node.then if self.value(node.condition, state, names) else node.orelse
        return self.value(branch, state, names)

    def on_LetIn(self, node, state, names):
        return self.value(node.body, state, binding(names, node.bound, self.value(node.value, state, names)))

    def on_Match(self, node, state, names):
        found = self.value(node.scrutinee, state, names)
        tag = found if isinstance(found, str) else found[0] if found else "none"
        for arm in node.arms:
            if arm.pattern.tag in (tag, "_"):
                bound = {arm.pattern.bound: found[1]} if arm.pattern.bound else {}
                return self.value(arm.body, state, {**names, **bound})
        raise AssertionError("a match covers every case")

    def choices(self, binders, state, names) -> Iterator[dict[str, Any]]:
        if not binders:
            yield names
            return
        for item in ascending(set(self.value(binders[0].domain, state, names))):  # each once, of a seq too
            yield from self.choices(binders[1:], state, binding(names, binders[0].bound, item))

    def on_Quantified(self, node, state, names):
        found = self.choices(node.binders, state, names)
        match node.kind:
            case "forall":
                return all(self.value(node.body, state, inner) for inner in found)
            case "exists":
                return any(self.value(node.body, state, inner) for inner in found)
        wanted = node.binders[0].bound
        chosen = (read(inner, wanted) for inner in found if self.value(node.body, state, inner))
        if node.kind == "filter":
            return frozenset(chosen)
        for item in chosen:
            return item
        raise Nothing

    def bodies(self, node, state, names) -> list[Any]:
        return [
            self.value(node.body, state, inner)
            for inner in self.choices(node.binders, state, names)
            if node.condition is None or self.value(node.condition, state, inner)
        ]

    def on_SetComp(self, node, state, names):
        return frozenset(self.bodies(node, state, names))

    def on_Fold(self, node, state, names):
        found = self.bodies(node, state, names)
        if node.callee.text == "sum":
            return sum(found)
        return builtin(node.callee.text, [frozenset(found)])

    def on_MapComp(self, node, state, names):
        keys = self.value(node.binder.domain, state, names)
        return Dict(
            {k: self.value(node.value, state, binding(names, node.binder.bound, k)) for k in ascending(keys)}
        )

    def on_SetLiteral(self, node, state, names):
        items = [self.value(item, state, names) for item in node.items]
        return counted(items) if isinstance(self.facts.type_of(node), lang.Bag) else frozenset(items)

    def on_SeqLiteral(self, node, state, names):
        return tuple(self.value(item, state, names) for item in node.items)

    def on_TupleLiteral(self, node, state, names):
        return Dict({str(n): self.value(item, state, names) for n, item in enumerate(node.items, 1)})

    def on_PairLiteral(self, node, state, names):
        if isinstance(self.facts.type_of(node), lang.Record):
            return Dict({p.key.text: self.value(p.value, state, names) for p in node.pairs})
        pairs = [(self.value(p.key, state, names), self.value(p.value, state, names)) for p in node.pairs]
        return Dict(pairs)

    def on_With(self, node, state, names):
        result = self.value(node.base, state, names)
        for change in node.changes:
            path = self.path(change.path, state, names)
            result = self.put(result, path, self.value(change.value, state, names))
        return result

    def path(self, accessors, state, names) -> list[Any]:
        return [a.field if a.field is not None else self.value(a.index, state, names) for a in accessors]

    def put(self, container: Any, path: list[Any], value: Any) -> Any:
        if not path:
            return value
        inner = self.put(self.at(container, path[0]), path[1:], value)
        if isinstance(container, Dict):
            return Dict({**container, path[0]: inner})
        return (*container[: path[0]], inner, *container[path[0] + 1 :])

    def universe(self, kind: lang.Type) -> list[Any]:
        match kind:
            case lang.Bool():
                return [False, True]
            case lang.Int():
                return list(range(self.value(kind.low, Dict(), {}), self.value(kind.high, Dict(), {}) + 1))
            case lang.Enum():
                return list(kind.members)
            case lang.Sort():
                return list(self.model.members[kind.name])
            case lang.Option():
                return [(), *(("some", item) for item in self.universe(kind.item))]
            case lang.Record():
                columns = [[(name, v) for v in self.universe(item)] for name, item in kind.fields]
                return [Dict(row) for row in product(*columns)]
            case lang.Union():
                return [(tag, rec) for tag, record in kind.variants for rec in self.universe(record)]
            case lang.Map():
                keys = self.universe(kind.key)
                rows = product(self.universe(kind.value), repeat=len(keys))
                return [Dict(zip(keys, row, strict=True)) for row in rows]
            case lang.Set():
                return subsets(self.universe(kind.item))
        raise AssertionError(f"not listed here: {kind}")

    def stored(self, value: Any, kind: lang.Type) -> Any:
        """The value; `Nothing` if it is outside the type's ranges, `Cut` above a horizon."""
        match kind:
            case lang.Int():
                low, high = self.value(kind.low, Dict(), {}), self.value(kind.high, Dict(), {})
                if value < low or (value > high and not kind.horizon):
                    raise Nothing
                if value > high:
                    raise Cut
            case lang.Option():
                [self.stored(item, kind.item) for item in value[1:]]
            case lang.Record():
                self.each([(value[name], item) for name, item in kind.fields])
            case lang.Union():
                self.stored(value[1], dict(kind.variants)[value[0]])
            case lang.Map():
                self.each([(value[key], kind.value) for key in value])
            case lang.Set():
                self.each([(item, kind.item) for item in value])
            case lang.Seq() | lang.Bag():
                size = len(value) if isinstance(value, tuple) else sum(value.values())
                if size > self.value(kind.limit, Dict(), {}):
                    raise Nothing
                self.each([(item, kind.item) for item in value])
        return value

    def each(self, parts: list[tuple[Any, lang.Type]]) -> None:
        """As `stored`, for several parts: `Nothing` if that holds of one, whatever holds of others."""
        is_cut = False
        for value, kind in parts:
            try:
                self.stored(value, kind)
            except Cut:
                is_cut = True
        if is_cut:
            raise Cut

    def initial(self) -> list[Dict]:
        columns = []
        for var in self.spec.variables.values():
            kind = self.facts.declared[id(var.type)]
            if var.initial is not None:
                found = [self.stored(self.value(var.initial, Dict(), {}), kind)]
            elif var.choices is not None:
                found = [self.stored(v, kind) for v in self.value(var.choices, Dict(), {})]
            else:
                found = self.universe(kind)
            columns.append([(var.name, v) for v in found])
        states = [Dict(row) for row in product(*columns)]
        return [s for s in states if all(self.holds(init, s) for init in self.spec.inits)]

    def holds(self, prop: decls.Property | decls.Init, state: Dict) -> bool:
        names: dict[str, Any] = {}
        for let in prop.lets:
            names = binding(names, let.bound, self.value(let.value, state, names))
        return all(self.value(conjunct, state, names) for conjunct in prop.conjuncts)

    def successors(self, state: Dict) -> list[tuple[str, Dict]]:
        """(action, state after) for every instance, choice and branch; a cut step is not among them."""
        found = []
        for action in self.spec.actions.values():
            if self.model.actions is not None and action.name not in [n.text for n in self.model.actions]:
                continue
            domains = [self.universe(self.facts.declared[id(p.type)]) for p in action.params]
            for args in product(*domains):
                names = {p.name: arg for p, arg in zip(action.params, args, strict=True)}
                for changes in self.run(action.body, state, names, []):
                    after = self.changed(changes, state)
                    if after is not None:
                        found.append((action.name, after))
        return found

    def changed(self, changes: list[Change], state: Dict) -> Dict | None:
        """The state after some changes; None if one is cut off, `Nothing` if one has no value."""
        writes: dict[tuple[Any, ...], Any] = {}
        is_cut = False
        for stmt, value, names in changes:
            kind = self.facts.declared[id(self.spec.variables[stmt.target.text].type)]
            path = self.path(stmt.path, state, names)
            for key in path:
                match kind:
                    case lang.Record():
                        kind = dict(kind.fields)[key]
                    case lang.Map():
                        kind = kind.value
                    case lang.Seq():
                        kind = kind.item
            place = (stmt.target.text, *path)
            self.put(state[stmt.target.text], path, None)
            if any(place[: len(other)] == other[: len(place)] for other in writes):
                raise Nothing
            try:
                writes[place] = self.stored(value(), kind)
            except Cut:
                writes[place], is_cut = None, True
        if is_cut:
            return None
        after = state
        for (variable, *path), new in writes.items():
            after = Dict({**after, variable: self.put(after[variable], path, new)})
        return after

    def run(self, body, state, names, changes) -> Iterator[list[Change]]:
        """The paths through a block on which all conditions hold, each as its changes."""
        if not body:
            yield changes
            return
        stmt, rest = body[0], body[1:]
        match stmt:
            case decls.Require():
                if self.value(stmt.condition, state, names):
                    yield from self.run(rest, state, names, changes)
            case decls.Let():
                found = self.value(stmt.value, state, names)
                if not stmt.unwraps:
                    yield from self.run(rest, state, binding(names, stmt.bound, found), changes)
                elif found:
                    yield from self.run(rest, state, binding(names, stmt.bound, found[1]), changes)
            case decls.Assign():
                change = (stmt, partial(self.value, stmt.value, state, names), names)
                yield from self.run(rest, state, names, [*changes, change])
            case decls.AssignIn():
                for item in ascending(self.value(stmt.domain, state, names)):
                    change = (stmt, partial(lambda value: value, item), names)
                    yield from self.run(rest, state, names, [*changes, change])
            case decls.Any():
                for inner in self.choices(stmt.binders, state, names):
                    for more in self.run(stmt.body, state, inner, changes):
                        yield from self.run(rest, state, names, more)
            case decls.Either():
                for branch in stmt.branches:
                    for more in self.run(branch, state, names, changes):
                        yield from self.run(rest, state, names, more)
            case decls.When():
                branch = stmt.then if self.value(stmt.condition, state, names) else stmt.orelse
                for more in self.run(branch, state, names, changes):
                    yield from self.run(rest, state, names, more)
            case decls.Skip():
                yield from self.run(rest, state, names, changes)
            case decls.CallHelper():
                helper = self.spec.helpers[stmt.call.callee.text]
                args = [self.value(arg.value, state, names) for arg in stmt.call.args]
                inner = {param.name: arg for param, arg in zip(helper.params, args, strict=True)}
                for more in self.run(helper.body, state, inner, changes):
                    yield from self.run(rest, state, names, more)
            case _:
                raise AssertionError("a match covers every case")
