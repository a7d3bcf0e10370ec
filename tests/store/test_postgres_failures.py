"""What PostgreSQL refuses, and a URL that says what it does not know: told with what helps."""

import os
from pathlib import Path

import pytest

from interlock.store.failures import StoreUnusable
from interlock.store.open_store import open_store
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from tests.postgres import Cluster, connected
from tests.scenes import SESSION, opening

ROLE = "lodger"


def refused(log: PostgresLog) -> StoreUnusable:
    with pytest.raises(StoreUnusable, match="Rights are missing") as failed:
        log.append(opening())
    return failed.value


def statements(hint: str) -> str:
    """As they are copied from what was said."""
    return hint[hint.index("GRANT") : hint.rindex(";") + 1]


def test_who_may_not_use_the_tables_is_told_what_to_grant_and_that_is_enough(
    cluster: Cluster,
) -> None:
    url = cluster.empty()
    connected(url).close()
    database = url.partition("@/")[2].partition("?")[0]
    cluster.run(f"CREATE ROLE {ROLE} LOGIN")
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
    ("url", "said"),
    [
        ("postgresql://me:s3cret%2Fword@127.0.0.1:1/x", "cannot be reached"),
        ("mysql://me:s3cret@127.0.0.1/x", "no kind that Interlock knows"),
        ("postgresql://me:s3cret/word@127.0.0.1:1/x", "cannot be read"),
        ("postgresql://me:p@s3cret@127.0.0.1:1/team", "cannot be read"),
        ("postgresql://me:p@s3cret@/team", "cannot be read"),
        ("postgresql://me:100%s3cret@127.0.0.1:1/x", "cannot be read"),
        ("postgresql://127.0.0.1:s3cret/x?nonsense=s3cret", "cannot be read"),
        ("postgresql://me:12/ab?s3cret=x@127.0.0.1/d", "cannot be read"),
        ("postgresql://me:12?s3cret=x@127.0.0.1:y/d", "cannot be read"),
        ("postgresql://127.0.0.1/d?password=a&s3cret=b", "cannot be read"),
        ("postgresql://127.0.0.1/d?sslpassword=a&s3cret=b", "cannot be read"),
        ("postgresql://me:word/ab@127.0.0.1/d?bogus=s3cret", "cannot be read"),
        ("postgresql://127.0.0.1/d?s3cret", "cannot be read"),
        ("postgresql://127.0.0.1/d?a%20s3cret=1", "cannot be read"),
    ],
)
def test_a_store_that_cannot_be_reached_is_named_without_its_password(
    tmp_path: Path, url: str, said: str
) -> None:
    """What may be a part of a password is not quoted as a parameter either."""
    with pytest.raises(StoreUnusable, match=said) as failed:
        open_store(tmp_path, url, os.urandom).reader.position()

    chain: BaseException | None = failed.value
    while chain is not None:
        assert "s3cret" not in f"{chain!r} {chain}"
        chain = chain.__cause__
    assert "s3cret" not in failed.value.hint
