"""A stub for each kind of forge: what holds for one holds for all."""

from collections.abc import Iterator

import pytest

from interlock.workspace.outside.forges.forge import Forge
from interlock.workspace.outside.forges.registry import ForgeKind, forge_of
from tests.forge_stub import StubForge


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> ForgeKind:
    return request.param


@pytest.fixture
def stub(kind: ForgeKind) -> Iterator[StubForge]:
    with StubForge(kind) as stub:
        yield stub


@pytest.fixture
def forge(stub: StubForge) -> Forge:
    return forge_of(stub.kind, stub.url, stub.token, seconds=20)
