# ruff: noqa: C901 - one case a function
"""The values of the naive interpreter, and the built-in functions on them (see `naive`)."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from specchk.lang.syntax.tree import Bound


class Nothing(Exception):
    """There is no value."""


class Cut(Exception):
    """A number is above its horizon."""


class Dict(dict):  # type: ignore[type-arg]
    """A dict that can be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def order(value: Any) -> Any:
    """A key that sorts values of one type in the order of the language: records and maps by their keys."""
    if isinstance(value, frozenset):
        return sorted(order(item) for item in value)
    if isinstance(value, Dict):
        return [order(value[key]) for key in sorted(value, key=order)]
    if isinstance(value, tuple):
        return [order(item) for item in value]
    return value


def ascending(values: Any) -> list[Any]:
    return sorted(values, key=order)


def counted(items: Any) -> Dict:
    found = Dict()
    for item in items:
        found[item] = found.get(item, 0) + 1
    return found


def subsets(items: Any) -> list[frozenset[Any]]:
    return [frozenset(c) for size in range(len(items) + 1) for c in combinations(items, size)]


def builtin(name: str, args: list[Any]) -> Any:
    first, *rest = args
    if name in ("min", "max"):
        values = list(first) if not rest else args
        if not values:
            raise Nothing
        return min(values) if name == "min" else max(values)
    if name in ("head", "last", "tail") and not first:
        raise Nothing
    if name in ("prefix", "suffix") and not 0 <= rest[0] <= len(first):
        raise Nothing
    if (name == "get" and not rest and not first) or (name == "remove" and rest[0] not in first):
        raise Nothing
    match name:
        case "sum":
            return sum(first)
        case "card":
            return sum(first.values()) if isinstance(first, Dict) else len(first)
        case "len":
            return len(first)
        case "subsets":
            return frozenset(subsets(sorted(first)))
        case "maps":
            chosen = product(list(rest[0]), repeat=len(first))
            return frozenset(Dict(zip(first, values, strict=True)) for values in chosen)
        case "keys":
            return frozenset(first)
        case "some":
            return ("some", first)
        case "get":
            return first[1] if first else rest[0]
        case "head":
            return first[0]
        case "last":
            return first[-1]
        case "tail":
            return first[1:]
        case "append":
            return (*first, rest[0])
        case "prefix":
            return first[: rest[0]]
        case "suffix":
            return first[rest[0] :]
        case "elements":
            return frozenset(first)
        case "add":
            return Dict({**first, rest[0]: first.get(rest[0], 0) + 1})
        case "remove":
            left = {**first, rest[0]: first[rest[0]] - 1}
            return Dict({k: n for k, n in left.items() if n})
        case "count":
            return first.get(rest[0], 0)
    raise AssertionError(name)


def binding(names: dict[str, Any], bound: Bound, value: Any) -> dict[str, Any]:
    """Names with a value bound to one, or its parts to several."""
    if isinstance(bound, str):
        return {**names, bound: value}
    for number, part in enumerate(bound, 1):
        names = binding(names, part, value[str(number)])
    return names


def read(names: dict[str, Any], bound: Bound) -> Any:
    """The bound value."""
    if isinstance(bound, str):
        return names[bound]
    return Dict({str(number): read(names, part) for number, part in enumerate(bound, 1)})
