"""An object store in its own process, as seen by S3's clients."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyarrow import fs

from hang import HANG_S
from spark.cluster import free_port, wait_for


@contextmanager
def object_store(log: Path) -> Iterator[dict[str, str]]:
    """The environment that clients need; there is a bucket `bucket`."""
    port = free_port()
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=out, stderr=out
        )
    try:
        wait_for(lambda: _answers(port, server))
        store = fs.S3FileSystem(
            access_key="any", secret_key="any", region="us-east-1", endpoint_override=f"127.0.0.1:{port}",
            scheme="http", allow_bucket_creation=True,
        )  # fmt: skip
        store.create_dir("bucket")
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip
    finally:
        server.terminate()
        server.wait()


def _answers(port: int, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), HANG_S).close()
        return True
    return False


def environ_of(store: dict[str, str]) -> dict[str, str]:
    """The environment of a process that uses a store."""
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, **store}
