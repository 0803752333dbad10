"""The data of a search sent to an executor, and their unpacked form, cached in each worker process."""

from __future__ import annotations

import gc
import os
import pickle
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from crc32c import crc32c
from msgspec import Struct

from specchk.export.places import storage_at
from specchk.ir.program import Program
from specchk.native.compiler import load_exchange
from specchk.native.exchange import exchange_worker
from specchk.native.machine.layout import StateLayout, layout_of
from specchk.native.machine.loaded import Loaded, ObjectCode
from specchk.native.store import Worker
from specchk.sealed import sealed, unsealed
from specchk.search.symmetry import Renaming
from specchk.spark.states.slices import Slices

_SEAL = "parcel"


class Parcel(Struct, frozen=True):
    """A search for an executor: `run` is its name, `scratch` the place of tables (None: the machine's own).

    `handed`: the levels that Spark took over, which cannot be made again.  `durable`: whether the ledger is
    to outlive a crash of the machine.
    """

    run: str
    program: Program
    renamings: list[Renaming]
    code: ObjectCode
    partitions: int
    ledger: str
    scratch: str | None
    handed: int
    durable: bool = True

    def packed(self) -> bytes:
        """The parcel as sealed bytes for a broadcast, whose files have no checksums."""
        return sealed(_SEAL, pickle.dumps(self, protocol=5))


class Host(Struct, frozen=True):
    """A parcel unpacked: the kernel is loaded, and the ledger's slices are accessible.

    `scratch`: the directory of the run on this machine; `place`: a number of it.
    """

    parcel: Parcel
    layout: StateLayout
    kernel: Loaded
    slices: Slices
    scratch: Path
    place: int

    @property
    def state_bytes(self) -> int:
        """The number of bytes of a packed state."""
        return 8 * self.layout.words

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        """A worker's block with all counts zero, inside the context."""
        worker = exchange_worker(self.parcel.program, self.layout)
        try:
            yield worker
        finally:
            worker.release()

    def cache(self, partition: int) -> Path:
        """The place of a partition's visited set on this machine."""
        return self.scratch / f"{partition:05d}"


@lru_cache(maxsize=2)
def host_of(packed: bytes) -> Host:
    """The host of a parcel; created once in a process, because linking the kernel takes a while."""
    # Checked once in each process: a broadcast's file may have been cut by a full disk.
    content = unsealed(_SEAL, packed)
    parcel: Parcel = pickle.loads(content)  # noqa: S301 - the driver of this very application packed it
    layout = layout_of(parcel.program)
    kernel = load_exchange(parcel.program, layout, parcel.renamings, parcel.code)
    storage = storage_at(parcel.ledger, durable=parcel.durable)
    slices = Slices(storage, parcel.run, 8 * layout.words, parcel.handed)
    # Once, and not for each slice: a lot has many, each of which names it.
    scratch = _scratch(parcel)
    place = crc32c(f"{socket.gethostname()} {scratch}".encode())
    return Host(parcel, layout, kernel, slices, scratch, place)


def _scratch(parcel: Parcel) -> Path:
    """A name for the current boot, since tables must not outlive it."""
    # Where a cluster's administrator wants large files; the system's temporary directory may be memory.
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    base = Path(parcel.scratch or local or tempfile.gettempdir())
    # With the user's number and the run's name: a shared directory may have tables of other searches.
    return base / f"specchk-{os.getuid()}-{parcel.run}-{_boot()}"


@lru_cache(maxsize=2)
def worker_host(packed: bytes) -> Host:
    """Like `host_of`, in a process that runs tasks for Spark.

    Spark's daemon collects garbage after every task; what came with modules and the kernel, some
    hundred thousand objects that stay, is taken out of that.
    """
    host = host_of(packed)
    gc.collect()
    # Collected first, so that only what stays is frozen.
    gc.freeze()
    return host


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
    except OSError:
        return "boot"
