"""What PostgreSQL refuses, and a URL that says what it does not know: told with what helps."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.store.failures import StoreUnusable
from interlock.store.open_store import open_store
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from tests.postgres import Cluster, connected
from tests.scenes import SESSION, opening

ROLE = "lodger"


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """A store of somebody else; its name. `ROLE` may connect to it and nothing more."""
    url = cluster.empty()
    connected(url).close()
    name = url.partition("@/")[2].partition("?")[0]
    cluster.run(f"CREATE ROLE {ROLE} LOGIN")
    yield name
    cluster.run(f"DROP OWNED BY {ROLE}", name)
    cluster.run(f"DROP ROLE {ROLE}")


def refused(log: PostgresLog) -> StoreUnusable:
    with pytest.raises(StoreUnusable, match="Rights are missing") as failed:
        log.append(opening())
    return failed.value


def statements(hint: str) -> str:
    """As they are copied from what was said."""
    return hint[hint.index("GRANT") : hint.rindex(";") + 1]


def test_who_may_not_use_the_tables_is_told_what_to_grant_and_that_is_enough(
    cluster: Cluster, database: str
) -> None:
    log = PostgresLog(parse_address(cluster.url(database, user=ROLE)))
    no_schema = refused(log)
    cluster.run(f"GRANT USAGE ON SCHEMA interlock TO {ROLE}", database)
    no_table = refused(log)
    cluster.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA interlock TO {ROLE}", database)
    only_read = refused(log)

    assert "schema interlock" in str(no_schema)
    for failure in (no_table, only_read):
        assert "permission denied for table" in str(failure)
    for failure in (no_schema, no_table, only_read):
        assert "CREATE SCHEMA" not in failure.hint
    cluster.run(statements(only_read.hint), database)
    assert log.append(opening())
    log.delete(SESSION)
    log.close()


def test_who_cannot_make_the_schema_is_told_how_it_is_made(cluster: Cluster, database: str) -> None:
    """`database` has made the role."""
    assert database
    elsewhere = PostgresLog(parse_address(cluster.empty().replace("interlock@", f"{ROLE}@")))

    assert f'CREATE SCHEMA "interlock" AUTHORIZATION "{ROLE}";' in refused(elsewhere).hint


@pytest.mark.parametrize(
    ("tail", "parameter"),
    [
        ("?bogus=1", "bogus"),
        ("?sslmode=require&search_path=other", "search_path"),
        ("?search_path=other&password=s3cret", "search_path"),
        ("?sslmod=s3cret", "sslmod"),
    ],
)
def test_a_parameter_that_does_not_exist_is_named(
    tmp_path: Path, tail: str, parameter: str
) -> None:
    with pytest.raises(StoreUnusable, match=f"has a parameter `{parameter}`") as failed:
        open_store(tmp_path, f"postgresql://me:s3cret@127.0.0.1:1/d{tail}", os.urandom)

    assert "?options=-csearch_path%3Dname" in failed.value.hint
    assert "s3cret" not in f"{failed.value} {failed.value.hint} {failed.value.__cause__}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:12/ab?s3cret=x@127.0.0.1/d",
        "postgresql://me:12?s3cret=x@127.0.0.1:y/d",
        "postgresql://127.0.0.1/d?password=a&s3cret=b",
        "postgresql://127.0.0.1/d?sslpassword=a&s3cret=b",
        "postgresql://me:word/ab@127.0.0.1/d?bogus=s3cret",
        "postgresql://127.0.0.1/d?s3cret",
        "postgresql://127.0.0.1/d?a%20s3cret=1",
    ],
)
def test_what_may_be_a_part_of_a_password_is_not_taken_for_a_parameter(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(StoreUnusable, match="cannot be read") as failed:
        open_store(tmp_path, url, os.urandom)

    assert "s3cret" not in f"{failed.value} {failed.value.hint} {failed.value.__cause__}"
