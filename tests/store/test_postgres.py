"""What is particular to PostgreSQL: its schema, what it refuses, and how it is lost and found."""
# pyright: reportPrivateUsage=false

import os
from collections.abc import Iterator
from contextlib import nullcontext

import msgspec
import pytest

from interlock.core import canonical, ids
from interlock.core.ids import ProjectId
from interlock.core.project_stream import ProjectPlan
from interlock.core.session.plan import RequestRecord
from interlock.store.failures import StoreUnusable
from interlock.store.open_store import open_target
from interlock.store.postgres import database, schema
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.failures import ConnectionLost, missing_create_right
from interlock.store.postgres.writer import PostgresLog
from tests.postgres import Cluster, connected
from tests.scenes import RUN, SESSION, after, noting, opening, random_session
from tests.store.waiting import other_marker

SECRET = "s3cret/word"


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    opened = connected(url)
    yield opened
    opened.close()


def tables(cluster: Cluster, url: str) -> set[str]:
    name = url.partition("@/")[2].partition("?")[0]
    rows = cluster.run(
        "SELECT schemaname || '.' || tablename FROM pg_tables"
        " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
        name,
    )
    return {table for (table,) in rows}


def test_the_url_may_name_another_schema(cluster: Cluster) -> None:
    url = cluster.empty()
    connected(url).close()
    other = connected(f"{url}&options=-csearch_path%3Dteam_b")
    other.append(opening())

    assert PostgresLog(parse_address(url)).stream(SESSION) is None
    assert {name.partition(".")[0] for name in tables(cluster, url)} == {"interlock", "team_b"}
    with pytest.raises(StoreUnusable, match="cannot be the schema"):
        parse_address(f"{url}&options=-csearch_path%3DA;drop")


@pytest.mark.parametrize("word", ["user", "order"])
def test_a_schema_may_have_a_name_that_means_something_in_sql(cluster: Cluster, word: str) -> None:
    url = f"{cluster.empty()}&options=-csearch_path%3D{word}"
    log, reader = connected(url), connected(url)
    before = reader.change_marker()
    log.append(opening())

    other_marker(reader, before)
    assert reader.stats().size > 0
    assert {name.partition(".")[0] for name in tables(cluster, url)} == {word}
    assert f'"{word}"' in missing_create_right("", log.db.at).hint
    log.close()
    reader.close()


@pytest.mark.invariant("newer-store-refused")
def test_a_store_of_a_newer_interlock_is_refused_and_left_alone(cluster: Cluster) -> None:
    url = cluster.empty()
    log = connected(url)
    log.db.run("UPDATE interlock_store SET schema_version = %s", (schema.VERSION + 1,))

    with pytest.raises(StoreUnusable, match="newer Interlock"):
        connected(url)


@pytest.mark.invariant("newer-store-refused")
@pytest.mark.parametrize("is_grouped", [False, True])
def test_a_process_writes_nothing_to_a_store_that_a_newer_one_has_brought_forward(
    cluster: Cluster, *, is_grouped: bool
) -> None:
    log = connected(cluster.empty())
    log.append(opening())
    request = RequestRecord(
        canonical.blob_ref(b"k"), canonical.blob_ref(b"a"), ids.node_id(bytes(8)), 1, None
    )
    note = noting(after(opening()), "n")
    asked = msgspec.structs.replace(note, request=request)
    entry = ProjectPlan(ProjectId("shop"), "entry", b"{}", 1)
    log.db.run("UPDATE interlock_store SET schema_version = ?", (schema.VERSION + 1,))

    with log.group_commit() if is_grouped else nullcontext():
        for plan in (note, asked, opening(random_session())):
            with pytest.raises(StoreUnusable, match="newer Interlock"):
                log.append(plan)
        with pytest.raises(StoreUnusable, match="newer Interlock"):
            log.append_to_project(entry)

    assert log.db.scalar("SELECT count(*) FROM event") == len(opening().links)
    assert log.db.scalar("SELECT count(*) FROM project_entry") == 0
    assert log.db.scalar("SELECT count(*) FROM request") == 0
    log.db.run("UPDATE interlock_store SET schema_version = ?", (schema.VERSION,))
    assert log.append(note)
    assert log.append_to_project(entry)


