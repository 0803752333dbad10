"""Recordings of raft's nodes that change who votes, in terms of etcd_raft_changes.spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from raft_tracing import RaftTracing

from specchk.conform.contract.recording import Event, Recording
from specchk.conform.contract.tracing import Call, Seen, Ways, event


def servers(many: int) -> str:
    """The first servers, as a set."""
    return "{" + ", ".join(f"s{n}" for n in range(1, many + 1)) + "}"


class ChangesTracing(RaftTracing):
    """The events of the harness with `-changes`; each says up to where the node has applied its log."""

    spec, model, reads = "../../spec/raft/etcd_raft_changes.spec", "changes", "etcd-raft/1"

    @classmethod
    def constants(cls, recording: Recording) -> Mapping[str, str]:
        """Others vote at the beginning than exist."""
        header = recording.header
        return {
            **super().constants(recording),
            "Server": servers(header["servers"]),
            "First": servers(header["voters"]),
        }

    @event("change")
    def change(self, found: Event) -> Ways:
        """A leader proposes other voters."""
        to = found["change"]
        sets = frozenset(to["voters"]), frozenset(to["learners"])
        return self.calls(
            found, (Call("change", (found["at"], *sets, found.get("joint", False), to["auto"])),)
        )

    @event("leave")
    def leave(self, found: Event) -> Ways:
        """A leader proposes to leave a joint configuration."""
        return self.calls(found, (Call("leave", (found["at"],)),))

    @event("MsgSnap")
    def snapshot(self, found: Event) -> Ways:
        """Besides, a snapshot may be of a configuration without the node."""
        ways = super().snapshot(found)
        m = found["with"]
        declined = Call("decline", (found["at"], m["term"], m["index"]))
        return Ways((*ways.ways, (declined, *ways.ways[0][1:])))

    def after(self, found: Event) -> Iterable[Seen]:
        """Besides, the configuration."""
        yield from super().after(found)
        now = found.get("after", {}).get("config")
        for field in ("voters", "outgoing", "learners") if now else ():
            yield Seen(field, f"config[{found['at']}].{field}", frozenset(now[field]))
        if now:
            yield Seen("auto", f"config[{found['at']}].auto", now["auto"])
