"""Real brokers, where Kafka can be had."""

from __future__ import annotations

import fcntl

import pytest
from conformance.apache_kafka.releases import NEWEST, RELEASES, Unavailable, jars

from real_kafka.loads import write_history


def release_or_skip(version):
    """A release with its jars on this machine; skips the test otherwise."""
    try:
        jars(RELEASES[version])
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    return RELEASES[version]


@pytest.fixture
def release(request):
    return release_or_skip(request.param)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """The folders of a cluster of the newest release, made once for all processes of a test run."""
    release = release_or_skip(NEWEST.version)
    shared = tmp_path_factory.getbasetemp().parent / "history-of-kafka"
    with (shared.parent / "history-of-kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not shared.exists():
            write_history(release, shared)
    return shared
