"""Reports on conditions that never decide, as text and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from specchk.explore.conditions import Condition, Decided
from specchk.explore.variants import Key, Proposals
from specchk.report.text import counted, wrapped

MOST_CHARACTERS = 60  # of a condition's text
EFFECTS = MappingProxyType({
    "allows": "never alone allows the step",
    "forbids": "never alone forbids the step",
    "takes": "never alone takes the branch",
    "avoids": "never alone avoids the branch",
    "fulfils": "never alone fulfils the property",
})  # fmt: skip


def undecided(models: Sequence[Decided]) -> list[Condition]:
    """The conditions that decide in no model, in the order of the first model that contains them."""
    deciding = {condition.key for model in models for condition in model.deciding}
    left = {condition.key: condition for model in reversed(models) for condition in reversed(model.never)}
    return [condition for key, condition in reversed(left.items()) if key not in deciding]


def render_conditions(
    models: Sequence[Decided],
    proposed: Proposals | None,
    width: int,
    impossible: Collection[Key] | None = None,
) -> str:
    """The numbers of each model, then the conditions that decide in no model, by action and property.

    Behind them the models proposed for these; `impossible` are those shown to decide for no offset.
    """
    lines: list[str] = []
    for model in models:
        lines += wrapped(_counts(model), width, 0)
        if model.never_taken:
            lines += wrapped(f"never taken: {', '.join(model.never_taken)}", width, 2)
        for condition in model.unknown:
            lines += wrapped(f"without a value in some state: {_shown(condition)}", width, 2)
    # Of an action that is never taken one line says enough.
    silent = set.intersection(*[set(model.never_taken) for model in models])
    left = [condition for condition in undecided(models) if condition.owner not in silent]
    for owner, conditions in groupby(left, attrgetter("owner")):
        lines += ["", owner]
        for condition in conditions:
            proof = ", impossible for all offsets" if condition.key in (impossible or ()) else ""
            lines += wrapped(f"{EFFECTS[condition.effect]}: {_shown(condition)}{proof}", width, 2)
    if impossible is not None:
        summary = f"{len(impossible)} of {len(undecided(models))} are impossible for all offsets"
        lines += ["", *wrapped(summary, width, 0)]
    if proposed is not None:
        lines += ["", *_proposed(proposed, width)]
    return "\n".join(lines)


def _proposed(proposed: Proposals, width: int) -> Iterator[str]:
    for model in proposed.models:
        yield from wrapped(
            f"{model.at.options()}: {len(model.conditions)} decide in {model.states} states", width, 0
        )
        for condition in model.conditions:
            yield from wrapped(f"{condition.owner} {condition.effect}: {_shown(condition)}", width, 2)
    cut = f", {proposed.cut} of them not in full" if proposed.cut else ""
    summary = f"{len(proposed.left)} decide in none of {proposed.searched} models with other bounds{cut}"
    yield from wrapped(summary, width, 0)


def _counts(model: Decided) -> str:
    every = len(model.deciding) + len(model.never) + len(model.unknown)
    ended = "" if model.is_complete else f" ({model.ended})"
    return (
        f"{len(model.deciding)} of {every} conditions decide in {counted(model.states, 'state')}{ended}: "
        f"{model.program.spec}, model {model.program.model}"
    )


def _shown(condition: Condition) -> str:
    text = " ".join(condition.span.text.split())
    short = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."
    return f"`{short}` at {condition.span.where}"


def conditions_json(
    models: Sequence[Decided], proposed: Proposals | None, exit_code: int,
    impossible: Collection[Key] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The report as JSON; see docs/json.md for its members."""
    return {
        "version": 1,
        "exit_code": exit_code,
        "models": [
            {
                "spec": model.program.spec,
                "model": model.program.model,
                "states": model.states,
                "complete": model.is_complete,
                "never_taken": list(model.never_taken),
                "deciding": [_json(condition) for condition in model.deciding],
                "never": [_json(condition) for condition in model.never],
                "without_value": [_json(condition) for condition in model.unknown],
            }
            for model in models
        ],
        "undecided": [_json(condition) for condition in undecided(models)],
        "impossible": None
        if impossible is None
        else [_json(condition) for condition in undecided(models) if condition.key in impossible],
        "proposed": None if proposed is None else _proposed_json(proposed),
    }


def _proposed_json(proposed: Proposals) -> dict[str, Any]:
    return {
        "models": [
            {
                "model": model.at.model,
                "set": dict(model.at.bounds),
                "states": model.states,
                "deciding": [_json(condition) for condition in model.conditions],
            }
            for model in proposed.models
        ],
        "searched": proposed.searched,
        "incomplete": proposed.cut,
        "left": len(proposed.left),
    }


def _json(condition: Condition) -> dict[str, str]:
    return {
        "owner": condition.owner,
        "effect": condition.effect,
        "text": condition.span.text,
        "at": condition.span.where,
    }
