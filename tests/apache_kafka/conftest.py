"""Real brokers, where Kafka can be had."""

from __future__ import annotations

import pytest
from conformance.apache_kafka.nodes import wait_for
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


def elect(controller, broker, others):
    """Have a broker of the ISR elected; the decision."""
    controller.reorder([broker, *others])
    controller.elect_preferred()
    wait_for(lambda: controller.latest().leader == broker, f"broker {broker} is elected")
    return controller.latest()
