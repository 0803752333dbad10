"""The format of certificates: the reasons for a verdict `holds`, for an independent check.

A certificate is a set of states, described so that Z3 can decide three things: every initial state is in the
set, every step from it leads back into it, and the properties hold in all of it.  There are two kinds.

    zones        parts: for each control part its value, with null for offsets, and constraints on these: the
                 offsets are numbered from 1, and a constraint is the greatest value of a linear form
    invariants   names of invariants of the model, and lemmas as text: all states in which they hold

The first line of a file is a JSON object.  With parts, the second line lists the values of each variable and
the constraints, each once, and every further line describes a control part by positions in these lists.
Source of the idea: Namjoshi, "Certifying model checkers" (2001).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from typing import IO, Any

from msgspec import Struct, field

from specchk.meaning.linear import Form, Part, Terms

SCHEMA = "specchk.certificate/2"
Constraint = tuple[Terms, int]  # a linear form of places, and its greatest value


class MalformedCertificate(Exception):
    """A file that is not a certificate, or not a complete one; the text gives the line."""


class CertifiedPart(Struct, frozen=True):
    """The states of one control part whose offsets satisfy all constraints; an offset is None in `state`."""

    state: tuple[Any, ...]
    constraints: tuple[Constraint, ...]


class Certificate(Struct, frozen=True):
    """A spec, its model, and the states; `lemmas` are invariants of a proof that are not in the spec."""

    spec: str
    model: str | None
    constants: Mapping[str, str] = field(default_factory=dict)
    properties: tuple[str, ...] = ()
    invariants: tuple[str, ...] | None = None
    lemmas: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[CertifiedPart, ...] = ()


def read(file: IO[bytes]) -> Certificate:
    """The certificate in a file, which is closed; raises `MalformedCertificate`, and `OSError`."""
    try:
        with TextIOWrapper(file, encoding="utf-8") as lines:
            return parsed(lines)
    except UnicodeDecodeError:
        raise MalformedCertificate("it is not text") from None


def parsed(lines: Iterable[str]) -> Certificate:
    """The certificate from the lines of a file."""
    left = enumerate(lines, 1)
    head = _line(*next(left, (1, "")))
    if head.get("schema") != SCHEMA:
        raise MalformedCertificate(f"its first line has no schema {SCHEMA}")
    parts = tuple(_parts(left))
    if head.get("parts") != len(parts):
        raise MalformedCertificate(
            f"it has {len(parts)} parts, and its first line states {head.get('parts')}"
        )
    names = head.get("invariants")
    if (head.get("kind") == "invariants") != isinstance(names, list):
        raise MalformedCertificate("its first line has a kind that does not fit")
    model, spec = head.get("model"), head.get("spec")
    if not isinstance(spec, str) or not isinstance(model, str | None):
        raise MalformedCertificate("its first line names no spec and model")
    return Certificate(
        spec, model, _texts(head, "constants"), tuple(_names(head.get("properties") or [])),
        None if names is None else tuple(_names(names)), _texts(head, "lemmas"), parts,
    )  # fmt: skip


def _line(number: int, line: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise MalformedCertificate(f"line {number} is not a JSON object")
    return content


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedCertificate("its first line has names that are not strings")
    return names


def _texts(head: Mapping[str, Any], member: str) -> dict[str, str]:
    texts = head.get(member)
    if not isinstance(texts, dict) or not all(isinstance(one, str) for one in texts.values()):
        raise MalformedCertificate(f"its first line has no `{member}`")
    return texts


def _parts(left: Iterator[tuple[int, str]]) -> Iterator[CertifiedPart]:
    values, constraints = list[dict[int, Any]](), dict[int, Constraint]()
    for number, line in left:
        content, of = _line(number, line), "values and constraints" if number == 2 else "a control part"
        try:
            if number == 2:
                values = [dict(enumerate(map(_value, some))) for some in content["values"]]
                pairs = enumerate(content["constraints"])
                constraints = {at: (_form(terms)[0], _whole(most)) for at, (terms, most) in pairs}
                continue
            state = tuple([some[at] for some, at in zip(values, content["state"], strict=True)])
            parts = [tuple([constraints[at] for at in part]) for part in content["parts"]]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise MalformedCertificate(f"line {number} is not a line of {of}") from None
        yield from [CertifiedPart(state, part) for part in parts]


def _value(data: Any) -> Any:
    if isinstance(data, list):
        return tuple([_value(part) for part in data])
    if data is not None and not isinstance(data, int):
        raise TypeError(data)
    return data


def _form(data: Any) -> Form:
    return tuple([(_factor(part), _whole(times)) for part, times in data]), 0


def _factor(data: Any) -> Part:
    if isinstance(data, list):
        _, terms, plus, divisor = data
        if _whole(divisor) < 1:
            raise ValueError(data)
        return _form(terms)[0], _whole(plus), divisor
    return _whole(data)


def _whole(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise TypeError(data)
    return data
