"""The commands `replog status`, `topics` and `groups`: a running cluster, asked as any client may ask.

For `status` and `topics` only the first broker must answer; of what another one would have to say, there is
None, or a dash.  For `groups` all that are in the metadata must: a group has one coordinator.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any

import click

from replog.core.messages import LATEST
from replog.core.types import CONSUMER
from replog.run.serve.codec import INT32, MalformedError
from replog.run.serve.frames import Api, answered, asked
from replog.run.serve.records import DEBUGGING
from replog.serve import PORT, module_of

VERSIONS = MappingProxyType(
    {
        Api.METADATA: 9,
        Api.DESCRIBE_TOPIC_PARTITIONS: 0,
        Api.LIST_OFFSETS: 7,
        Api.LIST_GROUPS: 4,
        Api.OFFSET_FETCH: 7,
    }
)
ANSWER_S = 10.0
WIDTH, LEAST_NAME = 80, 12
Row = dict[str, Any]


class Cluster:
    """A cluster seen from outside; raises `ConnectionError` where its first broker does not answer."""

    def __init__(self, command: str, bootstrap: str) -> None:
        self._layouts = module_of(command, "run.serve.layout").KioLayouts()
        host, _, port = bootstrap.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise click.UsageError(f"--bootstrap is HOST:PORT, as 127.0.0.1:{PORT}, not {bootstrap!r}")
        self._first = host, int(port)
        answer = self._ask(self._first, Api.METADATA, topics=())
        self.id = answer["cluster_id"]
        self.brokers = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
        self.partitions = self._described()

    def _ask(self, address: tuple[str, int], api: Api, **body: Any) -> Any:
        try:
            with socket.create_connection(address, ANSWER_S) as link, link.makefile("rb") as answers:
                link.sendall(asked(self._layouts, api, VERSIONS[api], body, "replog"))
                size = answers.read(INT32.size)
                data = answers.read(INT32.unpack(size)[0]) if len(size) == INT32.size else b""
            return answered(self._layouts, api, VERSIONS[api], data)
        except (OSError, MalformedError) as error:
            place = f"{address[0]}:{address[1]}"
            raise ConnectionError(f"no broker answers {api.name} at {place}: {error}") from error

    def _described(self) -> list[Row]:
        """Return all partitions, with HW and the end of each replica's log."""
        rows: list[Row] = []
        cursor = {"topic_name": "", "partition_index": 0}
        while cursor is not None:
            page = {"topics": (), "response_partition_limit": 2_000, "cursor": cursor}
            answer = self._ask(self._first, Api.DESCRIBE_TOPIC_PARTITIONS, **page)
            for topic in answer["topics"]:
                rows += [_row(topic["name"], part) for part in topic["partitions"]]
            cursor = answer["next_cursor"]
        for broker in self.brokers:
            held = [row for row in rows if broker in row["replicas"]]
            for row, offset in self._ends(broker, held, DEBUGGING):
                row["leo"][broker] = offset
            for row, offset in self._ends(broker, [row for row in held if row["leader"] == broker], CONSUMER):
                row["hw"] = offset
        return rows

    def _ends(self, broker: int, rows: list[Row], asker: int) -> Iterable[tuple[Row, int]]:
        topics = [
            {"name": row["topic"], "partitions": ({"partition_index": row["number"], "timestamp": LATEST},)}
            for row in rows
        ]
        try:
            answer = self._ask(self.brokers[broker], Api.LIST_OFFSETS, replica_id=asker, topics=topics)
        except OSError:
            return
        # Partitions are in order in the request, and so in the response.
        parts = (part for topic in answer["topics"] for part in topic["partitions"])
        yield from (
            (row, part["offset"]) for row, part in zip(rows, parts, strict=True) if not part["error_code"]
        )

    def groups(self) -> list[Row]:
        """Return the committed offsets of all groups; a group without any has a row without a partition."""
        ends, rows = {row["partition"]: row["hw"] for row in self.partitions}, list[Row]()
        for address in self.brokers.values():
            for group in self._ask(address, Api.LIST_GROUPS)["groups"]:
                answer = self._ask(address, Api.OFFSET_FETCH, group_id=group["group_id"], topics=None)
                places = [(topic["name"], part) for topic in answer["topics"] for part in topic["partitions"]]
                known = {
                    f"{topic}-{part['partition_index']}": part["committed_offset"] for topic, part in places
                }
                for name, offset in known.items() or (("", None),):
                    end = ends.get(name)
                    lag = None if offset is None or end is None else max(end - offset, 0)
                    row = {"partition": name, "group": group["group_id"], "state": group["group_state"]}
                    rows.append(row | {"committed": offset, "hw": end, "lag": lag})
        return rows


