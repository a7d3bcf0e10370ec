"""Carrying a session elsewhere: whole or not at all, and it goes on there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers import session_record
from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.refusals import NoSuchSession
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.sessions import bundle
from interlock.app.sessions.bundle import ImportPreview, SessionExport
from interlock.app.sessions.lookup import check_stream, load_run_graph
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.answer import RenderedAnswer
from interlock.core.views.graph import GraphNode, RunGraph
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.scenes import handed_in, output, shown, started
from tests.sessions import begin_recorded


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[App]:
    other = open_app(tmp_path / "elsewhere")
    yield other
    other.close()


def rich_session(app: App, workspace: Path) -> RenderedAnswer:
    """With a branch, a blocked attempt, a checkpoint, artifacts and context."""
    first = started(app, workspace, steps=4)
    handed_in(app, handed_in(app, first, ""), "mended")
    checkpoint(app, first.answer.continue_token, output("a marker"))
    second = handed_in(app, first, "another way")
    third = advance(
        app,
        second.answer.continue_token,
        output(
            "more",
            {"kind": "report", "value": 1.5},
            {"kind": "gap", "severity": "info", "summary": "x"},
            context={"area": "ünïcode"},
        ),
    )
    assert isinstance(third, RenderedAnswer)
    return third


def exported(app: App, answered: RenderedAnswer) -> SessionExport:
    done = bundle.export(app, answered.session)
    assert isinstance(done, SessionExport)
    return done


def shape(graph: RunGraph) -> Any:
    children = graph.children()

    def of(node: GraphNode) -> Any:
        return (node.kind, node.step_id, node.notes, [of(c) for c in children.get(node.id, [])])

    return [of(root) for root in children[None]]


@pytest.mark.both_stores
@pytest.mark.invariant("bundle-is-whole")
def test_an_imported_session_has_the_same_graph_and_the_same_prompts(
    app: App, elsewhere: App, tmp_path: Path
) -> None:
    last = rich_session(app, tmp_path)
    document = exported(app, last).document

    session = bundle.import_as_new(elsewhere, document)

    assert isinstance(session, str)
    assert session != last.session
    assert check_stream(elsewhere.reader, session).state == "healthy"
    (candidate,) = find_resumable_runs(
        elsewhere.reader,
        elsewhere.keyring,
        ResumeQuery(tmp_path, session=session),
    )
    assert shape(load_run_graph(elsewhere, candidate.row.run)) == shape(
        load_run_graph(app, last.run)
    )
    there = shown(elsewhere, candidate.token)
    assert there.answer.pending == last.answer.pending
    assert handed_in(elsewhere, there).answer.branches == ()


def test_it_can_be_imported_where_it_came_from(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)
    document = exported(app, last).document

    sessions = {bundle.import_as_new(app, document) for _ in range(2)}

    assert len(sessions) == 2
    assert app.reader.stats().sessions == 3


def test_no_token_leaves_with_it(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)

    assert b"ct1" not in exported(app, last).document


def test_what_looks_like_a_secret_is_listed_and_not_shown_whole(app: App, tmp_path: Path) -> None:
    secret = GITHUB_TOKEN
    last = handed_in(app, started(app, tmp_path), f"used {secret} and password=hunter2hunter2")

    found = exported(app, last).suspects

    assert {suspect.kind for suspect in found} == {"github-pat", "variable-password"}
    assert all(secret not in suspect.shown for suspect in found)


def test_an_unknown_session_is_not_exported(app: App) -> None:
    assert bundle.export(app, "ses_none") == NoSuchSession("ses_none", ())


def test_a_bundle_says_what_would_come_of_it(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)
    done = exported(app, last)

    checked = bundle.preview_import(done.document)

    assert isinstance(checked, ImportPreview)
    stream = app.reader.stream(last.session)
    assert stream is not None
    assert stream.head is not None
    assert checked.head == msgspec.structs.replace(stream.head, workspace="")
    assert (checked.session, checked.events) == (last.session, done.events)
    assert checked.producer.startswith("interlock ")


def test_an_imported_session_takes_no_conversation_away(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    done = bundle.export(app, session)
    assert isinstance(done, SessionExport)

    imported = bundle.import_as_new(app, done.document)

    assert isinstance(imported, str)
    assert app.reader.session_of_conversation("claude-code", "one") == session
    state = session_record.state_of(app, imported)
    assert [found.session for found in state.host_sessions] == ["one"], "it is told all the same"


def test_a_bundle_holds_no_path_of_the_machine_it_comes_from(
    app: App, elsewhere: App, tmp_path: Path
) -> None:
    project, there = tmp_path / "project", tmp_path / "there"
    for directory in (project, there):
        directory.mkdir()
        opt_in(directory, "strict")
    begin_recorded(app, project, Conversation("claude-code", "one"))
    session = handed_in(app, started(app, project), "See /etc/hosts").session

    done = bundle.export(app, session)

    assert isinstance(done, SessionExport)
    assert str(tmp_path) not in done.document.decode()
    assert "See /etc/hosts" in done.document.decode(), "what somebody wrote stays as it is"
    imported = bundle.import_as_new(elsewhere, done.document, there)
    assert isinstance(imported, str)
    state = session_record.state_of(elsewhere, imported)
    assert (state.worktree, state.status) == (str(there), "ended")
    assert elsewhere.reader.attended_sessions_in(str(there)) == [], "no call is taken for its own"
