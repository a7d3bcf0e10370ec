"""One vocabulary of statuses: each word by what decides it, with its reason, colour and shape."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs.rehydrate import rehydrate
from interlock.core.ids import ApprovalId, RunId, WorkflowHash, WorkflowId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.approval_events import OpenApproval
from interlock.core.session.head import Attendance, Head
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.unattended.order import Limits, ParkReason, UnattendedOrder, UnattendedState
from interlock.core.views.status import (
    DISCONNECTED_AFTER_MS,
    FINISHED,
    IDLE_AFTER_MS,
    LOOKS,
    ClientState,
    Surroundings,
    Word,
    run_status,
    session_status,
    status_of,
)
from tests.core.views.driven_runs import GAP, STOP, Driven, planned, step
from tests.sessions import begin_recorded

NONE = Head("/work", 1, 2)
ENDED = Attendance("coding", status="ended")
RESUMED = Attendance("coding", status="ended", is_resumed=True)
DEPARTED = Attendance("coding", status="ended", is_departed=True)
PAUSED, ACTIVE = Attendance("coding", status="paused"), Attendance("coding")
OWN = OpenApproval(ApprovalId("apr_1"), "tool_call", "digest")
ORDER = UnattendedOrder(WorkflowId("line"), "See to it", "/work", "here")


def run_head(goal: str = "Try it", **fields: Any) -> RunHead:
    return RunHead(
        run=RunId("run_1"),
        workflow_id=WorkflowId("line"),
        workflow_version="1.0.0",
        workflow_hash=WorkflowHash("sha256:0"),
        step_count=3,
        goal=goal,
        **fields,
    )


def head(attended: Attendance | None = None, **fields: Any) -> Head:
    return Head("/work", 1, 2, attended, **fields)


STOPPED = run_head(status="waiting", blocked_in_row=BLOCKED_IN_ROW_MAX)
APPROVAL = run_head(status="waiting", approvals=(ApprovalId("apr_2"),))
QUESTION, BLOCKED = run_head(asks_user=True), run_head(blocked_in_row=8)


@pytest.mark.parametrize(
    ("run", "of", "word", "reason"),
    [
        (run_head(pending_title="Plan"), NONE, "running", "The agent's next step is `Plan`."),
        (APPROVAL, NONE, "waiting", "waits for approval"),
        (QUESTION, NONE, "waiting", "must ask the user"),
        (STOPPED, NONE, "waiting", "10 attempts in a row were not accepted"),
        # The request is the session's, and this run may have been started after it.
        (run_head(), head(approvals=(OWN,)), "running", "next step"),
        (BLOCKED, NONE, "blocked", "The last 8 attempts were not accepted"),
        (run_head(blocked_in_row=1), NONE, "blocked", "The last attempt was not accepted"),
        (run_head(asks_user=True, blocked_in_row=1), NONE, "blocked", "not accepted"),
        (run_head(status="complete"), NONE, "completed", "Every step is done."),
        (
            run_head(status="complete", gaps_open=1),
            NONE,
            "completed",
            "Every step is done. 1 gap is left open, none critical.",
        ),
        (
            run_head(status="complete", steps_done=1, steps_skipped=2),
            NONE,
            "completed",
            "1 step done, 2 skipped.",
        ),
        (
            run_head(status="complete_with_gaps", gaps_critical=2),
            NONE,
            "completed with gaps",
            "Every step is done; 2 critical gaps are left open.",
        ),
        (run_head(status="abandoned"), NONE, "abandoned", "no agent can continue it"),
        # Whatever it stopped at: a paused session asks nobody, and an ended one has no agent.
        *(
            (run, head(attended), "paused", reason)
            for run in (run_head(), APPROVAL, QUESTION, STOPPED, BLOCKED)
            for attended, reason in (
                (PAUSED, "`interlock session resume` continues it"),
                (ENDED, "Its session was ended"),
            )
        ),
        (APPROVAL, head(is_archived=True), "paused", "archived"),
        (BLOCKED, head(RESUMED), "blocked", "not accepted"),
        (BLOCKED, head(DEPARTED), "blocked", "not accepted"),
        (run_head(status="complete"), head(PAUSED), "completed", "Every step is done."),
        (run_head(status="complete"), head(ENDED), "completed", "Every step is done."),
    ],
)
def test_the_status_of_a_run(run: RunHead, of: Head, word: Word, reason: str) -> None:
    found = run_status(run, of)

    assert (found.word, reason in found.reason) == (word, True), found


SILENCES = (0, IDLE_AFTER_MS, IDLE_AFTER_MS + 1, DISCONNECTED_AFTER_MS, DISCONNECTED_AFTER_MS + 1)
PRESENT: dict[ClientState, tuple[Word, ...]] = {
    "connected": ("active", "active", "idle", "idle", "idle"),
    "gone": ("disconnected", "disconnected", "disconnected", "disconnected", "disconnected"),
    "unknown": ("active", "active", "idle", "idle", "disconnected"),
}


@pytest.mark.parametrize("client", get_args(ClientState))
@pytest.mark.parametrize("attended", [None, ACTIVE, PAUSED, ENDED, RESUMED, DEPARTED])
def test_the_status_of_a_session(client: ClientState, attended: Attendance | None) -> None:
    found = [session_status(head(attended), Surroundings(client, ms)).word for ms in SILENCES]

    expected = [*PRESENT[client]]
    if attended == ENDED:
        expected = ["ended"] * 5
    if attended == DEPARTED and client != "connected":
        expected = ["disconnected"] * 5
    if attended == PAUSED:
        expected = ["idle" if word == "active" else word for word in expected]
    assert found == expected


def test_an_end_names_open_approvals_only_where_there_are_some() -> None:
    waiting = OpenApproval(ApprovalId("apr_1"), "request", "sha256:0")
    found = [
        session_status(head(ENDED, approvals=approvals), Surroundings("gone")).reason
        for approvals in ((), (waiting,))
    ]

    assert found[0] == "The session was ended."
    assert "its open approvals cannot be answered" in found[1]


def state(**fields: Any) -> UnattendedState:
    return UnattendedState(ORDER, Limits(), requested_ms=1, since_ms=9, **fields)


@pytest.mark.parametrize(
    ("work", "run", "has_driver", "word", "reason"),
    [
        (state(status="queued"), None, True, "queued", "It waits for its turn."),
        (state(status="queued"), None, False, "queued", "`interlock up` starts one"),
        (state(status="working"), None, True, "running", "A driver works on it."),
        (state(status="working"), None, False, "queued", "No driver runs"),
        (state(status="working", wish="cancel"), None, False, "queued", "which cancels the work"),
        (state(status="working", wish="pause"), run_head(), True, "running", "It pauses after"),
        (state(status="working", wish="cancel"), run_head(), True, "running", "being cancelled"),
        (state(status="working"), BLOCKED, True, "blocked", "not accepted"),
        (state(status="working"), run_head(status="complete"), True, "running", "A driver works"),
        (state(status="paused"), run_head(), True, "paused", "You paused it"),
        (state(status="done", outcome="success"), None, True, "completed", "The work is done."),
        (
            state(status="done", outcome="success"),
            run_head(status="complete_with_gaps", gaps_critical=1),
            True,
            "completed with gaps",
            "1 critical gap is left open",
        ),
        (state(status="done", outcome="cancelled"), run_head(), True, "cancelled", "cancelled"),
        (state(status="done", outcome="failed", detail="No disk"), None, True, "failed", "No disk"),
        (state(status="done", outcome="gave_up"), run_head(), True, "failed", "could not"),
        *(
            (
                state(status="parked", reason=reason, detail="So it is"),
                run_head(),
                True,
                "waiting" if reason in ("approval", "question", "limit") else "parked",
                "So it is",
            )
            for reason in get_args(ParkReason)
        ),
        # After the end of unattended work an agent continued the run.
        (
            state(status="done", outcome="cancelled"),
            run_head(blocked_in_row=1, updated_ms=10),
            True,
            "blocked",
            "not accepted",
        ),
    ],
)
def test_the_status_of_unattended_work(
    work: UnattendedState,
    run: RunHead | None,
    has_driver: bool,  # noqa: FBT001
    word: Word,
    reason: str,
) -> None:
    found = status_of(head(unattended=work), run, Surroundings(has_driver=has_driver))

    assert (found.main.word, reason in found.main.reason) == (word, True), found
    assert found.beside is None or found.main.word == "blocked"


@pytest.mark.parametrize(
    ("run", "attended", "client", "silent_ms", "words"),
    [
        (None, ACTIVE, "connected", 0, ("active", None)),
        (run_head(), ACTIVE, "connected", 0, ("running", None)),
        (BLOCKED, ACTIVE, "connected", IDLE_AFTER_MS + 1, ("blocked", "idle")),
        (BLOCKED, ACTIVE, "gone", 0, ("disconnected", "blocked")),
        (APPROVAL, DEPARTED, "gone", 0, ("disconnected", "waiting")),
        (run_head(status="complete"), ACTIVE, "gone", 0, ("completed", None)),
        (APPROVAL, ENDED, "gone", 0, ("ended", None)),
        (run_head(status="abandoned"), ENDED, "gone", 0, ("abandoned", None)),
    ],
)
def test_a_session_shows_its_own_status_beside_that_of_its_run(
    run: RunHead | None,
    attended: Attendance,
    client: ClientState,
    silent_ms: int,
    words: tuple[str, str | None],
) -> None:
    found = status_of(head(attended), run, Surroundings(client, silent_ms))

    assert (found.main.word, found.beside and found.beside.word) == words


def test_silence_never_hides_why_a_run_does_not_continue() -> None:
    for run, client, silent_ms in product(
        (BLOCKED, APPROVAL, QUESTION, STOPPED), get_args(ClientState), SILENCES
    ):
        found = status_of(head(ACTIVE), run, Surroundings(client, silent_ms))
        both = [one for one in (found.main, found.beside) if one]
        assert run_status(run, head(ACTIVE)) in both


def test_a_session_waits_for_its_own_request_unless_its_run_says_more() -> None:
    asking = head(ACTIVE, approvals=(OWN,))
    words = [
        status_of(asking, run, Surroundings("connected")).main.word
        for run in (run_head(), BLOCKED, run_head(status="complete"))
    ]

    assert words == ["waiting", "blocked", "completed"]


def test_each_word_has_one_colour_and_a_shape_of_its_own() -> None:
    icons = [look.icon for look in LOOKS.values()]

    assert LOOKS.keys() == set(get_args(Word)) >= set(FINISHED)
    assert len(set(icons)) == len(icons)
    assert {look.tone for look in LOOKS.values()} == {"good", "warn", "bad", "busy", "soft"}


def test_a_run_keeps_its_reason_until_it_moves(app: App, tmp_path: Path) -> None:
    run = planned(app, tmp_path)
    words = [run_status(run.run, run.head).word]
    for drive in (
        lambda: run.hand_in(""),
        lambda: run.hand_in("The plan"),
        lambda: run.decide("denied"),
        lambda: run.hand_in("The plan again"),
        lambda: run.decide("granted"),
        lambda: run.hand_in("work", STOP),
        lambda: run.hand_in("end", GAP),
    ):
        drive()
        words.append(run_status(run.run, run.head).word)

    assert words == [
        "running",
        "blocked",
        "waiting",
        "blocked",
        "waiting",
        "running",
        "running",
        "completed",
    ]


def test_a_run_that_went_on_elsewhere_does_not_wait_for_the_approval_it_left(
    app: App, tmp_path: Path
) -> None:
    run = planned(app, tmp_path)
    token = run.token
    run.hand_in("The plan")
    run.hand_in("", token=token)

    assert run.run.approvals
    assert run_status(run.run, run.head).word == "blocked"


def test_a_run_that_was_rewound_after_its_end_runs_again(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("one"), step("two"))
    token = run.token
    run.hand_in("one").hand_in("two")
    assert run_status(run.run, run.head).word == "completed"

    run.hand_in("another one", token=token)

    assert run_status(run.run, run.head).word == "running"


def test_a_session_that_was_ended_is_over_until_an_agent_continues_its_run(
    app: App, tmp_path: Path
) -> None:
    opt_in.opt_in(tmp_path, "standard")
    begin_recorded(app, tmp_path, Conversation("claude-code", "c1"))
    run = Driven(app, tmp_path, step("one"), step("two"))

    def words() -> tuple[str, str]:
        around = Surroundings("connected")
        return session_status(run.head, around).word, run_status(run.run, run.head).word

    found = [words()]
    for wanted in ("paused", "active", "ended"):
        gated_sessions.change_status(app, run.session, wanted, "the user says so")
        found.append(words())
    rehydrate(app.reader, app.keyring, app.pinned_workflow, token=run.token)
    found.append(words())  # reading changes nothing
    run.hand_in("one")
    found.append(words())

    assert found == [
        ("active", "running"),
        ("idle", "paused"),
        ("active", "running"),
        ("ended", "paused"),
        ("ended", "paused"),
        ("active", "running"),
    ]


def test_a_status_is_a_word_and_a_reason_in_json() -> None:
    found = status_of(head(ACTIVE), BLOCKED, Surroundings("gone"))

    assert msgspec.to_builtins(found) == {
        "main": {"word": "disconnected", "reason": "Its client has exited."},
        "beside": {
            "word": "blocked",
            "reason": "The last 8 attempts were not accepted; the agent must fix its submission.",
        },
    }
