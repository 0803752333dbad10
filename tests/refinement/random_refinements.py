"""Random pairs of specs: one is the other with a few changes, and claims to refine it."""

from __future__ import annotations

import re
from random import Random

from agreement.random_specs import random_spec

_NAMES = re.compile(r"(?<!is )\b(Colour|red|green|blue|Message|Flag|Maybe|Key)\b")
# The tags of a union are bare in patterns and behind `is`.
_TAGS = re.compile(r"(?<!is )\b(Ping|Tick|Stop)\b(?!\s*\w*\s*:)")
_NUMBER = re.compile(r"\b[0-3]\b")
_CLAIMS = ("invariant", "reachable", "constraint", "step", "deadlock", "model", "    Node", "type")


def random_refinement(random: Random) -> tuple[str, str]:
    """The refined spec `whole`, and one that may refine it."""
    whole = random_spec(random).replace("spec random_spec", "spec whole")
    lines = whole.replace("spec whole", "spec part").splitlines()
    kept = [_qualified(line) for line in lines if not line.startswith(_CLAIMS)]
    for _ in range(random.randint(0, 3)):
        _change(random, kept)
    variables = re.findall(r"^var (\w+)", whole, re.MULTILINE)
    mapping = ", ".join(f"{name} = {name}" for name in ["Node", "home", *variables])
    if random.random() < 0.6:
        whole = _without_action(random, whole)
    claim = [
        f"refines whole as w with {{ {mapping} }}",
        "deadlock ok",
        "model m:",
        "    Node = 3, home = first",
    ]
    return whole, "\n".join([*kept, *claim, ""])


def _without_action(random: Random, text: str) -> str:
    """The text without one of its actions, or with a guard in it that is seldom true."""
    names = re.findall(r"^action (\w+)", text, re.MULTILINE)
    head = re.compile(rf"^action {random.choice(names)}\(.*\):\n((?:    .*\n)+)", re.MULTILINE)
    found = head.search(text)
    assert found is not None
    body = "" if random.random() < 0.5 else f"    require {random.choice(['false', 'x0 == x0 and false'])}\n"
    if body:
        return text[: found.start(1)] + body + text[found.start(1) :]
    return text[: found.start()] + text[found.end() :]


def _qualified(line: str) -> str:
    return _TAGS.sub(r"w.\1", _NAMES.sub(r"w.\1", line))


def _change(random: Random, lines: list[str]) -> None:
    """One number of an action or initial value is changed, or one guard is removed."""
    at = random.randrange(len(lines))
    line = lines[at]
    if line.lstrip().startswith("require") and random.random() < 0.5:
        lines[at] = line[: len(line) - len(line.lstrip())] + "skip"
    elif (line.startswith((" ", "var"))) and (found := list(_NUMBER.finditer(line))):
        one = random.choice(found)
        lines[at] = f"{line[: one.start()]}{random.randint(0, 2)}{line[one.end() :]}"