def _row(topic: str, part: Row) -> Row:
    number, elr = part["partition_index"], part["eligible_leader_replicas"] or ()
    row = {"partition": f"{topic}-{number}", "topic": topic, "number": number, "leader": part["leader_id"]}
    members = {"replicas": part["replica_nodes"], "isr": part["isr_nodes"], "elr": elr}
    return row | {"epoch": part["leader_epoch"]} | members | {"hw": None, "leo": {}}


def _command(show: Callable[..., None]) -> click.Command:
    as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON.")
    where, shown = f"127.0.0.1:{PORT}", "A broker of the cluster."
    bootstrap = click.option("--bootstrap", metavar="HOST:PORT", default=where, show_default=True, help=shown)
    return click.command(show.__name__)(bootstrap(as_json(show)))


@_command
def status(bootstrap: str, as_json: bool) -> None:
    """Show the brokers of a running cluster, and the partitions without a leader or with a short ISR."""
    cluster = Cluster("status", bootstrap)
    rows = cluster.partitions
    ids = sorted({*cluster.brokers, *(broker for row in rows for broker in row["replicas"])})
    brokers = [
        {"broker": b, "address": ":".join(map(str, cluster.brokers.get(b, ("(away)",))))}
        | {"leads": sum(row["leader"] == b for row in rows), "in_isr": sum(b in row["isr"] for row in rows)}
        | {"replicas": sum(b in row["replicas"] for row in rows)}
        for b in ids
    ]
    if as_json:
        click.echo(json.dumps({"cluster_id": cluster.id, "brokers": brokers, "partitions": rows}))
        return
    click.echo(f"cluster {cluster.id}: {len(cluster.brokers)} brokers, {len(rows)} partitions")
    _show("ADDRESS BROKER LEADS IN-ISR REPLICAS", "address broker leads in_isr replicas", brokers)
    short = [row for row in rows if row["leader"] < 0 or len(row["isr"]) < len(row["replicas"])]
    click.echo(f"{len(short)} partitions have no leader, or fewer replicas in sync than there are")
    if short:
        _show_partitions(short)


@_command
def topics(bootstrap: str, as_json: bool) -> None:
    """Show leader, HW, LEO, ISR and ELR of all partitions of a running cluster.

    BEHIND has the replicas whose log is shorter than the leader's, each with the number of records.
    """
    rows = Cluster("topics", bootstrap).partitions
    if as_json:
        click.echo(json.dumps({"partitions": rows}))
    else:
        _show_partitions(rows)


@_command
def groups(bootstrap: str, as_json: bool) -> None:
    """Show the committed offsets of all consumer groups of a running cluster, and how far they are behind."""
    rows = Cluster("groups", bootstrap).groups()
    if as_json:
        click.echo(json.dumps({"groups": rows}))
    else:
        _show("PARTITION GROUP STATE COMMITTED HW LAG", "partition group state committed hw lag", rows)


def _show_partitions(rows: list[Row]) -> None:
    shown = []
    for row in rows:
        ends, end = row["leo"], row["leo"].get(row["leader"])
        behind = [f"{b}:{end - ends[b] if end is not None and b in ends else '?'}" for b in row["replicas"]]
        texts = {"behind": " ".join(text for text in behind if not text.endswith(":0"))}
        texts |= {key: ",".join(map(str, row[key])) for key in ("isr", "elr")}
        shown.append(row | texts | {"leo": end, "leader": row["leader"] if row["leader"] >= 0 else None})
    titles = "PARTITION LEADER EPOCH HW LEO ISR ELR BEHIND"
    _show(titles, titles.lower(), shown)


def _show(titles: str, keys: str, rows: list[Row]) -> None:
    """Print a table; the first column is shortened to keep lines within `WIDTH`."""
    texts = [["-" if row[key] in (None, "") else str(row[key]) for key in keys.split()] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles.split(), *texts, strict=True)]
    widths[0] = min(widths[0], max(WIDTH - sum(widths[1:]) - 2 * len(widths[1:]), LEAST_NAME))
    for name, *others in (titles.split(), *texts):
        short = name if len(name) <= widths[0] else f"{name[: widths[0] - 1]}…"
        cells = (text.rjust(width) for text, width in zip(others, widths[1:], strict=True))
        click.echo("  ".join([short.ljust(widths[0]), *cells]))
