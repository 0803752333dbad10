"""The toy spec's tracing, and recordings of a bank made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from specchk.conform.contract.recording import Event, Recording, renumbered
from specchk.conform.contract.tracing import ANY, Call, ImpossibleEvent, Seen, Tracing, Ways, event


class BankTracing(Tracing):
    """`moved` may omit the receiver of the coin; `slept` is never recorded."""

    spec, model, reads = "bank.spec", "small", "bank/1"
    silent: ClassVar[tuple[str, ...]] = ("sleep",)

    @event("moved")
    def moved(self, found: Event) -> Call:
        return Call("transfer", (found["from"], found.get("to", ANY)))

    @event("tossed")
    def tossed(self, found: Event) -> Call:
        return Call("toss")

    @event("perhaps")
    def perhaps(self, found: Event) -> Ways:
        return Ways(((Call("transfer", ("a1", "a2")),), (Call("transfer", ("a2", "a1")),), ()))

    @event("looked")
    def looked(self, found: Event) -> Ways:
        if found.get("broken"):
            raise ImpossibleEvent("it is broken")
        return Ways(((),))

    def after(self, found: Event) -> Iterable[Seen]:
        for name, value in found.get("after", {}).items():
            expression = name if name in ("coin", "days") else f"balance[{name}]"
            yield Seen(name, expression, value)


def recorded(*events: Mapping[str, Any], name: str = "by hand") -> Recording:
    """A recording of these events, all by one writer unless they name another."""
    return Recording(name, {"format": "bank/1"}, renumbered({"at": 0, **one} for one in events))


def moved(source: str, to: str | None = None, **after: Any) -> dict[str, Any]:
    """The event of a moved coin, and the state shown after it."""
    told = {} if to is None else {"to": to}
    return {"event": "moved", "from": source, **told, "after": after}
