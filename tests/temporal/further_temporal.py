"""Random specs with the whole language (`further_specs`), fairness and temporal properties."""

from __future__ import annotations

import re
from random import Random

from agreement.further_exprs import FurtherWriter
from agreement.further_specs import further_spec
from agreement.random_types import BOOL, NODE, number

HEADS = re.compile(r"^action (\w+)\((.*)\):$", re.MULTILINE)
PARAMETER = re.compile(r"\bv\d+(?=: )")
BEAT = """
var beat : 0..{0} = 0
action tick():
    beat' = (beat + 1) % ({0} + 1)
{1}fair tick"""
FORMS = ("leadsto", "leadsto", "eventually", "always eventually", "eventually always")


def further_temporal(random: Random) -> str:
    """A further spec with one or two temporal properties, and fairness of actions and of instances."""
    declared, models = further_spec(random, _properties).split("\nmodel m:")
    if random.random() < 0.6:  # without rests, so that loops are judged
        declared += BEAT.format(random.randint(1, 2), random.choice(("", "strong ")))
    fair = [line for name, params in HEADS.findall(declared) for line in _fairness(random, name, params)]
    return "\n".join([declared, *fair, f"model m:{models}"])


def _properties(random: Random, writer: FurtherWriter) -> list[str]:
    lines = []
    for place in range(random.randint(1, 2)):
        clauses = [_clause(random, writer) for _ in range(random.choice((1, 1, 2)))]
        lines += [f"liveness live{place}:", *(f"    {clause}" for clause in clauses)]
    return lines


def _clause(random: Random, writer: FurtherWriter) -> str:
    if random.random() < 0.3:
        name, kind = writer.name(), random.choice((NODE, BOOL, number(0, 1)))
        domain = {"int": "0..1", "bool": "{false, true}"}.get(kind.kind, kind.text)
        body = writer.within(name, kind, lambda: _formula(random, writer))
        return f"forall {name} in {domain}: ({body})"
    return _formula(random, writer)


def _formula(random: Random, writer: FurtherWriter) -> str:
    def states() -> str:
        return writer.expr(BOOL, random.choice((1, 2, 3)))

    form = random.choice(FORMS)
    return f"{states()} leadsto {states()}" if form == "leadsto" else f"{form} ({states()})"


def _fairness(random: Random, name: str, params: str) -> list[str]:
    names = PARAMETER.findall(params)
    lines = []
    for strong in ("", "strong "):
        if random.random() < 0.4:
            kept = ", ".join(random.choice((param, "_")) for param in names)
            lines.append(f"{strong}fair {name}{f'({kept})' if kept and random.random() < 0.6 else ''}")
    return lines
