"""The status of a run, a session and unattended work: one vocabulary for every surface.

A status is one word, and a reason that is true for as long as the word is. What is recorded decides
first. Only what the log cannot know comes from outside (`Surroundings`): whether the client and the
driver run, and how long nothing has happened. Silence never hides why a run does not continue.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from interlock.core.session.head import Head
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.unattended.order import ParkReason, UnattendedState
from interlock.core.views.counting import pluralise

Word = Literal[
    "running",
    "waiting",
    "blocked",
    "paused",
    "completed",
    "completed with gaps",
    "abandoned",
    "active",
    "idle",
    "disconnected",
    "ended",
    "queued",
    "parked",
    "cancelled",
    "failed",
]
WaitsFor = Literal["", "approval", "question", "limit"]
ClientState = Literal["connected", "gone", "unknown"]

IDLE_AFTER_MS = 15 * 60_000
DISCONNECTED_AFTER_MS = 12 * 3_600_000
"""A session whose client cannot be seen counts as disconnected after this much silence."""
FINISHED: tuple[Word, ...] = (
    "completed",
    "completed with gaps",
    "abandoned",
    "ended",
    "cancelled",
    "failed",
)


class Look(NamedTuple):
    tone: str
    icon: str


LOOKS: Mapping[Word, Look] = {
    "running": Look("busy", "work"),
    "waiting": Look("warn", "hand"),
    "blocked": Look("bad", "blocked"),
    "paused": Look("soft", "pause"),
    "completed": Look("good", "check"),
    "completed with gaps": Look("warn", "gap"),
    "abandoned": Look("soft", "stop"),
    "active": Look("good", "pulse"),
    "idle": Look("soft", "moon"),
    "disconnected": Look("soft", "unplugged"),
    "ended": Look("soft", "flag"),
    "queued": Look("soft", "list"),
    "parked": Look("warn", "parked"),
    "cancelled": Look("soft", "cancelled"),
    "failed": Look("bad", "alert"),
}
"""How pages show each word."""

STANDSTILLS: Mapping[ParkReason, tuple[str, str]] = {
    "approval": ("It needs your approval", "Answer in the inbox; the work then continues."),
    "question": ("A step asks you a question", "Send the model your answer; it then continues."),
    "limit": ("It has reached a limit", "Raise the limit; the work then continues."),
    "credentials": (
        "The model cannot be used",
        "Fix the cause (the key, or the packages of the provider), then resume the work.",
    ),
    "provider": ("The provider does not answer", "Resume the work when the provider answers."),
    "stuck": ("The model goes in circles", "Tell it what to do differently, then resume the work."),
    "sandbox": (
        "Its tools cannot be confined",
        "`interlock sandbox check` shows what this machine can enforce.",
    ),
    "workspace": (
        "Its worktree cannot be used",
        "Repair the worktree (`interlock worktrees list` shows its path), then resume the work.",
    ),
    "storage": ("A file could not be written", "Free disk space, then resume the work."),
    "protocol": (
        "A requirement of the project is open",
        "Meet or waive the requirement, then resume the work.",
    ),
    "failed": ("It stopped with an error", "Read its last turns, then resume or cancel the work."),
}
"""Why unattended work is parked, and what the user can do about it."""


class Status(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    word: Word
    reason: str
    waits_for: WaitsFor = ""
    """What a waiting run needs from the user."""

    @property
    def tone(self) -> str:
        return LOOKS[self.word].tone

    @property
    def icon(self) -> str:
        return LOOKS[self.word].icon

    @property
    def needs_user(self) -> bool:
        """Whether nothing continues until the user acts."""
        return self.word in ("waiting", "parked")

    @property
    def is_finished(self) -> bool:
        return self.word in FINISHED


class Surroundings(msgspec.Struct, frozen=True):
    """The facts about a session that its log cannot know."""

    client: ClientState = "unknown"
    silent_ms: int = 0
    """The time since its agent's last recorded event."""
    has_driver: bool = True
    """Whether a driver runs on the machine of its unattended work."""
    waits_because: str = ""
    """Why queued work has not started."""


class SessionStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The status of a session in lists, with a second status if it has one."""

    main: Status
    beside: Status | None = None
    """The run's status if the client is gone, or the session's if the run's comes first."""


def status_of(head: Head, run: RunHead | None, around: Surroundings) -> SessionStatus:
    """Return the status of a session and of the run that counts, usually the newest, if any."""
    session = session_status(head, around)
    if is_unattended(head, run):
        return SessionStatus(run_status(run, head, around))
    if run is None:
        return SessionStatus(session)
    status = run_status(run, head, around)
    if status.word == "running" and head.waiting_count:
        # The request belongs to the session: none of its runs waits for the answer.
        status = Status("waiting", "A request of the agent waits for approval.", "approval")
    if status.is_finished or session.word == "active":
        return SessionStatus(status)
    if session.word == "ended":
        return SessionStatus(session)
    if session.word == "disconnected":
        return SessionStatus(session, status)
    return SessionStatus(status, session)


def run_status(run: RunHead | None, head: Head, around: Surroundings | None = None) -> Status:
    """Return the status of a run of a session; `run` is None before unattended work starts."""
    state, around = head.unattended, around or Surroundings()
    if state and is_unattended(head, run) and (found := _work_status(state, run, around)):
        return found
    assert run is not None, "only unattended work is without a run"
    match run.status:
        case "complete":
            return Status("completed", _done_text(run))
        case "complete_with_gaps":
            gaps = _count(run.gaps_critical, "critical gap")
            return Status("completed with gaps", f"{_end_text(run)}; {gaps} left open.")
        case "abandoned":
            return Status("abandoned", "It was abandoned; no agent can continue it.")
        case _:
            return _unfinished_status(run, head)


def session_status(head: Head, around: Surroundings) -> Status:
    """Return whether an agent works in a session, ignoring its runs."""
    attended, present = head.attended, presence_status(around)
    if head.is_over:
        is_unanswered = any(not one.is_granted for one in head.approvals)
        what = "; its open approvals cannot be answered" if is_unanswered else ""
        return Status("ended", f"The session was ended{what}.")
    if attended and attended.is_departed and around.client != "connected":
        present = Status(
            "disconnected", "Its client has exited; its conversation can continue the session."
        )
    elif attended and attended.status == "paused":
        word = "idle" if present.word == "active" else present.word
        text = "The session is paused; `interlock session resume` continues it."
        present = Status(word, text)
    if head.waiting_count:
        return Status(present.word, f"{present.reason} An approval is waiting.")
    return present


def presence_status(around: Surroundings) -> Status:
    """Return the status of an agent from its client and its silence."""
    minutes, hours = IDLE_AFTER_MS // 60_000, DISCONNECTED_AFTER_MS // 3_600_000
    is_silent = around.silent_ms > IDLE_AFTER_MS
    unseen = "whether its client runs cannot be seen from here"
    match around.client:
        case "gone":
            return Status("disconnected", "Its client has exited.")
        case "connected" if is_silent:
            text = f"Its client is connected; nothing was recorded for more than {minutes} minutes."
            return Status("idle", text)
        case "connected":
            return Status("active", "Its client is connected.")
        case _ if around.silent_ms > DISCONNECTED_AFTER_MS:
            text = f"Nothing was recorded for more than {hours} hours, and no client is known."
            return Status("disconnected", text)
        case _ if is_silent:
            text = f"Nothing was recorded for more than {minutes} minutes; {unseen}."
            return Status("idle", text)
        case _:
            text = f"Something was recorded in the last {minutes} minutes; {unseen}."
            return Status("active", text)


def is_unattended(head: Head, run: RunHead | None) -> bool:
    """Whether its work is unattended. An agent may have continued after that work ended."""
    state = head.unattended
    if state is None:
        return False
    return not (state.is_over and run and run.updated_ms > state.since_ms)


