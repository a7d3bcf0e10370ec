"""What one session leaves open, and the briefing of the next one carries on."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers.user_answer import user_answer
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.handoff.export import session_handoff
from interlock.app.protocol import delegations, end_request, feature_reviews, gated_sessions
from interlock.app.protocol.bootstrap import assemble_bootstrap
from interlock.app.protocol.end_request import SessionEnding
from interlock.app.runs.inbox import list_cards
from interlock.app.runs.waiting import count_waiting, list_waiting
from interlock.app.sessions import session_approvals
from interlock.core.handoff.page import handoff_page
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.core.protocol.feature_completion import FeatureCompletionRequest
from interlock.core.session.session_approvals import SessionApprovalWish
from interlock.durable.executor import run_pending_jobs
from tests.app.callers.conversations import talk
from tests.sessions import begin_recorded

HEADING = "Earlier work here"


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-qb", "fix", str(root)], check=True)
    opt_in(root, "standard")
    git(root, "add", ".")
    git(root, "commit", "-qm", "begin")
    return root


def left_open(app: App, root: Path, name: str) -> str:
    """What the briefing of a new conversation says under its heading."""
    state = gated_sessions.begin(app, root, talk(name)).state
    text = assemble_bootstrap(app, state).text
    return text.partition(f"## {HEADING}\n")[2].partition("\n## ")[0]


def test_the_next_session_is_told_what_this_one_has_left_open(app: App, root: Path) -> None:
    session = begin_recorded(app, root, talk("one")).session
    (root / "parser.py").write_text("x = 1\n")
    requested = feature_reviews.complete_feature(
        app, session, FeatureCompletionRequest("Export", ("qa",))
    )
    assert isinstance(requested, feature_reviews.RequestedReview)
    (card,) = list_cards(app)
    assert (card.kind, card.headline, card.branch) == ("review", "Export", "fix")
    assert card.question == "The review waits for the verdict of qa"
    assert card.deadline_ms is not None
    assert (count_waiting(app), len(list_waiting(app).reviews)) == (1, 1)
    delegations.delegate(app, session, DelegationRequest("analyst", "Look"))
    completed = CompletionRequest("analyst", "The parser is slow", handoff_to="implementer")
    delegations.complete(app, session, completed)

    patient = msgspec.structs.replace(app, waits_for_jobs=False)
    asked = end_request.end_session(patient, session, "The parser is done.")
    assert isinstance(asked, SessionEnding), asked
    assert run_pending_jobs(app.home, seconds=60)
    again = end_request.end_session(app, session)
    assert isinstance(again, SessionEnding)
    assert any("of “Export” has no verdict yet from qa" in one for one in again.remarks)
    assert [one.feature for one in list_waiting(app).reviews] == ["Export"], "until it is reviewed"
    assert count_waiting(app) == list_waiting(app).count

    told = left_open(app, root, "two")
    for part in (
        f"{session} ended: The parser is done.",
        "Not committed: parser.py.",
        "Review rev_",
        "Verdicts are awaited from: qa",
        "Hand-off from analyst to implementer",
    ):
        assert part in told, told

    git(root, "add", ".")
    git(root, "commit", "-qm", "parser")
    assert "Not committed" not in left_open(app, root, "three")
    git(root, "switch", "-qc", "other")
    assert "ended: The parser is done." not in left_open(app, root, "four"), "another branch"


def test_an_approval_that_waits_is_named_until_it_is_answered(app: App, root: Path) -> None:
    session = begin_recorded(app, root, talk("one")).session
    wish = SessionApprovalWish("request", "May I drop the cache?", "It is stale.", "d1")
    asked = session_approvals.request_approval(app, session, wish)
    assert isinstance(asked, session_approvals.RequestStatus)

    told = left_open(app, root, "two")
    assert f"{session}: the user has not answered {asked.approval}: May I drop the cache?" in told
    gated_sessions.change_status(app, session, "ended", "for the test")
    told = left_open(app, root, "three")
    assert f"{session} ended before the user answered “May I drop the cache?”." in told
    assert asked.approval not in told, "nobody can answer it any more"
    session_approvals.record_answer(
        app, session, asked.approval, user_answer("denied", "", place="x")
    )
    assert "drop the cache" not in left_open(app, root, "four")


def test_a_handoff_file_has_the_delegations_of_a_session(app: App, root: Path) -> None:
    session = begin_recorded(app, root, talk("one")).session
    delegations.delegate(app, session, DelegationRequest("analyst", "Look"))
    delegations.complete(app, session, CompletionRequest("analyst", "The parser is slow"))
    delegations.delegate(app, session, DelegationRequest("qa", "Test it"))

    page = handoff_page(session_handoff(app, session))

    progress = page.partition("## Progress\n\n")[2].partition("\n\n## ")[0]
    assert "- [x] analyst, “Look”: The parser is slow" in progress
    assert "- [ ] qa, “Test it”" in progress
