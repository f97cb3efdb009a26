"""A stub of the Prometheus API with a host behind it, for the tests of its source."""

from collections.abc import Iterator

import pytest

from tests.integration.prometheus_rig import StubServer, running
from tests.integration.prometheus_world import World


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with running() as server:
        yield server


@pytest.fixture
def world(stub: StubServer) -> World:
    world = World()
    stub.answer = world.answer
    world.host()
    return world
