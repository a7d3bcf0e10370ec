"""Asynchronous tests run on asyncio, as the driver does, and those of the wire on each wire."""

from collections.abc import Generator

import pytest

from tests.agents.models.fake_provider import FakeProvider, running_provider
from tests.agents.models.wires import WIRES, Wire


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=WIRES, ids=lambda wire: wire.provider)
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with running_provider() as provider:
        yield provider