def test_an_older_store_is_brought_forward_and_keeps_what_it_has(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cluster.empty()
    log = connected(url)
    log.append(opening())
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*schema.MIGRATIONS, "CREATE TABLE more (x integer);\n")
    )
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)

    newer = connected(url)

    assert newer.stream(SESSION, RUN) == after(opening())
    assert newer.db.scalar("SELECT count(*) FROM more") == 0


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cluster.empty()
    broken = "CREATE TABLE half (x integer);\nCREATE TABLE half (x integer);\n"
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)

    with pytest.raises(StoreUnusable, match="half"):
        connected(url)

    assert tables(cluster, url) == set()


def test_somebody_elses_tables_are_not_touched(cluster: Cluster) -> None:
    url = cluster.empty()
    name = url.partition("@/")[2].partition("?")[0]
    cluster.run("CREATE SCHEMA interlock; CREATE TABLE interlock.event (x integer)", name)

    with pytest.raises(StoreUnusable, match="not an Interlock store"):
        connected(url)

    assert tables(cluster, url) == {"interlock.event"}


def test_reading_cannot_write(log: PostgresLog) -> None:
    log.append(opening())

    with pytest.raises(StoreUnusable, match="read-only"):
        log.db.read("DELETE FROM stream")

    assert log.stream(SESSION, RUN) == after(opening())