def standstill_text(state: UnattendedState) -> str:
    """Return why unattended work waits for the user, in one sentence."""
    if state.is_over:
        return f"{'Unverified' if state.has_result else 'Failed'}: {state.detail}"
    why, _ = STANDSTILLS[state.reason or "failed"]
    return f"{why}: {state.detail}" if state.detail else why


def self_attested_text(commands: tuple[str, ...]) -> str:
    """Return the mark of commands that no hook has seen to pass; empty if there are none."""
    names = ", ".join(f"`{command}`" for command in commands)
    return f"Self-attested: only the agent says that this passed: {names}" if names else ""


def _unfinished_status(run: RunHead, head: Head) -> Status:
    if head.is_over:
        text = "Its session was ended before the run was completed; an agent can resume it."
        return Status("paused", text)
    if head.is_archived:
        return Status("paused", "Its session is archived, so no agent is offered it.")
    if head.attended and head.attended.status == "paused":
        return Status("paused", "The session is paused; `interlock session resume` continues it.")
    step = f"`{run.pending_title}`" if run.pending_title else "the pending step"
    if run.is_waiting:
        attempts = f"{BLOCKED_IN_ROW_MAX} attempts in a row were not accepted"
        text = f"{attempts} at {step}; only the user can allow more."
        return Status("waiting", text, "limit")
    if run.status == "waiting":
        return Status("waiting", "The submitted step waits for approval.", "approval")
    if run.blocked_in_row:
        count = run.blocked_in_row
        attempts = "The last attempt was" if count == 1 else f"The last {count} attempts were"
        return Status("blocked", f"{attempts} not accepted; the agent must fix its submission.")
    if run.asks_user:
        text = f"The agent must ask the user before it submits {step}."
        return Status("waiting", text, "question")
    return Status("running", f"The agent's next step is {step}.")


def _work_status(
    state: UnattendedState, run: RunHead | None, around: Surroundings
) -> Status | None:
    """Return the status of unattended work, or None if its run decides it."""
    no_driver = "No driver runs; `interlock up` starts one, which continues the work."
    match state.status, state.outcome:
        case "done", "cancelled":
            text = state.detail or "It was cancelled. Its changes are still in its worktree."
            return Status("cancelled", text)
        case "done", "success":
            is_complete = run and run.status in ("complete", "complete_with_gaps")
            return None if is_complete else Status("completed", "The work is done.")
        case "done", "unverified":
            return Status("completed with gaps", f"Unverified: {state.detail}.")
        case "done", _:
            return Status("failed", state.detail or "The work could not be finished.")
        case "queued", _:
            why = around.waits_because
            text = f"It waits: {why}." if why else "It waits for its turn."
            return Status("queued", text if around.has_driver or why else no_driver)
        case "working", _ if not around.has_driver:
            is_cancelled = state.wish == "cancel"
            text = "No driver runs; `interlock up` starts one, which cancels the work."
            return Status("queued", text if is_cancelled else no_driver)
        case "working", _ if run and run.status == "open" and run.blocked_in_row:
            return None
        case "working", _:
            text = {
                "run": "A driver works on it.",
                "pause": "It pauses after the current turn.",
                "pause_now": "It is being paused.",
                "cancel": "It is being cancelled: what runs is ended first.",
            }[state.wish]
            return Status("running", text)
        case "parked", _:
            advice = STANDSTILLS[state.reason or "failed"][1]
            text = f"{standstill_text(state).rstrip('.')}. {advice}"
            if state.reason in ("approval", "question", "limit"):
                return Status("waiting", text, state.reason)
            return Status("parked", text)
        case _:
            return Status("paused", "You paused it; it continues when you resume it.")


def _done_text(run: RunHead) -> str:
    gaps = f" {_count(run.gaps_open, 'gap')} left open, none critical." if run.gaps_open else ""
    return f"{_end_text(run)}.{gaps}"


def _end_text(run: RunHead) -> str:
    if not run.steps_skipped:
        return "Every step is done"
    return f"{pluralise(run.steps_done, 'step')} done, {run.steps_skipped} skipped"


def _count(count: int, noun: str) -> str:
    return f"{pluralise(count, noun)} {'is' if count == 1 else 'are'}"
