"""A store that an older Interlock wrote is opened, brought forward, and gone on with."""

import gzip
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from interlock.app.callers.session_record import state_of
from interlock.app.context import App, open_app
from interlock.app.runs.waiting import list_waiting
from interlock.app.sessions.lookup import verify_all
from interlock.core.ids import SessionId
from interlock.core.session.events import decode_envelope
from interlock.core.session.plan import Stream, fold
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLSETS, NoSuchToolset, tools_of
from interlock.store.records import RunSearch, SessionFilter
from interlock.store.sqlite.database import SqliteDatabase
from tests.app.admin.store_contents import contents, contents_at, copied
from tests.postgres import Cluster

STORES = Path(__file__).parents[2] / "golden" / "stores"
OLD = STORES / "a35074a"
CALLS: dict[str, Any] = json.loads((OLD / "calls.json").read_text())


@pytest.fixture(params=["file", "postgres"])
def old(
    request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    """The old store, opened."""
    yield from opened(OLD, request, home, monkeypatch)


@pytest.fixture(params=["file", "postgres"])
def with_progress(
    request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    """The first store with plans, tasks, subagents and waived requirements, opened."""
    yield from opened(STORES / "schema-6", request, home, monkeypatch)


def opened(
    golden: Path, request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    if request.param == "file":
        monkeypatch.delenv("INTERLOCK_STORE", raising=False)
        lay_out_file(home, golden).close()
    else:
        home.mkdir(parents=True)
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.empty()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(gzip.decompress((golden / "postgres.sql.gz").read_bytes()))
        monkeypatch.setenv("INTERLOCK_STORE", url)
    app = open_app(home)
    yield app
    app.close()


def lay_out_file(home: Path, golden: Path = OLD) -> SqliteDatabase:
    home.mkdir(parents=True)
    path = home / "interlock.db"
    path.write_bytes(gzip.decompress((golden / "interlock.db.gz").read_bytes()))
    shutil.copy(golden / "keyring", home / "keyring")
    return SqliteDatabase.read_write(path)


def called(app: App, tool: str, **arguments: Any) -> dict[str, Any]:
    tools = tools_of(tuple(TOOLSETS))
    assert not isinstance(tools, NoSuchToolset)
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    reply = McpProtocol(app, tools).answer(msgspec.json.encode(message))
    assert reply is not None
    return msgspec.json.decode(reply)["result"]


def test_it_is_sound_and_everything_in_it_is_found(old: App) -> None:
    assert [health.state for _, health in verify_all(old)] == ["healthy"] * 5
    assert old.reader.stats().events == 71
    listed = old.reader.list_sessions(SessionFilter(is_archived=None), before=None, limit=9)
    titles = [one.latest_run.goal if one.latest_run else "" for one in listed.sessions]
    assert titles == ["", "Put aside", "# Findings", "Granted and blocked", "A second run here"]
    shared = listed.sessions[-1]
    assert (shared.head.run_count, [run.status for run in old.reader.runs(shared.session)]) == (
        2,
        ["open", "waiting"],
    )
    assert [one.head.is_archived for one in listed.sessions] == [False, True, False, False, False]
    for words, goal in ((("slices",), "A second run here"), (("tested",), "Granted and blocked")):
        assert [row.title for row in old.reader.find_runs(RunSearch(words), limit=9)] == [goal]
    waiting = list_waiting(old)
    assert [approval.question for approval in waiting.approvals] == ["Is the plan good?"]
    assert [gap.gap.summary for gap in waiting.gaps] == ["No docs yet"]
    workspace = "/srv/interlock-golden/project"
    (attended,) = old.reader.attended_sessions_in(workspace)
    assert old.reader.session_of_conversation("claude-code", "conversation-1") == attended.session


@pytest.mark.invariant("head-is-a-fold")
def test_its_heads_are_folds_of_its_events(old: App) -> None:
    for session in old.reader.all_sessions():
        envelopes = [decode_envelope(link.body) for link in old.reader.links(session)]
        head, runs = fold(Stream(SessionId(session)), envelopes)

        stream = old.reader.stream(session)
        assert stream is not None
        assert (stream.head, old.reader.runs(session)) == (head, list(runs.values()))


@pytest.mark.invariant("replay-is-identical")
def test_a_call_that_was_made_then_gets_its_answer_word_for_word(old: App) -> None:
    replayed = 0
    for call in CALLS["calls"]:
        if call["arguments"].get("continueToken") and call["arguments"].get("output"):
            answer = called(old, call["tool"], **call["arguments"])

            assert answer["content"][0]["text"] == call["text"]
            shown, was = answer["structuredContent"], call["structured"]
            for field in ("kind", "pending", "continueToken", "isComplete", "nextIntent"):
                assert shown.get(field) == was.get(field), field
            replayed += 1
    assert replayed == 8


def test_its_runs_go_on(old: App) -> None:
    token = CALLS["calls"][3]["structured"]["continueToken"]

    shown = called(old, "continue_workflow", continueToken=token)
    done = called(
        old, "continue_workflow", continueToken=token, output={"notesMarkdown": "Two is done."}
    )

    assert "Another way: cherries." in shown["content"][0]["text"]
    assert done["structuredContent"]["isComplete"]


def test_its_progress_and_waivers_are_found(with_progress: App) -> None:
    ((session, health),) = verify_all(with_progress)
    assert health.state == "healthy"
    kinds = {
        msgspec.json.decode(link.body)["event"]["kind"]
        for link in with_progress.reader.links(session)
    }
    assert {
        *("plan_approved", "tasks_updated", "subagent_started", "subagent_ended"),
        *("requirement_waived", "preferences_changed"),
    } <= kinds
    state = state_of(with_progress, session)
    progress = state.progress
    assert progress is not None
    assert progress.plan is not None
    assert "# Plan" in progress.plan.text
    assert [(task.title, task.status) for task in progress.tasks] == [
        ("Read the code", "completed")
    ]
    assert [one.outcome for one in progress.subagents] == ["completed"]
    head = with_progress.reader.head(session)
    assert head.attended is not None
    assert (head.attended.autonomy, head.attended.has_progress) == (
        "full_auto_stop_on_user_deps",
        True,
    )
    assert "notOnMain" not in head.attended.open_start


def test_it_can_be_copied(old: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"

    copied(old, str(target))

    assert contents_at(monkeypatch, target, "") == contents(old)


DAMAGED_EVENT = "UPDATE event SET body = x'78' WHERE position = 4;"
DAMAGED_HEAD = (
    "UPDATE stream SET head = x'78' WHERE id = (SELECT stream FROM event WHERE position = 4)"
)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("damage", "told"),
    [(DAMAGED_EVENT, "ok"), (DAMAGED_EVENT + DAMAGED_HEAD, "session_unhealthy")],
    ids=["an event far from the end", "an event and the head"],
)
def test_a_damaged_session_in_it_keeps_nobody_out(home: Path, damage: str, told: str) -> None:
    with closing(lay_out_file(home)) as db:
        db.run(damage)
    with closing(open_app(home)) as app:
        states = [health.state for _, health in verify_all(app)]
        token = CALLS["calls"][1]["structured"]["continueToken"]

        answer = called(app, "continue_workflow", continueToken=token)["structuredContent"]

    assert sorted(states) == ["corrupt_tail", *["healthy"] * 4]
    assert answer.get("code", answer.get("kind")) == told
