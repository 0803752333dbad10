"""The names, types and texts of a spec that are filled into the skeleton of a binding.

A template has `$name` for a word, and a part for each item of a list:

    %each actions
        case "$action": ...
    %end

Not here: the templates, and the files that become of them (`cli`).
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any

from specchk.conform.adapter.process import ProcessBinding
from specchk.conform.contract.values import plain
from specchk.ir.program import Action, Program
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import show as show_type
from specchk.lang.check.spec import Spec
from specchk.lang.syntax.decls import Expect
from specchk.meaning.values import State
from specchk.report.json import state_json

Row = Mapping[str, str]
MOST_EXAMPLES = 3  # names of an enum or a sort
_EACH = re.compile(r"^%each (\w+)\n(.*?)^%end\n", re.MULTILINE | re.DOTALL)


def filled(template: str, words: Row, lists: Mapping[str, Sequence[Row]]) -> str:
    """The text of a template; each list may have no rows, and its rows have the words, too."""

    def rows(part: re.Match[str]) -> str:
        texts = (Template(part[2]).substitute({**words, **row}) for row in lists[part[1]])
        return "".join(texts).replace("$", "$$")

    return Template(_EACH.sub(rows, template)).substitute(words)


def words_of(program: Program, initial: State, path: str) -> dict[str, str]:
    """The words of a skeleton; `path` is the spec's from the folder of the binding."""
    start = json.dumps(state_json(program, initial), indent=2).replace("\n", "\n  ")
    name = "".join(part.capitalize() for part in program.spec.split("_"))
    return {"spec": path, "name": name, "model": program.model, "start": start}


def lists_of(program: Program, spec: Spec, initial: State) -> dict[str, list[Row]]:
    """The lists of a skeleton: the program's actions and variables, and the spec's models with a flaw."""
    flaws = [
        {"flawed": model.name, "property": item.name.text}
        for model in spec.models.values()
        for item in model.items
        if isinstance(item, Expect) and item.kind == "violates" and item.name is not None
    ]
    variables = zip(program.variables, initial, strict=True)
    return {
        "actions": [_action(action, program) for action in program.actions],
        "variables": [_variable(v.name, v.type, plain(value, v.type)) for v, value in variables],
        "flaws": list({row["flawed"]: row for row in flaws}.values()),
    }


def _action(action: Action, program: Program) -> Row:
    taken = {*dir(ProcessBinding), *(variable.name for variable in program.variables), "start"}
    params = [
        (param.name, _python_name(param.name, {"self", "system"}), param.type) for param in action.params
    ]
    lines = action.span.text.rstrip().split("\n")[1:]
    bare = [re.sub(r"\s*#.*", "", line) for line in lines]
    return {
        "action": action.name,
        "method": _python_name(action.name, taken),
        "signature": f"{action.name}({', '.join(f'{name}: {show_type(kind)}' for name, _, kind in params)})",
        "params": "".join(f", {name}: {python_type(kind)}" for _, name, kind in params),
        "statements": "\n".join(f"    {line}" for line in bare if line).replace("\\", "\\\\"),
    }


def _variable(name: str, kind: Type, value: Any) -> Row:
    return {"variable": name, "attribute": _python_name(name, set()), "type": show_type(kind),
            "python_type": python_type(kind), "value": literal(value), "form": form(kind)}  # fmt: skip


def _python_name(name: str, taken: set[str]) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in taken else name


def python_type(kind: Type) -> str:
    """The annotation of a type's plain values (`conform.contract.values`)."""
    match kind:
        case Bool():
            return "bool"
        case Int():
            return "int"
        case Enum() | Sort():
            return "str"
        case Option(Option()) | Union():
            return "Any"
        case Option():
            return f"{python_type(kind.item)} | None"
        case Record(is_tuple=True):
            return f"tuple[{', '.join(python_type(item) for _, item in kind.fields)}]"
        case Record():
            return "Mapping[str, Any]"
        case Map():
            return f"Mapping[{python_type(kind.key)}, {python_type(kind.value)}]"
        case Set(keyed=True):
            key, item = kind.pair
            return f"Mapping[{python_type(key)}, {python_type(item)}]"
        case Set():
            return f"frozenset[{python_type(kind.item)}]"
        case Seq() | Bag():
            return f"tuple[{python_type(kind.item)}, ...]"


def form(kind: Type) -> str:
    """The names and variants in a type, which its annotation does not show."""
    return "".join(f"; {part}" for part in dict.fromkeys(_forms(kind)))


def _forms(kind: Type) -> Iterator[str]:
    match kind:
        case Enum() | Sort():
            names = ", ".join(f'"{name}"' for name in kind.members[:MOST_EXAMPLES])
            yield f"{show_type(kind)}: {names}{', ...' * (len(kind.members) > MOST_EXAMPLES)}"
        case Option() | Seq() | Bag():
            yield from _forms(kind.item)
        case Set():
            yield from (part for item in (kind.pair if kind.keyed else (kind.item,)) for part in _forms(item))
        case Map():
            yield from (*_forms(kind.key), *_forms(kind.value))
        case Record():
            yield from (part for _, item in kind.fields for part in _forms(item))
        case Union():
            yield f"{show_type(kind)}: " + ", ".join(f'("{name}", {{...}})' for name, _ in kind.variants)
        case _:
            return


def literal(value: Any) -> str:
    """A plain value as Python text."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(literal, value)))}}})" if value else "frozenset()"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value) if isinstance(value, int | type(None)) else f"Some({literal(value.value)})"
