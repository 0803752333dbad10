"""Specs that use `enabled`: any spec's text, changed in guards, properties and definitions."""

from __future__ import annotations

import re
from random import Random

ACTION = re.compile(r"^action (\w+)\((.*)\):\n", re.MULTILINE)


def use_of(random: Random, name: str, params: list[tuple[str, str]]) -> str:
    """A predicate about the instances of one action."""
    if not params or random.random() < 0.3:
        return f"enabled({name})"
    args, binders = [], []
    for index, (_, kind) in enumerate(params):
        if random.random() < 0.4 or "upto" in kind or "?" in kind:
            args.append("_")
        else:
            args.append(f"e{index}")
            binders.append(f"e{index} in {kind}")
    call = f"enabled({name}({', '.join(args)}))"
    if not binders:
        return call
    return f"({random.choice(('forall', 'exists'))} {', '.join(binders)}: {call})"


def actions_of(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """The actions of a spec, with the names and types of their parameters."""
    return [
        (
            name,
            [(pair.split(":")[0].strip(), pair.split(":")[1].strip()) for pair in params.split(",") if pair],
        )
        for name, params in ACTION.findall(text)
    ]


def with_enabled(random: Random, text: str) -> str:
    """The spec with guards and properties on whether actions are enabled; none depends on itself."""
    actions = actions_of(text)

    def use(first: int = 0) -> str:
        found = use_of(random, *random.choice(actions[first:]))
        return f"not {found}" if random.random() < 0.3 else found

    def guarded(found: re.Match[str]) -> str:
        place = [name for name, _ in actions].index(found[1]) + 1
        if place == len(actions) or random.random() < 0.5:
            return found[0]
        asked = f"(let was = {use(place)}: was or {use(place)})" if random.random() < 0.3 else use(place)
        return f"{found[0]}    require {asked}\n"

    lines = [
        f"def any_left(): bool = {use()} or {use()}",
        f"invariant en0: {use()} implies {use()}",
        f"reachable en1: {use()} and {use()}",
        f"step invariant en2: {use()} or any_left()' or ({use()})'",
    ]
    if "deadlock ok" not in text and random.random() < 0.5:
        lines.append(f"deadlock ok when {use()}")
    head, model, rest = ACTION.sub(guarded, text).partition("\nmodel ")
    return "\n".join([head, *random.sample(lines[1:], random.randint(1, len(lines) - 1)), lines[0], ""])[
        :-1
    ] + (model + rest)
