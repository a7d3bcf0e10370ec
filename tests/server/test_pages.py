"""The pages as a program sees them: what is on them, and what is not."""

import re
import threading
from pathlib import Path

import pytest

from interlock.app.callers.caller import Caller, local_caller
from interlock.app.callers.session_record import StartedSession
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.feature_reviews import complete_feature
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.core.protocol.feature_completion import FeatureCompletionRequest
from tests.server.conftest import Staged
from tests.server.forms import assert_harmless
from tests.server.server_process import Server
from tests.server.stage import Stage
from tests.sessions import record_progress

SESSION = re.compile(r"ses_[0-9a-f]{16}")


def test_the_first_page_lists_what_there_is_but_not_what_is_archived(
    server: Server, stage: Staged
) -> None:
    page = server.get("/sessions")

    assert page.status == 200
    shown = set(SESSION.findall(page.text))
    assert {name for name, session in stage.sessions.items() if session not in shown} == {
        "archived",
        "branch",
    }
    assert len(page.body) < 150_000


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("status=waiting", {"waits"}),
        ("status=completed", {"done"}),
        ("status=archived", {"archived"}),
        ("q=colour+status", {"blocked"}),
        ("q=%22%29+OR+*", set[str]()),
        ("workflow=coding-task", {"open"}),
        ("project=/nowhere", set[str]()),
    ],
)
def test_a_list_is_filtered_in_its_address(
    server: Server, stage: Staged, query: str, names: set[str]
) -> None:
    page = server.get(f"/sessions?{query}")

    assert page.status == 200
    assert set(SESSION.findall(page.text)) == {stage.sessions[name] for name in names}


@pytest.mark.parametrize("path", ["/sessions", "/sessions/{waits}"])
def test_progress_says_what_was_skipped_in_words_and_in_the_bar(
    server: Server, stage: Staged, path: str
) -> None:
    page = server.get(path.format(**stage.sessions)).text

    assert "<span>4 of 6 done, 1 skipped</span>" in page
    assert '<rect class="skipped" x="66.7%" width="16.7%" height="100%"/>' in page


def test_an_empty_store_says_what_to_do(empty_server: Server) -> None:
    for path, words in {
        "/sessions": ("No sessions yet", "interlock install claude-code"),
        "/now": ("nothing waits for you", "nothing runs", "interlock install claude-code"),
        "/inbox": ("Nothing waits for you", "interlock approvals list"),
        "/board": ("Nobody has registered yet", "interlock preflight"),
        "/jobs": ("No jobs yet", "A job is work that goes on by itself"),
    }.items():
        page = empty_server.get(path).text
        assert [text for text in words if text not in page] == [], path
    assert empty_server.get("/api/v2/jobs").json == {"jobs": []}
    assert empty_server.get("/api/v2/coordination").json == {"projects": []}


@pytest.mark.parametrize("path", ["/sessions/ses_0000000000000000", "/nothing-here"])
def test_what_is_not_there_is_said_on_a_page_with_a_way_on(server: Server, path: str) -> None:
    page = server.get(path)

    assert page.status == 404
    assert "<h1>" in page.text
    assert 'href="/sessions"' in page.text


def test_a_node_that_is_not_there_is_a_page_too(server: Server, stage: Staged) -> None:
    page = server.get(f"/sessions/{stage.sessions['done']}?node=node_0000000000000000")

    assert page.status == 404
    assert "has no node" in page.text


def test_the_path_tells_what_was_done_decided_refused_and_kept(
    server: Server, stage: Staged
) -> None:
    page = server.get(f"/sessions/{stage.sessions['waits']}").text

    for told in (
        "Understand the task",
        "Other attempt</a>: Another reading: the size is fine",
        "2 passes · 2 steps",
        "1 refusal",
        "Say `Tests:` and what they showed",
        "Merge this into main?",
        "waits for your answer",
        "What is to be approved",
    ):
        assert told in page


def test_a_fold_is_opened_by_its_address(server: Server, stage: Staged) -> None:
    page = server.get(f"/sessions/{stage.sessions['waits']}?open=2").text

    assert "skipped Try the risky part" in page
    assert "pass 2" in page
    assert "Checkpoint</a>" in page


