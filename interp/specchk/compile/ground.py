"""Grounding: the constants and types of a spec under one model.

Bounds and bindings are constant expressions, lowered and evaluated by the creator of a `Ground`.  Constants
are evaluated on demand, so that defaults may use other constants in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from specchk.ir import types
from specchk.ir.nodes import Expr, Value
from specchk.ir.types import BOOL, DifferentKeys, Type, cardinality, hull, partial_map
from specchk.lang.check import types as lang
from specchk.lang.check.models import FixedModel, consts_of
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import SpecError, refusal
from specchk.lang.text.source import Span
from specchk.meaning.evaluate import misfit
from specchk.meaning.initial import value_of
from specchk.meaning.undefined import BeyondHorizon, Undefined

LowerConstant = Callable[[tree.Expr, Spec], tuple[Type, Value]]
EMPTY_INT = types.Int(0, -1)  # adds nothing to an interval that it is joined with
MAX_LIMIT = 64


class Ground:
    """Ground types and constant values, each computed once."""

    def __init__(self, checked: CheckedSpec, model: FixedModel, constant: LowerConstant) -> None:
        self.checked = checked
        self.model = model
        self._constant = constant
        self._values: dict[str, tuple[Type, Value]] = {}
        # Being found, outermost first: one that is met again depends on itself.
        self._open: list[str] = []
        # By node and namespace: a file is parsed once, so that two namespaces may have the same nodes, and
        # other constants in them.
        self._bounds: dict[tuple[int, int], int] = {}
        self._open_bounds: set[tuple[int, int]] = set()
        # Each with its type object, so that its `id` is not reused as long as it is kept.
        self._types: dict[tuple[int, int], tuple[lang.Type, Type]] = {}
        self._consts = consts_of(checked.spec)
        self._given = dict(model.bindings)
        self._given |= {
            full: decl.given for full, (decl, _) in self._consts.items() if decl.given is not None
        }
        for refines in checked.spec.refines:
            other = checked.spec.refined[refines.alias]
            self._consts |= {other.prefix + name: (decl, other) for name, decl in other.consts.items()}
            self._given |= {other.prefix + binding.name.full: binding for binding in refines.mapping}

    def sort(self, full: str) -> types.Sort:
        """A sort with its elements' names."""
        return types.Sort(full, self.model.members[full])

    def constant(self, full: str) -> tuple[Type, Value]:
        """The type and value of a constant; raises `SpecError` if the value is out of range."""
        if full in self._values:
            return self._values[full]
        decl, home = self._consts[full]
        if full in self._open:
            circle = " -> ".join([*self._open, full])
            hint = f"give one of them a value of its own, e.g. with `--set {full}=1`"
            raise refusal("S508", decl.span, f"constants depend on each other: {circle}", hint)
        self._open.append(full)
        binding = self._given.get(full)
        node = binding.value if binding is not None else decl.default
        assert node is not None, "an open constant is reported before lowering"
        kind = self.checked.facts.declared[id(decl.type)]
        # A binding is written in a model, in the names of the spec that is run; a default value in those of
        # the spec that declares the constant.
        found, value = self._constant(node, self.checked.spec if binding else home)
        ground = self._of_value(kind, value, home)
        if ground is None:
            wanted = self.type(kind, home)
            message = f"`{full}` is out of range: {node.span.text.strip()} is not in {_range(wanted)}"
            hint = f"give it a value of its type, or change the type of `{full}`"
            raise refusal("S503", node.span, message, hint)
        # A map's value is the list of its values, which does not show the keys: that they are others shows in
        # the types alone.
        try:
            hull(found, ground)
        except DifferentKeys as difference:
            raise different_keys(difference, node.span) from None
        self._open.pop()
        self._values[full] = (ground, value)
        return self._values[full]

    def is_given(self, full: str) -> bool:
        """Whether the model, or an override, has a value for a constant."""
        return full in self._given

    def place(self, full: str) -> Span:
        """The declaration of a constant."""
        return self._consts[full][0].span

    def type(self, kind: lang.Type, home: Spec) -> Type:
        """A type with its bounds evaluated, once; parts with unknown bounds are empty for now."""
        place = id(kind), id(home)
        if place not in self._types:
            self._types[place] = kind, self._evaluated(kind, home)
        return self._types[place][1]

    def _evaluated(self, kind: lang.Type, home: Spec) -> Type:
        match kind:
            case lang.Bool():
                return BOOL
            case lang.Int():
                return self._int(kind, home)
            case lang.Enum():
                return types.Enum(kind.name, kind.members)
            case lang.Sort():
                return self.sort(kind.name)
            case lang.Option():
                return types.Option(self.type(kind.item, home))
            case lang.Record():
                return self._record(kind, home)
            case lang.Union():
                return types.Union(kind.name, tuple((tag, self._record(r, home)) for tag, r in kind.variants))
            case lang.Map():
                return types.Map(self.type(kind.key, home), self.type(kind.value, home))
            case lang.Set():
                return types.Set(self.type(kind.item, home))
            case lang.Seq():
                return types.Seq(self.type(kind.item, home), self._limit(kind.limit, home))
            case lang.Bag():
                return types.Bag(self.type(kind.item, home), self._limit(kind.limit, home))
            case lang.PartialMap():
                return partial_map(self.type(kind.key, home), self.type(kind.value, home))
        return EMPTY_INT

    def declared(self, node: tree.Node, home: Spec) -> Type:
        """The type given by a declaration."""
        return self.type(self.checked.facts.declared[id(node)], home)

    def _record(self, kind: lang.Record, home: Spec) -> types.Record:
        return types.Record(tuple(sorted((name, self.type(item, home)) for name, item in kind.fields)))

    def _int(self, kind: lang.Int, home: Spec) -> types.Int:
        if kind.low is None or kind.high is None:
            return EMPTY_INT
        low, high = self.bound(kind.low, home), self.bound(kind.high, home)
        if high < low:
            message = f"the range {low}..{high} is empty"
            raise refusal("S503", kind.high.span, message, "bounds are `low..high`, both in it")
        return types.Int(low, high, kind.horizon)

    def bound(self, node: tree.Expr, home: Spec) -> int:
        """The value of a bound, computed once for each namespace."""
        place = id(node), id(home)
        known = self._bounds.get(place)
        if known is not None:
            return known
        if place in self._open_bounds:
            hint = "a bound is a number that is known before the type that has it"
            raise refusal("S508", node.span, "this bound depends on the type that has it", hint)
        self._open_bounds.add(place)
        _, value = self._constant(node, home)
        assert isinstance(value, int)
        self._open_bounds.discard(place)
        self._bounds[place] = value
        return value

    def _limit(self, node: tree.Expr | None, home: Spec) -> int:
        if node is None:
            return 0
        limit = self.bound(node, home)
        if not 0 <= limit <= MAX_LIMIT:
            hint = "a limit is how many items there are at most; smaller ones keep the search small"
            raise refusal("S503", node.span, f"a limit is from 0 to {MAX_LIMIT}, not {limit}", hint)
        return limit

    def _of_value(self, kind: lang.Type, value: Value, home: Spec) -> Type | None:
        """The constant's type, with unbounded integers narrowed to the value; None if it is out of range."""
        match kind:
            case lang.Int(low=None):
                assert isinstance(value, int)
                return types.Int(value, value)
            case lang.Set() if lang.unbounded_part(kind) is not None and value:
                assert isinstance(value, tuple)
                items = [self._of_value(kind.item, item, home) for item in value]
                known = [item for item in items if item is not None]
                return types.Set(reduce(hull, known)) if len(known) == len(items) else None
            case lang.Record() if lang.unbounded_part(kind) is not None:
                assert isinstance(value, tuple)
                fields = [(name, self._of_value(part, item, home))
                          for (name, part), item in zip(sorted(kind.fields), value, strict=True)]  # fmt: skip
                given = tuple([(name, part) for name, part in fields if part is not None])
                return types.Record(given) if len(given) == len(fields) else None
        ground = self.type(kind, home)
        return ground if misfit(ground)(value) is None else None


def _range(kind: Type) -> str:
    if isinstance(kind, types.Int):
        return f"{kind.low}..{kind.high}"
    return f"its type ({cardinality(kind)} values)"


def different_keys(difference: DifferentKeys, span: Span) -> SpecError:
    """The error for two maps with different keys in one expression."""
    hint = "build one of them with the other's keys: `{ k: ... for k in K }`"
    return refusal("S301", span, str(difference), hint)


def evaluate_constant(expr: Expr) -> Value:
    """The value of a constant expression; raises `SpecError` if it has none."""
    try:
        return value_of(expr)
    except Undefined as undefined:
        message = f"this constant has no value: {undefined.reason}"
        hint = "change the constants from which it is computed"
        raise refusal("S511", undefined.span, message, hint) from None
    except BeyondHorizon:
        hint = "raise the bound of its `nat upto`, or give it a smaller value"
        raise refusal("S503", expr.span, "this value is above its horizon", hint) from None


def fold(expr: Expr) -> Value | None:
    """The value of a constant expression; None if it is undefined or beyond a horizon."""
    try:
        return value_of(expr)
    except (Undefined, BeyondHorizon):
        return None
