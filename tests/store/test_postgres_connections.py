"""Connections to PostgreSQL: given back, waited for, and led through a pooler or refused there."""
# pyright: reportPrivateUsage=false

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from interlock.mcp.client import StdioClient
from interlock.store.failures import StoreBusy, StoreUnusable
from interlock.store.postgres import database, pooler
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from tests.pooler import MISSING, Pooler, program
from tests.postgres import Cluster, connected
from tests.postgres_proxy import CountingProxy
from tests.scenes import RUN, SESSION, after, noting, opening, random_session, run_in
from tests.store.waiting import wait_until


@pytest.fixture
def log(url: str) -> Iterator[PostgresLog]:
    opened = connected(url)
    yield opened
    opened.close()


def test_a_connection_that_nobody_uses_is_given_back(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "IDLE_SECONDS", 0.05)
    log = connected(url)
    log.append(opening())

    wait_until(lambda: not log.db.is_connected, "it is given back")

    assert log.stream(SESSION, RUN) == after(opening()), "the next call opens another"
    log.close()


@pytest.mark.parametrize("setting", ["IDLE_SECONDS", "TURN_SECONDS"])
def test_a_connection_with_an_open_transaction_is_not(
    url: str, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr(database, setting, 0.02)
    log, session = connected(url), random_session()
    time.sleep(0.05)

    with log.group_commit():
        log.append(opening(session))
        time.sleep(0.1)
        log.append(noting(after(opening(session)), "later"))
    with log.snapshot():
        before = log.stream(session)
        time.sleep(0.1)
        assert log.stream(session) == before

    assert log.stream(session, run_in(session)) == after(noting(after(opening(session)), "later"))
    log.close()


def test_a_connection_that_was_used_for_long_is_given_back_after_a_call(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise those who came first keep all of them, where there are too few."""
    monkeypatch.setattr(database, "TURN_SECONDS", 0.0)
    log = connected(url)

    log.append(opening())

    assert not log.db.is_connected
    log.close()


def test_a_server_keeps_its_connection(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(database, "TURN_SECONDS", 0.0)
    log = PostgresLog(parse_address(url), is_kept=True)
    log.append(opening())
    time.sleep(0.1)

    assert log.db.is_connected
    log.close()


def test_where_all_connections_are_taken_one_is_waited_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cluster.empty()
    name = url.partition("@/")[2].partition("?")[0]
    cluster.run("CREATE ROLE crowded LOGIN CONNECTION LIMIT 1")
    cluster.run(f"ALTER DATABASE {name} OWNER TO crowded")
    crowded = url.replace("interlock@", "crowded@")
    holder, waiter = connected(crowded), PostgresLog(parse_address(crowded))
    thread = threading.Thread(target=lambda: waiter.append(opening()))
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive(), "it waits"

    holder.close()
    thread.join()

    assert waiter.stream(SESSION, RUN) == after(opening())
    monkeypatch.setattr(database, "SLOT_SECONDS", 0.3)
    with pytest.raises(StoreBusy, match="no connection left"):
        connected(crowded)
    waiter.close()


def test_an_idle_stdio_server_holds_no_connection(
    url: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CountingProxy(url) as proxy:
        monkeypatch.setenv("INTERLOCK_STORE", proxy.url)
        client = StdioClient(home, workspace=tmp_path)
        client.initialize()
        client.request("tools/list")
        assert proxy.connections == 0, "it has not needed one yet"

        started = client.call("start_workflow", workflowId="hello", goal="Idle")
        assert proxy.connections == 1
        wait_until(lambda: proxy.connections == 0, "it is given back")

        token = started["structuredContent"]["continueToken"]
        assert not client.call("continue_workflow", continueToken=token)["isError"]
        client.close()


@pytest.mark.skipif(program() is None, reason=MISSING)
@pytest.mark.parametrize(
    ("mode", "pooled"), [("transaction", "transactions"), ("statement", "statements")]
)
def test_a_pooler_that_lends_connections_is_refused_by_name(
    cluster: Cluster, url: str, mode: Literal["transaction", "statement"], pooled: str
) -> None:
    with Pooler(cluster, mode) as pool:
        for _ in range(2):
            with pytest.raises(StoreUnusable, match=f"pools {pooled}") as failed:
                connected(pool.url_of(url))
            assert "pool_mode = session" in failed.value.hint


@pytest.mark.skipif(program() is None, reason=MISSING)
def test_a_pooler_whose_connections_are_all_taken_is_not_mistaken(
    cluster: Cluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooler, "PROBE_SECONDS", 0.2)
    with Pooler(cluster, "session", connections=1) as pool:
        log = connected(pool.url_of(url))

        assert log.append(opening())
        log.close()