def test_a_node_shows_what_was_given_and_what_was_handed_in(server: Server, stage: Staged) -> None:
    session = stage.sessions["waits"]
    path = server.get(f"/sessions/{session}").text
    first = re.findall(r'<li id="(node_[0-9a-f]+)"', path)[0]

    tabs = {
        tab: server.get(f"/sessions/{session}?node={first}&tab={tab}").text
        for tab in ("", "prompt", "context", "trace")
    }

    assert "<strong>Streaming</strong>" in tabs[""], "notes are rendered"
    assert "Another reading" in tabs[""], "the other attempt is there too"
    assert "Read what matters for: Make the import" in tabs["prompt"]
    assert '<span class="is">Make the import' in tabs["context"], "it was set at the start"
    assert "Raw event" in tabs["trace"]


def test_a_mode_that_no_hook_enforces_is_said_to_be_so(
    server: Server, stage: Staged, tmp_path: Path
) -> None:
    opt_in(tmp_path, "standard")
    app = open_app(stage.home)
    caller = Caller(surface="cli", actor="user", workspace=tmp_path)
    started = gated_sessions.start(app, caller)
    app.close()
    assert isinstance(started, StartedSession)

    names = (started.session, stage.sessions["attended"])  # the second was reported by a hook
    pages = [server.get(f"/sessions/{name}").text for name in names]

    assert ["The mode is not enforced" in page for page in pages] == [True, False]


def test_events_come_newest_first_and_can_be_narrowed_to_failures(
    server: Server, stage: Staged
) -> None:
    session = stage.sessions["blocked"]
    page = server.get(f"/sessions/{session}/events").text
    numbers = [int(seq) for seq in re.findall(r'<tr id="e(\d+)"', page)]
    failures = server.get(f"/sessions/{session}/events?only=failures").text

    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 0
    assert 0 < failures.count("<tr id=") < len(numbers)
    assert "validation_performed" in failures


@pytest.mark.invariant("text-stays-text")
@pytest.mark.parametrize("tab", ["", "/graph", "/events"])
def test_hostile_text_is_shown_as_text(server: Server, stage: Staged, tab: str) -> None:
    assert_harmless(server.get(f"/sessions/{stage.sessions['hostile']}{tab}"))


def test_a_session_that_is_deleted_while_it_is_looked_at_is_there_or_not(
    empty_server: Server, tmp_path: Path
) -> None:
    app = open_app(empty_server.home)
    stage = Stage(app, tmp_path)
    names: list[str] = ["ses_0000000000000000"]
    seen: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            for tab in ("", "/events", "/graph", "/export"):
                seen.append(empty_server.get(f"/sessions/{names[-1]}{tab}").status)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(40):
        names.append(stage.start("hello", f"Soon gone {number}")["introduction"]["session"])
        app.log.delete(SessionId(names[-1]))
    is_over.set()
    for reader in readers:
        reader.join()
    app.close()

    assert set(seen) <= {200, 404}


def test_work_that_was_handed_on_is_shown_with_its_results(
    server: Server, stage: Staged, tmp_path: Path
) -> None:
    opt_in(tmp_path, "light")
    app = open_app(stage.home)
    started = gated_sessions.start(app, local_caller(app, tmp_path))
    assert isinstance(started, StartedSession)
    session = started.session
    assert "/agents" not in server.get(f"/sessions/{session}").text, "there is nothing to show"
    record_progress(app, session)
    shown = server.get(f"/sessions/{session}/agents").text
    assert "/agents" in server.get(f"/sessions/{session}").text
    assert "<h2>Task list</h2>\n<ul><li>in progress: Build it</li></ul>" in shown
    assert "<li>Explore, asked “Look”: completed. Found it</li>" in shown
    assert "No work was handed" not in shown
    delegations.delegate(app, session, DelegationRequest("analyst", "Find <b>it</b>"))
    result = CompletionRequest("analyst", "The *cache*", blockers=("no profile",), handoff_to="qa")
    delegations.complete(app, session, result)
    complete_feature(app, session, FeatureCompletionRequest("Export", ("qa", "critic")))
    delegations.complete(app, session, CompletionRequest("qa", "Unsure"))
    app.close()

    page = server.get(f"/sessions/{session}/agents")

    assert page.status == 200
    assert "Find &lt;b&gt;it&lt;/b&gt;" in page.text
    assert "The <em>cache</em>" in page.text
    assert "Blocked by: no profile" in page.text
    assert "analyst → <strong>qa</strong>" in page.text
    assert "under review" in page.text
    assert "qa: needs_revision · critic: no verdict" in page.text
    assert f'href="/sessions/{session}/agents" aria-current="page"' in page.text