def test_who_is_not_let_in_is_told_why(cluster: Cluster) -> None:
    name = "guarded"
    cluster.run("DROP ROLE IF EXISTS guarded")
    cluster.run(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    url = cluster.empty().replace("interlock@", f"{name}:wrong-{SECRET.replace('/', '%2F')}@")
    with pytest.raises(StoreUnusable, match="does not let us in") as failed:
        connected(url)
    assert "s3cret" not in str(failed.value)

    # The password is right, but nobody gave this user rights.
    with pytest.raises(StoreUnusable, match="Rights are missing") as missing:
        connected(url.replace("wrong-", ""))
    assert 'CREATE SCHEMA "interlock" AUTHORIZATION' in missing.value.hint

    with pytest.raises(StoreUnusable, match="no such database"):
        connected(cluster.url("nowhere"))
    with pytest.raises(StoreUnusable, match="does not know us"):
        connected(cluster.url(user="stranger"))


def test_a_server_that_is_too_old_or_keeps_other_texts_is_refused(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(StoreUnusable, match="SQL_ASCII"):
        connected(cluster.url("bytes"))

    monkeypatch.setattr(database, "SERVER_VERSION_MIN", 990_000)
    with pytest.raises(StoreUnusable, match="needs 15 or newer"):
        connected(url)


def test_nothing_that_is_shown_of_an_address_has_the_password() -> None:
    at = parse_address("postgresql://me:hidden@db.example:5433/team?sslmode=require")

    assert at.name == "postgresql://me@db.example:5433/team"
    assert "hidden" not in repr(at)
    assert at.parameters["sslmode"] == "require"


def test_a_store_is_the_same_one_after_its_server_was_started_again(
    cluster: Cluster, url: str
) -> None:
    """As on a standby: another server, started at another time, with the same data."""
    log = connected(url)
    was = log.identity()
    log.close()
    cluster.stop()
    cluster.start()

    assert log.identity() == was
    other = connected(f"{url}&options=-csearch_path%3Dteam_b")
    assert other.identity() != was
    log.close()
    other.close()


def test_a_store_is_told_from_others_without_the_right_to_ask_for_its_cluster(
    cluster: Cluster,
) -> None:
    cluster.run("DROP ROLE IF EXISTS modest")
    cluster.run("CREATE ROLE modest LOGIN")
    first, second = (cluster.empty() for _ in range(2))
    for url in (first, second):
        name = url.partition("@/")[2].partition("?")[0]
        cluster.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", name)
        cluster.run("CREATE SCHEMA interlock AUTHORIZATION modest", name)
    logs = [
        PostgresLog(parse_address(url.replace("interlock@", "modest@")))
        for url in (first, first, second)
    ]

    same, again, other = (log.identity() for log in logs)

    assert same == again != other
    for log in logs:
        log.close()


def test_a_server_that_drops_us_right_after_connecting_is_not_asked_for_ever(url: str) -> None:
    def dropped(db: database.PostgresDatabase) -> None:
        db.run("SELECT pg_terminate_backend(pg_backend_pid())")

    db = database.PostgresDatabase(parse_address(url), on_connected=dropped)

    with pytest.raises(ConnectionLost, match="was lost"):
        db.scalar("SELECT 1")


def test_what_could_not_be_written_for_a_moment_can_be_written_by_the_next_call(
    log: PostgresLog,
) -> None:
    """A standby that has become the primary, or a default that was changed back."""
    log.db.run("SET default_transaction_read_only = on")
    with pytest.raises(StoreUnusable, match="cannot be written") as failed:
        log.append(opening())
    assert "default_transaction_read_only" in failed.value.hint

    assert log.append(opening())


@pytest.mark.parametrize(
    ("setting", "default", "ours"),
    [
        ("transaction_isolation", "serializable", "read committed"),
        ("synchronous_commit", "off", "on"),
    ],
)
def test_a_default_of_the_database_changes_neither_isolation_nor_durability(
    cluster: Cluster, setting: str, default: str, ours: str
) -> None:
    url = cluster.empty()
    name = url.partition("@/")[2].partition("?")[0]
    prefix = "default_" if setting == "transaction_isolation" else ""
    cluster.run(f"ALTER DATABASE {name} SET {prefix}{setting} = '{default}'")
    log = connected(url)

    assert log.db.scalar(f"SHOW {setting}") == ours
    log.close()


def test_only_who_copies_may_stand_still_in_a_transaction(url: str, log: PostgresLog) -> None:
    target = open_target(url, os.urandom)
    assert isinstance(target.log, PostgresLog)

    asked = "SHOW idle_in_transaction_session_timeout"
    assert (target.log.db.scalar(asked), log.db.scalar(asked)) == ("0", "8s")
    # What is copied from is held still, too, while the target is written.
    with log.snapshot():
        assert log.db.scalar(asked) == "8s"
    with log.snapshot(is_long=True):
        assert log.db.scalar(asked) == "0"
    assert log.db.scalar(asked) == "8s"
    target.close()


def test_what_is_too_long_for_an_index_is_not_to_be_repeated(log: PostgresLog) -> None:
    log.append(opening())
    long = os.urandom(8_000).hex()

    with pytest.raises(StoreUnusable, match="too long") as failed:
        log.append(noting(after(opening()), long))

    assert "Nothing was written" in failed.value.hint
    assert "Repeat" not in failed.value.hint


def test_what_a_text_cannot_hold_is_kept_all_the_same(log: PostgresLog) -> None:
    log.append(opening())
    log.append(noting(after(opening()), "a\0b"))

    assert [row.recap for row in log.newest_runs(limit=1)] == ["a\0b"]
    assert b"a\\u0000b" in list(log.links(SESSION))[-1].body
    assert log.event_with_key(SESSION, "note:a\0b")
    assert log.find_session("ses_\0") == []


def test_a_request_that_is_refused_is_not_taken(log: PostgresLog) -> None:
    log.append(opening())
    request = RequestRecord(
        canonical.blob_ref(b"k"), canonical.blob_ref(b"a"), ids.node_id(bytes(8)), 1, None
    )
    with pytest.raises(Exception, match="expected 0 events"):
        log.append(msgspec.structs.replace(opening(), keys=("x", "y"), request=request))

    assert log.earlier_request(canonical.blob_ref(b"k")) is None
