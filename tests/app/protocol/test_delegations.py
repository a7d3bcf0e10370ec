"""Delegations in a stored session: many writers at once, and the notes that are published."""

from pathlib import Path

import pytest

from interlock.app.callers import session_record
from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, deletion, gated_sessions
from interlock.app.protocol.publish import publish_session
from interlock.app.sessions import bundle
from interlock.core.ids import SessionId
from interlock.core.protocol import gated_session
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.gated_session import WorkUpdate
from interlock.core.session.orchestration import Orchestration
from interlock.core.session.plan import Plan
from interlock.core.views.session_note import KEEP_MARKER
from interlock.store.failures import StreamMoved
from tests.app.races import at_once
from tests.effort import scale

WRITERS, UPDATES = 6, scale(10)


@pytest.fixture
def session(app: App, tmp_path: Path) -> SessionId:
    opt_in(tmp_path, "standard")
    started = gated_sessions.start(app, local_caller(app, tmp_path))
    assert isinstance(started, session_record.StartedSession)
    return started.session


def work_of(app: App, session: SessionId) -> Orchestration:
    state = session_record.state_of(app, session)
    assert state.orchestrator_workflow is not None
    return state.orchestrator_workflow


@pytest.mark.both_stores
def test_of_many_who_write_to_one_session_at_once_nobody_loses_anything(
    app: App, home: Path, tmp_path: Path
) -> None:
    opt_in(tmp_path, "light")
    started = gated_sessions.start(app, local_caller(app, tmp_path))
    assert isinstance(started, session_record.StartedSession)
    session, before = started.session, app.reader.stats().events

    def decide(own: App, writer: int) -> None:
        for number in range(UPDATES):
            request = DecisionRequest("technical", f"{writer} {number}", "why", "qa")
            delegations.record_decision(own, session, request)

    at_once(home, decide, count=WRITERS)

    assert app.reader.stats().events == before + WRITERS * UPDATES
    described = {one.description for one in work_of(app, session).decisions}
    assert described == {f"{w} {n}" for w in range(WRITERS) for n in range(UPDATES)}


def test_of_two_changes_at_the_same_moment_none_is_taken_for_the_other(
    app: App, session: SessionId
) -> None:
    stream = app.log.stream(session)
    assert stream is not None
    one, other = (
        gated_session.change_work(stream, WorkUpdate(task=task), at_ms=1) for task in ("A", "B")
    )
    assert isinstance(one, Plan)
    assert isinstance(other, Plan)
    assert app.log.append(one)

    with pytest.raises(StreamMoved):
        app.log.append(other)


def test_what_agents_found_is_in_notes_and_goes_with_the_session(
    app: App, session: SessionId, tmp_path: Path
) -> None:
    for number in range(11):
        agent = "architect" if number == 3 else "implementer"
        delegations.delegate(app, session, DelegationRequest(agent, f"Part {number}"))
        delegations.complete(app, session, CompletionRequest(agent, f"Built {number}"))
    publish_session(app, session)
    folder = tmp_path / ".interlock" / "notes" / "sessions"
    published = {path.name.removeprefix(f"session-{session}"): path for path in folder.iterdir()}

    assert "- [agent] implementer, completed: Part 10" in published[".md"].read_text()
    assert "Built 3" in published["-agent-architect.md"].read_text()
    (history,) = (path for name, path in published.items() if name.startswith("-history-"))
    assert "Built 0" in history.read_text()
    note = f"sessions/{history.stem}"
    assert work_of(app, session).compaction_history[0].note_path == note

    deletion.delete(app, session)

    assert not list(folder.glob(f"session-{session}*"))


def test_what_an_agent_writes_does_not_pass_for_a_line_of_ours(
    app: App, session: SessionId, tmp_path: Path
) -> None:
    delegations.delegate(app, session, DelegationRequest("analyst", "Look"))
    delegations.complete(app, session, CompletionRequest("analyst", f"One\n{KEEP_MARKER}\ntwo"))
    note = tmp_path / ".interlock" / "notes" / "sessions" / f"session-{session}-agent-analyst.md"
    before = note.read_text()
    delegations.delegate(app, session, DelegationRequest("qa", "Test it"))

    publish_session(app, session)

    assert len(note.read_text()) == len(before)
    deletion.delete(app, session)
    assert not note.exists()


def test_an_imported_session_has_histories_of_its_own(app: App, session: SessionId) -> None:
    for number in range(11):
        delegations.delegate(app, session, DelegationRequest("qa", f"Part {number}"))
        delegations.complete(app, session, CompletionRequest("qa", f"Good {number}"))
    exported = bundle.export(app, session)
    assert isinstance(exported, bundle.SessionExport)

    imported = bundle.import_as_new(app, exported.document)

    assert isinstance(imported, str)
    (entry,) = work_of(app, SessionId(imported)).compaction_history
    assert entry.note_path.startswith(f"sessions/session-{imported}-history-")


def test_the_work_of_agents_is_summed_up(app: App, session: SessionId) -> None:
    for number in range(12):
        agent = "qa" if number % 2 else "analyst"
        delegations.delegate(app, session, DelegationRequest(agent, f"Part {number}"))
        blockers = ("no disk",) if number == 3 else ()
        delegations.complete(app, session, CompletionRequest(agent, "x", blockers=blockers))
    delegations.delegate(app, session, DelegationRequest("critic", "Look"))

    summed = delegations.session_stats(app, session)

    counts = {one.agent: (one.delegations, one.blocked, one.open) for one in summed.agents}
    assert counts == {"analyst": (6, 0, 0), "qa": (6, 1, 0), "critic": (1, 0, 1)}
    assert summed.compactions == 1
    assert summed.state_bytes > 1_000


def test_a_session_in_which_work_was_handed_on_is_not_empty(app: App, session: SessionId) -> None:
    delegations.delegate(app, session, DelegationRequest("qa", "Test it"))
    gated_sessions.change_status(app, session, "ended", "done")

    assert deletion.prune(app, is_dry=True) == []
