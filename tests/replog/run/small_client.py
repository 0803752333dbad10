"""A small client of Kafka's protocol: an idempotent producer and a group of one, with flaws to be chosen.

It sends a record, waits for the answer, and then the next; it reads, processes and commits after each round.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from replog.core.types import Error
from replog.run.serve.codec import INT16, INT32, read, write
from replog.run.serve.frames import Api
from replog.run.serve.layout import KioLayouts
from replog.run.serve.rehearsal import GROUP, TOPIC
from replog.store.segments.batch import iterate_headers
from replog.store.segments.records import ProducerFields, Record, decode_batch, encode_batch

LAYOUTS = KioLayouts()
VERSIONS = {
    Api.PRODUCE: 9, Api.FETCH: 12, Api.LIST_OFFSETS: 7, Api.METADATA: 9, Api.OFFSET_COMMIT: 8,
    Api.OFFSET_FETCH: 7, Api.FIND_COORDINATOR: 3, Api.INIT_PRODUCER_ID: 4, Api.OFFSET_FOR_LEADER_EPOCH: 4,
}  # fmt: skip
TIMEOUT_S = 4
PAUSE_S = 0.02
TRIES, READS = 60, 25
ENDINGS = (OSError, asyncio.IncompleteReadError, TimeoutError)
FLAWS = {
    "another sequence for a retry": "twice",
    "no producer id": "twice",
    "an acknowledgement without an answer": "lost",
    "error codes not read": "lost",
    "acks=1": "lost",
    "a sequence number used again after giving up": "lost",
    "a position committed before processing": "skipped",
    "a failed commit taken for one": "position",
    "an error taken for no position": "position",
    "a position passed before its records came": "skipped",
    "epochs ignored": "skipped",
    "repetitions not recognized": "repeated",
}
"""The flaws, and the rule that each breaks."""


class Client:
    """One client; `say` is told what it does."""

    def __init__(self, servers: str, say: Callable[[str], None], flaw: str = "") -> None:
        self.say, self.flaw = say, flaw
        host_ports = [server.rpartition(":") for server in servers.split(",")]
        self.known = [(host, int(port)) for host, _, port in host_ports]
        self.links: dict[tuple[str, int], tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self.leader, self.epoch = None, -1
        self.coordinator = None
        self.producer, self.sequence = -1, 0
        self.position, self.read_epoch = None, -1
        self.processed: set[str] = set()

    async def ask(self, address: tuple[str, int], api: Api, **body: object) -> dict:
        """Return an answer; raises one of `ENDINGS` if there is none in time."""
        version = VERSIONS[api]
        layout, is_flexible = LAYOUTS.request(api, version)
        name = INT16.pack(5) + b"small" + (b"\0" if is_flexible else b"")
        frame = INT16.pack(api) + INT16.pack(version) + INT32.pack(7) + name + write(layout, body)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                if address not in self.links:
                    self.links[address] = await asyncio.open_connection(*address)
                reader, writer = self.links[address]
                writer.write(INT32.pack(len(frame)) + frame)
                data = await reader.readexactly(INT32.unpack(await reader.readexactly(4))[0])
        except ENDINGS:
            if address in self.links:
                self.links.pop(address)[1].transport.abort()
            raise
        layout, is_flexible = LAYOUTS.response(api, version)
        return read(layout, data, 5 if is_flexible else 4)

    async def find_leader(self) -> None:
        """Learn who leads; never from metadata older than what is known."""
        self.known.append(self.known.pop(0))
        answer = await self.ask(self.known[0], Api.METADATA, topics=[{"name": TOPIC}])
        part = answer["topics"][0]["partitions"][0]
        if part["leader_epoch"] >= self.epoch and part["leader_id"] >= 0:
            brokers = {each["node_id"]: (each["host"], each["port"]) for each in answer["brokers"]}
            self.leader, self.epoch = brokers.get(part["leader_id"]), part["leader_epoch"]

    async def at_leader(self, api: Api, **body: object) -> dict:
        if self.leader is None:
            await self.find_leader()
        if self.leader is None:
            raise ConnectionError("no leader")
        return await self.ask(self.leader, api, **body)

    async def at_coordinator(self, api: Api, **body: object) -> dict:
        if self.coordinator is None:
            self.known.append(self.known.pop(0))
            found = await self.ask(self.known[0], Api.FIND_COORDINATOR, key=GROUP, key_type=0)
            if found["error_code"]:
                raise ConnectionError("no coordinator")
            self.coordinator = found["host"], found["port"]
        return await self.ask(self.coordinator, api, group_id=GROUP, **body)

    def lost(self) -> None:
        """Ask again who leads, and who coordinates."""
        self.leader = self.coordinator = None

    async def produce(self, value: str) -> None:
        """Send a record until it is acknowledged."""
        self.say(f"sent {value}")
        for attempt in range(TRIES):
            try:
                if self.producer < 0 and self.flaw != "no producer id":
                    given = await self.ask(
                        self.known[0], Api.INIT_PRODUCER_ID, transactional_id=None, timeout=1_000
                    )
                    if given["error_code"]:
                        raise ConnectionError("no producer id yet")
                    self.producer = given["producer_id"]
                error = await self._send(value)
            except ENDINGS:
                self.lost()
                if self.flaw == "an acknowledgement without an answer":
                    error = Error.NONE
                else:
                    error = Error.REQUEST_TIMED_OUT
                    self.known.append(self.known.pop(0))
            if not error or self.flaw == "error codes not read":
                self.say(f"acked {value}")
                self.sequence += 1
                return
            self.lost()
            if self.flaw == "a sequence number used again after giving up" and attempt == 0:
                self.say(f"failed {value}")
                return
            if self.flaw == "another sequence for a retry" or error == Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self.producer, self.sequence = -1, 0
            await asyncio.sleep(PAUSE_S)
        self.say(f"failed {value}")

    async def _send(self, value: str) -> int:
        fields = ProducerFields(self.producer, 0, self.sequence) if self.producer >= 0 else ProducerFields()
        batch = encode_batch([Record(value.encode(), timestamp=1)], fields, 0, -1)
        data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
        acks = 1 if self.flaw == "acks=1" else -1
        answer = await self.at_leader(
            Api.PRODUCE, transactional_id=None, acks=acks, timeout=5_000, topic_data=data
        )
        return answer["responses"][0]["partition_responses"][0]["error_code"]

    async def consume(self, end: str) -> None:
        """Read from the position on until a value has come, process, commit."""
        # Each round as after a restart.
        self.position, is_over = None, False
        for _ in range(READS):
            if is_over:
                return
            try:
                if self.position is None:
                    await self._begin()
                values = await self._fetch()
                if not values:
                    # Its commit was lost, and had come through.
                    is_over = end in self.processed
                    await asyncio.sleep(PAUSE_S)
                    continue
                is_over = await self._take(values, end)
            except ENDINGS:
                self.lost()
                self.position = None
                await asyncio.sleep(PAUSE_S)

    async def _take(self, values: list[tuple[int, str]], end: str) -> bool:
        for offset, value in values:
            self.say(f"got 0 {offset} {value}")
        if self.flaw == "a position committed before processing":
            await self._commit()
        for offset, value in values:
            # What was processed is remembered, as with a table of keys.
            if self.flaw == "repetitions not recognized" or value not in self.processed:
                self.processed.add(value)
                self.say(f"done 0 {offset}")
        if self.flaw != "a position committed before processing":
            await self._commit()
        return any(value == end for _, value in values)

    async def _begin(self) -> None:
        """Go to the committed position, or to the beginning."""
        asked = [{"name": TOPIC, "partition_indexes": [0]}]
        answer = await self.at_coordinator(Api.OFFSET_FETCH, topics=asked)
        error = answer["error_code"]
        if error and self.flaw != "an error taken for no position":
            raise ConnectionError("no position yet")
        offset = -1 if error else answer["topics"][0]["partitions"][0]["committed_offset"]
        self.position = offset
        if offset < 0:
            part = {"partition_index": 0, "timestamp": -2, "current_leader_epoch": -1}
            topics = [{"name": TOPIC, "partitions": [part]}]
            self.position = None
            answer = await self.at_leader(Api.LIST_OFFSETS, replica_id=-1, isolation_level=0, topics=topics)
            part = answer["topics"][0]["partitions"][0]
            if part["error_code"]:
                raise ConnectionError("no offset yet")
            self.position = part["offset"]

    async def _fetch(self) -> list[tuple[int, str]]:
        asked = self.position
        part = {
            "partition": 0,
            "fetch_offset": asked,
            "partition_max_bytes": 1 << 20,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1 if self.flaw == "epochs ignored" else self.read_epoch,
            "log_start_offset": -1,
        }
        topics = [{"topic": TOPIC, "partitions": [part]}]
        if self.flaw == "a position passed before its records came":
            self.position += 1
        answer = await self.at_leader(
            Api.FETCH, replica_id=-1, max_wait=50, min_bytes=1, max_bytes=1 << 20, topics=topics
        )
        if not answer["responses"]:
            # The broker's quota is used up.
            return []
        part = answer["responses"][0]["partitions"][0]
        if part["diverging_epoch"]["end_offset"] >= 0:
            # The log is another one from there on.
            self.position, self.read_epoch = (
                part["diverging_epoch"]["end_offset"],
                part["diverging_epoch"]["epoch"],
            )
            return []
        if part["error_code"] == Error.OFFSET_OUT_OF_RANGE:
            return []
        if part["error_code"]:
            self.leader = None
            return []
        data = part["records"] or b""
        values = []
        for at, header in iterate_headers(data):
            records = decode_batch(data[at : at + header.size_bytes])
            values += [(r.offset, r.value.decode()) for r in records if r.offset >= asked]
            self.read_epoch = header.leader_epoch
        self.position = values[-1][0] + 1 if values else asked
        return values

    async def _commit(self) -> None:
        """Commit the position; a failure means to begin again from what is committed."""
        part = {"partition_index": 0, "committed_offset": self.position, "committed_leader_epoch": -1}
        topics = [{"name": TOPIC, "partitions": [part]}]
        answer = await self.at_coordinator(
            Api.OFFSET_COMMIT, generation_id_or_member_epoch=-1, member_id="", topics=topics
        )
        error = answer["topics"][0]["partitions"][0]["error_code"]
        if error and self.flaw != "a failed commit taken for one":
            raise ConnectionError("not committed")
        self.say(f"committed 0 {self.position}")


async def work(servers: str, say: Callable[[str], None], flaw: str = "", rounds: int = 3) -> None:
    """Send three records, read and process them; several times."""
    client = Client(servers, say, flaw)
    acks_one = flaw == "acks=1"
    say("promises idempotent exactly-once" if not acks_one else "promises exactly-once")
    try:
        for n in range(rounds):
            for m in range(3):
                await client.produce(f"r{3 * n + m}")
            with suppress(*ENDINGS):
                await client.consume(f"r{3 * n + 2}")
    finally:
        for _, writer in client.links.values():
            writer.transport.abort()
