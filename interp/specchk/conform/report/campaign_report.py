"""A campaign as text and as JSON, of a size independent of the number of recordings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from specchk.conform.recordings.campaign import Campaign
from specchk.conform.recordings.corrupt import KINDS
from specchk.conform.recordings.explanation import render

SCHEMA = "specchk.validate/1"
MOST_BLOCKED = 3
MOST_UNMAPPED = 5  # kinds


def verdict(campaign: Campaign) -> str:
    """`explained`, `diverges` or `vacuous`; a divergence takes precedence over a guard."""
    if campaign.tally.blocked.count:
        return "diverges"
    return "vacuous" if campaign.vacuous else "explained"


def text(campaign: Campaign) -> str:
    """The campaign as text: the unexplained events first, the figures last."""
    lines = []
    blocked = campaign.tally.blocked
    for one in blocked.items[:MOST_BLOCKED]:
        assert one.blocked is not None
        lines += [render(one.name, one.events, one.blocked), ""]
    if blocked.count > MOST_BLOCKED:
        more = "--json has them all" if not blocked.left else f"--json has the first {len(blocked.kept)}"
        lines += [f"{blocked.count - MOST_BLOCKED} more recordings are not explained; {more}", ""]
    lines += [f"vacuous: {reason}" for reason in campaign.vacuous]
    return "\n".join([*lines, *_figures(campaign)])


def _figures(campaign: Campaign) -> list[str]:
    numbers = figures(campaign)
    accepted, count = numbers["accepted"], numbers["recordings"]
    kinds = _kinds(numbers["kinds_seen"])
    lines = [
        f"{verdict(campaign)}: {accepted} of {count} recordings are behaviours of {campaign.spec}",
        f"  events      {numbers['consumed']} of {numbers['events']} consumed, {kinds}",
        f"  candidates  {numbers['candidates_mean']} states on average, at most {numbers['candidates_most']}",
        f"  silent      {numbers['silent']} steps",
    ]
    if numbers["power"] is not None:
        rates = ", ".join(f"{kind} {rate:.1%}" for kind, rate in numbers["power_by_kind"].items())
        lines.append(
            f"  power       {numbers['power']:.1%} of {numbers['copies']} corrupted copies rejected: {rates}"
        )
    else:
        lines.append("  power       not measured: no corrupted copy was made")
    lines.append(f"  unmapped    {_counted(numbers['unmapped'])}")
    return lines


def _counted(unmapped: Mapping[str, int]) -> str:
    """The lines that no method reads, the most frequent kinds first."""
    if not unmapped:
        return "no lines"
    kinds = sorted(unmapped.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"`{kind}` {count}" for kind, count in kinds[:MOST_UNMAPPED])
    more = f", and {len(kinds) - MOST_UNMAPPED} more" if len(kinds) > MOST_UNMAPPED else ""
    count = sum(unmapped.values())
    return f"{count} line{'s' * (count != 1)}, {_kinds(len(kinds))}: {shown}{more}"


def _kinds(count: int) -> str:
    return f"{count} kind{'s' * (count != 1)}"


def figures(campaign: Campaign) -> dict[str, Any]:
    """The figures of a campaign, without times."""
    tally = campaign.tally
    power = {kind: tally.power(kind) for kind in KINDS}
    return {
        "recordings": tally.recordings,
        "accepted": tally.accepted,
        "diverging": tally.blocked.count,
        "without_verdict": tally.bad.count,
        "events": tally.events,
        "consumed": tally.consumed,
        "kinds_seen": len(tally.kinds),
        "kinds": dict(sorted(tally.kinds.items())),
        "candidates_mean": round(tally.total / max(tally.consumed, 1), 2),
        "candidates_most": tally.most,
        "unmapped": dict(sorted(tally.unmapped.items())),
        "silent": tally.silent,
        "acted": tally.acted,
        "copies": sum(tally.copies.values()),
        "power": tally.power(),
        "power_by_kind": {kind: rate for kind, rate in power.items() if rate is not None},
    }


def as_json(campaign: Campaign, exit_code: int) -> dict[str, Any]:
    """The campaign as plain values; `missed` lists the corrupted copies that were explained."""
    tally, numbers = campaign.tally, figures(campaign)
    rate = round(tally.consumed / tally.seconds) if tally.seconds else None
    return {
        "schema": SCHEMA,
        "tracing": campaign.tracing,
        "spec": campaign.spec,
        "verdict": verdict(campaign),
        **numbers,
        "events_per_second": rate,
        "seconds": round(campaign.seconds, 3),
        "workers": campaign.workers,
        "vacuous": list(campaign.vacuous),
        "blocked": [{"recording": one.name, **to_builtins(one.blocked)}
                    for one in tally.blocked.items if one.blocked],
        "missed": [to_builtins(one) for one in tally.missed.items],
        "exit_code": exit_code,
    }  # fmt: skip
