"""A campaign as text and as plain JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from specchk.conform.recordings.campaign import Campaign
from specchk.conform.recordings.corrupt import KINDS
from specchk.conform.recordings.explanation import render

SCHEMA = "specchk.validate/1"
MOST_BLOCKED = 3


def verdict(campaign: Campaign) -> str:
    """`explained`, `diverges` or `vacuous`; a divergence is worth more than a guard."""
    if any(result.blocked for result in campaign.results):
        return "diverges"
    return "vacuous" if campaign.vacuous else "explained"


def text(campaign: Campaign) -> str:
    """The campaign as text: the unexplained events first, figures last."""
    lines = []
    blocked = [result for result in campaign.results if result.blocked]
    for one in blocked[:MOST_BLOCKED]:
        assert one.blocked is not None
        lines += [render(one.name, one.events, one.blocked), ""]
    if len(blocked) > MOST_BLOCKED:
        lines += [f"{len(blocked) - MOST_BLOCKED} more recordings are not explained; --json has them all", ""]
    lines += [f"vacuous: {reason}" for reason in campaign.vacuous]
    return "\n".join([*lines, *_figures(campaign)])


def _figures(campaign: Campaign) -> list[str]:
    numbers = figures(campaign)
    accepted, count = numbers["accepted"], numbers["recordings"]
    lines = [
        f"{verdict(campaign)}: {accepted} of {count} recordings are behaviours of {campaign.spec}",
        f"  events      {numbers['consumed']} of {numbers['events']} consumed, {numbers['kinds_seen']} kinds",
        f"  candidates  {numbers['candidates_mean']} states on average, at most {numbers['candidates_most']}",
        f"  silent      {numbers['silent']} steps",
    ]
    if numbers["power"] is not None:
        kinds = ", ".join(f"{kind} {rate:.1%}" for kind, rate in numbers["power_by_kind"].items())
        lines.append(
            f"  power       {numbers['power']:.1%} of {numbers['copies']} spoiled copies rejected: {kinds}"
        )
    return lines


def figures(campaign: Campaign) -> dict[str, Any]:
    """The numbers of a campaign, times aside."""
    results = campaign.results
    consumed = sum(result.consumed for result in results)
    power = {kind: campaign.power(kind) for kind in KINDS}
    return {
        "recordings": len(results),
        "accepted": sum(result.accepted for result in results),
        "events": sum(result.events for result in results),
        "consumed": consumed,
        "kinds_seen": len(campaign.kinds),
        "kinds": dict(sorted(campaign.kinds.items())),
        "candidates_mean": round(sum(result.total for result in results) / max(consumed, 1), 2),
        "candidates_most": max((result.most for result in results), default=0),
        "silent": sum(result.silent for result in results),
        "acted": sum(result.acted for result in results),
        "copies": len(campaign.copies),
        "power": campaign.power(),
        "power_by_kind": {kind: rate for kind, rate in power.items() if rate is not None},
    }


def as_json(campaign: Campaign, exit_code: int) -> dict[str, Any]:
    """The campaign as plain values; `missed` are the spoiled copies that were explained all the same."""
    seconds = sum(result.seconds for result in campaign.results)
    numbers = figures(campaign)
    return {
        "schema": SCHEMA,
        "tracing": campaign.tracing,
        "spec": campaign.spec,
        "verdict": verdict(campaign),
        **numbers,
        "events_per_second": round(numbers["consumed"] / seconds) if seconds else None,
        "seconds": round(campaign.seconds, 3),
        "workers": campaign.workers,
        "vacuous": list(campaign.vacuous),
        "blocked": [{"recording": result.name, **asdict(result.blocked)}
                    for result in campaign.results if result.blocked],
        "missed": [{"recording": one.name, "kind": copy.kind, "what": copy.what}
                   for one in campaign.results for copy in one.copies if not copy.rejected],
        "exit_code": exit_code,
    }  # fmt: skip
