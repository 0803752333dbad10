"""The storage at a path or URI, and whether its host answers.

Plain paths and `file:` are the machine's own (`storage`); any other scheme is of `arrow`.
"""

from __future__ import annotations

import os
import socket
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from specchk.export.storage import ARROW_NAMES, LocalStorage, Storage
from specchk.search.engine import Unusable

CONNECT_S = 5.0  # seconds for a connection to a store
# For each object store, the variables that name another endpoint, and its own endpoint.
_STORES = MappingProxyType({
    "s3": (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "s3.amazonaws.com"),
    "gs": (("STORAGE_EMULATOR_HOST", "CLOUD_STORAGE_EMULATOR_ENDPOINT"), "storage.googleapis.com"),
})  # fmt: skip


def storage_at(place: str, *, durable: bool = True) -> Storage:
    """The storage of a path or URI; `Unusable` for an unsupported scheme."""
    path = local_path(place)
    if path is not None:
        return LocalStorage(path, durable)
    try:
        # By name: pyarrow takes 27 MB, which an executor with a path does not need.
        storage: Storage = import_module("specchk.export.arrow").storage_of(place)
        return storage
    except OSError as error:
        raise Unusable(f"{place}: {error}") from error


def answering(place: str) -> Storage:
    """As `storage_at`; `Unusable` also if its host accepts no connection."""
    require_answer(place)
    return storage_at(place)


def local_path(place: str) -> Path | None:
    """The path of a place on this machine, plain or `file:`; None for a place in another file system."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(place) if len(parts.scheme) <= 1 else None  # a path, or a drive letter


def require_answer(place: str) -> None:
    """Raise `Unusable` if the host of a URI accepts no connection; its client might retry for minutes."""
    address = _address_of(place)
    if address is None:
        return
    try:
        socket.create_connection(address, CONNECT_S).close()
    except OSError as error:
        host, port = address
        reason = error.strerror or error
        raise Unusable(
            f"{place} cannot be reached from {socket.gethostname()} ({host}:{port}: {reason})"
        ) from error


def _address_of(place: str) -> tuple[str, int] | None:
    """The host and port that serve a URI, if known."""
    parts = urlsplit(place)
    default = _STORES.get(ARROW_NAMES.get(parts.scheme, parts.scheme))
    if default is None:
        # Without a port it is a name that only Hadoop's configuration knows.
        is_known = parts.scheme == "hdfs" and parts.hostname and parts.port
        return (parts.hostname or "", parts.port or 0) if is_known else None
    variables, host = default
    chosen = next((os.environ[name] for name in variables if os.environ.get(name)), f"https://{host}")
    endpoint = urlsplit(chosen if "://" in chosen else f"//{chosen}")
    return endpoint.hostname or host, endpoint.port or (80 if endpoint.scheme == "http" else 443)


def absolute_uri(place: str) -> str:
    """A path or URI independent of the process's directory, since executors have another one."""
    return str(Path(place).absolute()) if len(urlsplit(place).scheme) <= 1 else place
