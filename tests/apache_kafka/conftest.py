"""Real brokers, where Kafka can be had."""

from __future__ import annotations

import pytest
from conformance.apache_kafka.releases import RELEASES, Unavailable, jars


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
