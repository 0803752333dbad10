"""The protocol between specchk and an implementation process: one JSON object per line, both ways.

Every request has an `id` and one member that names its kind; the answer has the same `id` and one member
of those that the kind allows.  docs/any-language.md has the whole protocol.

    {"id": 7, "do": "write", "args": {"client": "c1"}}      {"id": 7, "refused": "stale token"}

Invariants: requests are ASCII without a line end inside.  Not here: pipes and time (`link`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import Any

from msgspec import Struct

VERSION = 1
CAPABILITIES = ("reset", "snapshot", "ask")
LONGEST_SHOWN = 240  # characters of a line in a report

# The members that may answer a request, by its kind; an `error` may answer any.
ANSWERS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "hello": ("ready",), "do": ("accepted", "refused", "impossible"), "observe": ("state",),
    "snapshot": ("snapshot",), "restore": ("ok",), "reset": ("ok",), "ask": ("answer",), "quit": ("ok",),
})  # fmt: skip
REASONS = ("refused", "impossible", "error")  # their values are texts


class BrokenProtocol(Exception):
    """A line that is not a valid answer to its request."""


class WireRequest(Struct, frozen=True):
    """A request without its id: its kind, the fields of that kind, and the arguments of `do` and `ask`."""

    kind: str
    what: Any = True
    args: Mapping[str, Any] | None = None

    def line(self, number: int) -> bytes:
        """The request as sent."""
        sent = {
            "id": number,
            self.kind: self.what,
            **({} if self.args is None else {"args": dict(self.args)}),
        }
        return json.dumps(sent, separators=(",", ":"), allow_nan=False).encode() + b"\n"

    def __str__(self) -> str:
        args = "" if not self.args else " " + json.dumps(dict(self.args), separators=(",", ":"))
        return shortened(f"{self.kind} {self.what}{args}" if isinstance(self.what, str) else self.kind)


class WireAnswer(Struct, frozen=True):
    """An answer: the name of its member, and the member's value."""

    member: str
    value: Any


def answer_of(line: bytes, number: int, request: WireRequest) -> WireAnswer:
    """The answer in a line; raises `BrokenProtocol`."""
    try:
        data = json.loads(line, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        where = "standard output is for responses, and logs go to standard error"
        raise BrokenProtocol(f"a line is not JSON: {shown_line(line)} ({where})") from None
    if not isinstance(data, dict):
        raise BrokenProtocol(f"a line is not a JSON object: {shown_line(line)}")
    # Before the rest: with the wrong id it is the answer to something else.
    if data.get("id") != number or isinstance(data.get("id"), bool):
        raise BrokenProtocol(f"the response has another id than the request, {number}: {shown_line(line)}")
    members = [name for name in (*ANSWERS[request.kind], "error") if name in data]
    if len(members) != 1:
        wanted = ", ".join(f"`{name}`" for name in (*ANSWERS[request.kind], "error"))
        raise BrokenProtocol(f"the response does not have exactly one member of {wanted}: {shown_line(line)}")
    member = members[0]
    if member == "ok" and data[member] is not True:
        raise BrokenProtocol(f"`ok` is not true: {shown_line(line)}")
    if member in REASONS and not isinstance(data[member], str):
        raise BrokenProtocol(f"`{member}` is not a string: {shown_line(line)}")
    return WireAnswer(member, data[member])


def _finite(text: str) -> float:
    """Reject a number beyond all floats, which would be read as an infinity."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _no_constant(name: str) -> Any:
    """Reject `NaN` and infinities, which Python reads, but JSON does not have."""
    raise ValueError(name)


def shown_line(line: bytes) -> str:
    """A line for a report: readable whatever bytes it contains."""
    return shortened(repr(line.decode("utf-8", "backslashreplace").rstrip("\n")))


def shortened(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


class Hello(Struct, frozen=True):
    """An implementation's answer to the first request: its version of the protocol and its capabilities."""

    protocol: int
    can: frozenset[str]


def hello_of(value: Any) -> Hello:
    """The contents of a `ready`; raises `BrokenProtocol`."""
    if not isinstance(value, dict) or type(value.get("protocol")) is not int:
        raise BrokenProtocol("`ready` is not an object with a `protocol`, a number")
    can = value.get("can", [])
    if not isinstance(can, list) or not all(isinstance(name, str) for name in can):
        raise BrokenProtocol("`can` is not a list of names")
    unknown = sorted(set(can) - set(CAPABILITIES))
    if unknown:
        known = ", ".join(CAPABILITIES)
        raise BrokenProtocol(f"`can` has {', '.join(unknown)}; protocol {VERSION} has {known}")
    return Hello(value["protocol"], frozenset(can))
