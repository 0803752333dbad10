"""Traces in the Informal Trace Format, for the viewers and harnesses of other tools.

Format: Apalache's ADR 015 (https://apalache-mc.org/docs/adr/015adr-trace.html).  Integers are
`#bigint` objects, sets and bags `#set` (a bag as a `#map` to counts), maps `#map`, sequences lists,
options and unions `tag`/`value` objects.  Each state's `#meta` names the action and its arguments,
and the trace's names the property.
"""

from __future__ import annotations

from typing import Any

from specchk.ir.nodes import Value
from specchk.ir.program import Program
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import show as show_type
from specchk.meaning.values import int_of, pairs_of, show, universe
from specchk.report.json import model_json
from specchk.search.verdict import Trace, Violation


def value_itf(value: Value, kind: Type) -> Any:
    """A value in ITF."""
    if isinstance(kind, Bool):
        return bool(value)
    if isinstance(kind, Int):
        # A number of JSON is a double to many readers, exact only up to 2^53.
        return {"#bigint": str(value)}
    if isinstance(kind, Enum | Sort):
        return kind.members[int_of(value)]
    assert isinstance(value, tuple)
    match kind:
        case Option():
            return (
                {"tag": "some", "value": value_itf(value[0], kind.item)}
                if value
                else {"tag": "none", "value": _unit()}
            )
        case Record(is_tuple=True):
            return {"#tup": [value_itf(v, item) for (_, item), v in zip(kind.fields, value, strict=True)]}
        case Record():
            return {name: value_itf(v, item) for (name, item), v in zip(kind.fields, value, strict=True)}
        case Union():
            name, record = kind.variants[int_of(value[0])]
            if record.element is not None:
                return show(value, kind)
            return {"tag": name, "value": value_itf(value[1], record) if record.fields else _unit()}
        case Map():
            keys = sorted(universe(kind.key))
            pairs = zip(keys, value, strict=True)
            return {"#map": [[value_itf(k, kind.key), value_itf(v, kind.value)] for k, v in pairs]}
        case Set(keyed=True):
            key, item = kind.pair
            return {"#map": [[value_itf(k, key), value_itf(v, item)] for k, v in pairs_of(value)]}
        case Set():
            return {"#set": [value_itf(item, kind.item) for item in value]}
        case Seq():
            return [value_itf(item, kind.item) for item in value]
        case Bag():
            counts = {item: value.count(item) for item in value}
            return {"#map": [[value_itf(k, kind.item), {"#bigint": str(n)}] for k, n in counts.items()]}


def _unit() -> dict[str, Any]:
    return {"#tup": []}


def trace_itf(program: Program, trace: Trace, violation: Violation | None) -> dict[str, Any]:
    """The ITF object of a trace; `violation` is the violation that it shows, if any."""
    labels = [(None, ()), *((step.action, step.args) for step in trace.steps)]
    states: list[dict[str, Any]] = [
        {
            "#meta": {"index": index, "action": action, "args": list(args)},
            **{v.name: value_itf(value, v.type) for v, value in zip(program.variables, state, strict=True)},
        }
        for index, (state, (action, args)) in enumerate(zip(trace.states, labels, strict=True))
    ]
    # The state behind the last one is state `loop`: the trace's own last state, which is that one again, is
    # left out.  Of a behaviour that rests the last state follows itself.
    again: dict[str, Any] = {}
    if trace.loop is not None and trace.loop < len(trace.steps):
        closing = states.pop()["#meta"]
        again["loop-step"] = {"action": closing["action"], "args": closing["args"]}
    return {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "source": program.path,
            "description": f"{program.spec}, model {program.model}",
            **model_json(program),
            "property": violation.name if violation is not None else None,
            "kind": violation.kind if violation is not None else None,
            "varTypes": {v.name: show_type(v.type) for v in program.variables},
            **again,
        },
        "params": [constant.name for constant in program.constants],
        "vars": [variable.name for variable in program.variables],
        "states": states,
        **({"loop": trace.loop} if trace.loop is not None else {}),
    }
