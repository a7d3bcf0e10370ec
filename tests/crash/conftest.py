"""The stores that are tried: the file, and PostgreSQL with syncs as in production."""

from collections.abc import Iterator

import pytest

from tests.postgres import MISSING, Cluster, binaries


@pytest.fixture(scope="session")
def durable() -> Iterator[Cluster]:
    """A PostgreSQL that tests may kill."""
    if binaries() is None:
        pytest.skip(MISSING)
    cluster = Cluster(is_durable=True)
    yield cluster
    cluster.remove()


@pytest.fixture
def url(durable: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every data home of the test has its store there."""
    fresh = durable.fresh()
    monkeypatch.setenv("INTERLOCK_STORE", fresh)
    return fresh


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        request.getfixturevalue("url")
    return request.param
