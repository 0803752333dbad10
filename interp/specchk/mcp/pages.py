"""Answers of a bounded size: a JSON value with stubs in place of the parts that do not fit.

A stub names the place of its part, so that a client reads on there:

    {"levels": [1, 4, 9, {"more": "/levels", "from": 3, "items": 812}]}

A token is counted as three characters: JSON and specs have three to four for each token of common models, so
this is on the safe side.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

CHARS_PER_TOKEN = 3
TOKENS = 5000  # of an answer, unless a client asks for another size
MOST_TOKENS = 20_000  # a common client refuses answers of 25 000
_STUB = 90  # characters that a stub may take, besides its path
_LEAST = 200  # characters: below this, a part is a stub rather than a beginning


class NoPart(Exception):
    """There is no such part; the text is for the client."""


def text_of(value: Any) -> str:
    """The value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def fitted(value: Any, tokens: int) -> str:
    """The value as JSON of at most that many tokens, with stubs for what does not fit."""
    return _bounded(value, tokens, "", 0)


def part(value: Any, path: str, start: int) -> Any:
    """The part of a value at a path, such as `/violations/0/trace`, from an item on; raises `NoPart`."""
    for word in path.split("/")[1:] if path.startswith("/") else filter(None, path.split("/")):
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            parts = (
                list(value)
                if isinstance(value, dict)
                else range(len(value))
                if isinstance(value, list)
                else ()
            )
            raise NoPart(
                f"there is no part {name!r} of {path}; there are {', '.join(map(str, parts)) or 'none'}"[:500]
            )
    return value


def page(value: Any, path: str, start: int, tokens: int) -> str:
    """The part of a value at a path, from an item (or character) on; raises `NoPart`."""
    chosen = part(value, path, start)
    if isinstance(chosen, dict):
        rest: Any = dict(list(chosen.items())[start:])
    else:
        rest = chosen[start:] if isinstance(chosen, list | str) else chosen
    return _bounded(rest, tokens, path.rstrip("/"), start)


def _bounded(value: Any, tokens: int, path: str, start: int) -> str:
    room = tokens * CHARS_PER_TOKEN
    text = text_of(_fitted(value, room, path, start))
    return text if len(text) <= room else text_of(_stub(path, value, start))


def _fitted(value: Any, room: int, path: str, start: int) -> Any:
    if len(text_of(value)) <= room:
        return value
    if room < _LEAST + len(path):
        return _stub(path, value, start)
    match value:
        case str():
            return _text(value, room, path, start)
        case list():
            return _items(value, room, path, start)
        case dict():
            return _members(value, room, path, start)
    return value


def _text(value: str, room: int, path: str, start: int) -> str:
    kept = value[: max(0, (room - _STUB - len(path)) // 2)]  # of JSON, a character may be an escape
    return f"{kept} [... more: {path} from {start + len(kept)}]"


def _items(value: Sequence[Any], room: int, path: str, start: int) -> list[Any]:
    """The first items, and a stub for the others."""
    kept: list[Any] = []
    left = room - _STUB - len(path)
    for number, item in enumerate(value):
        size = len(text_of(item)) + 2
        if size > left:
            if not kept:  # the first is shortened: it may be all that there is
                kept.append(_fitted(item, left, f"{path}/{start + number}", 0))
            break
        kept.append(item)
        left -= size
    if len(kept) < len(value):
        kept.append(_stub(path, value[len(kept) :], start + len(kept)))
    return kept


def _members(value: dict[str, Any], room: int, path: str, start: int) -> dict[str, Any]:
    """All members, the largest shortened; of more than fit, the first."""
    names = {name: len(text_of(name)) + 4 for name in value}
    if sum(names.values()) + len(names) * (_STUB + len(path)) > room:
        kept = dict(list(value.items())[: max(1, room // 2 // (_STUB + len(path)))])
        rest = (
            {"...": _stub(path, value, start + len(kept), len(value) - len(kept))}
            if len(kept) < len(value)
            else {}
        )
        return {**_shares(kept, room - _STUB - len(path), path), **rest}
    return _shares(value, room, path)


def _shares(value: dict[str, Any], room: int, path: str) -> dict[str, Any]:
    """The members, each with a fair share of the room: what a small one leaves is for the others."""
    sizes = {name: len(text_of(member)) for name, member in value.items()}
    left = room - sum(len(text_of(name)) + 4 for name in value) - 2
    shares = {}
    for done, (name, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[name] = min(size, max(0, left // (len(sizes) - done)))
        left -= shares[name]
    return {
        name: _fitted(member, shares[name], f"{path}/{_escaped(name)}", 0) for name, member in value.items()
    }


def _stub(path: str, value: Any, start: int, items: int | None = None) -> Any:
    if not isinstance(value, list | dict | str):
        return value
    return {"more": path or "/", "from": start, "items": len(value) if items is None else items}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
