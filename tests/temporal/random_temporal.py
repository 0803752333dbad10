"""Random small graphs as specs, with fairness of actions and of instances, horizons and constraints."""

from __future__ import annotations

import re
from random import Random

FORMS = ("leadsto", "eventually", "always eventually", "eventually always", "forall", "both")


def random_temporal(random: Random) -> str:
    """A spec of a graph of at most seven states, and one temporal property."""
    last = random.randint(1, 6)
    # Half of them are rich in steps and fairness: there nearly every state owes something, so that loops
    # are judged, and not only rests.
    rich = random.random() < 0.5
    horizon = random.random() < 0.3
    lines = ["spec random", f"type S = {'nat upto' if horizon else '0..'} {last}".replace(".. ", "..")]
    if random.random() < 0.5:
        lines.append(f"var s : S = {random.randint(0, last)}")
    else:
        lines.append(f"var s : S in {_set(random, last, at_least=1)}")
    names = ["a", "b", "c"][: random.randint(1, 3)]
    params = {name: random.choice(["", "", "p: 0..1", "p: 0..1, q: 0..1"]) for name in names}
    for name in names:
        lines += [f"action {name}({params[name]}):", "    either:", "        require false", "        skip"]
        for _ in range(random.randint(3, 9) if rich else random.randint(1, 5)):
            lines += ["    or:", *_edge(random, last, params[name], beyond=horizon)]
    for name in names:
        for strong in ("", "strong "):
            if random.random() < (0.6 if rich else 0.4):
                lines.append(f"{strong}fair {name}{_kept(random, params[name])}")
    # Of another source of chance, so that all else is what it was for a seed.
    lines += _of_several(Random("\n".join(lines)), params)
    lines += [f"liveness l: {_formula(random, last)}", "deadlock ok"]
    if random.random() < 0.2:
        lines.append(f"constraint k: s in {_set(random, last, at_least=last)}")
    return "\n".join([*lines, "model m:", "    expect holds", ""])


def with_undefined_steps(text: str, random: Random) -> str:
    """The same spec, in which a quarter of the steps to one state are undefined."""

    def changed(step: re.Match[str]) -> str:
        return "s' = min({n for n in {s} if n > s})" if random.random() < 0.25 else step[0]

    return re.sub(r"s' = \d+", changed, text)


def _edge(random: Random, last: int, params: str, *, beyond: bool) -> list[str]:
    guards = [f"s == {random.randint(0, last)}" if random.random() < 0.8 else f"s in {_set(random, last)}"]
    guards += [f"{p} == {random.randint(0, 1)}" for p in "pq" if f"{p}:" in params and random.random() < 0.6]
    pad = "        "
    goal = random.randint(0, last + (beyond and random.random() < 0.4))
    ends = [f"s' = {goal}", f"s' = {goal}", f"s' in {_set(random, last)}", "skip"]
    if beyond:
        ends.append("s' = s + 1")
    return [f"{pad}require {' and '.join(guards)}", f"{pad}{random.choice(ends)}"]


def _kept(random: Random, params: str) -> str:
    names = [p for p in "pq" if f"{p}:" in params]
    if not names or random.random() < 0.4:
        return ""
    return f"({', '.join(random.choice([name, '_']) for name in names)})"


def _of_several(random: Random, params: dict[str, str]) -> list[str]:
    """Fairness of one action out of several, or of instances over a part of the values."""
    if random.random() < 0.5:
        return []
    names = random.sample(sorted(params), random.randint(1, len(params)))
    strong = random.choice(["", "strong "])
    if random.random() < 0.5:
        return [f"{strong}fair {' or '.join(name + _kept(random, params[name]) for name in names)}"]
    bound = random.choice(["v in 0..1", "v in {1}", "v in 0..1, w in 0..v", "(v, w) in {(0, 1), (1, 1)}"])
    choices = ["v", "_", "w"] if "w" in bound else ["v", "_"]
    slots = [[random.choice(choices) for _ in range(params[name].count(":"))] for name in names]
    parts = [f"{name}({', '.join(own)})" if own else name for name, own in zip(names, slots, strict=True)]
    return [f"{strong}fair forall {bound}: {' or '.join(parts)}"]


def both_ways(random: Random) -> tuple[str, str]:
    """A spec with fairness of `a or b`, and one with fairness of one action with the ways of both."""
    last = random.randint(1, 6)
    params = random.choice(["", "p: 0..1", "p: 0..1, q: 0..1"])
    ways = [
        [
            line
            for _ in range(random.randint(1, 6))
            for line in ("    or:", *_edge(random, last, params, beyond=False))
        ]
        for _ in range(3)
    ]
    before = ["spec random", f"type S = 0..{last}", f"var s : S in {_set(random, last, at_least=1)}"]
    kept = _kept(random, params)
    strong, other = random.choice(["", "strong "]), random.choice(["", "fair c\n", "strong fair c\n"])
    after = [
        f"{other}liveness l: {_formula(random, last)}",
        "deadlock ok",
        "model m:",
        "    expect holds",
        "",
    ]

    def action(name: str, *of: list[str]) -> list[str]:
        head = [f"action {name}({params}):", "    either:", "        require false", "        skip"]
        return [*head, *[line for way in of for line in way]]

    a, b, c = ways
    apart = [*action("a", a), *action("b", b), *action("c", c), f"{strong}fair a{kept} or b{kept}"]
    joined = [*action("ab", a, b), *action("c", c), f"{strong}fair ab{kept}"]
    return "\n".join([*before, *apart, *after]), "\n".join([*before, *joined, *after])


def _formula(random: Random, last: int) -> str:
    def states() -> str:
        return f"s in {_set(random, last)}"

    form = random.choice(FORMS)
    if form == "leadsto":
        return f"{states()} leadsto {states()}"
    if form == "forall":
        return f"forall n in 0..1: s == n leadsto s in {{n + 1, {random.randint(0, last)}}}"
    if form == "both":
        return f"always eventually ({states()}) and (eventually always ({states()}))"
    return f"{form} ({states()})"


def _set(random: Random, last: int, at_least: int = 0) -> str:
    found = [n for n in range(last + 1) if random.random() < 0.4]
    while len(found) < at_least:
        found = sorted({*found, random.randint(0, last)})
    return "{" + ", ".join(map(str, found)) + "}"
