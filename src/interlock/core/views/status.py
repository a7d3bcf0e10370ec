"""The status of a run or session in one word, from what is recorded and never from the time.

Whether an agent is working right now is not known here: it holds a token and may come back with it
or not. So a run whose step is pending is `open`, for a second or for a year.
"""

from typing import Literal

import msgspec

from interlock.core.session.head import Head
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.views.counting import pluralise

StatusCode = Literal[
    "open",
    "blocked",
    "asks_you",
    "waits_for_approval",
    "waits_for_you",
    "done",
    "done_with_gaps",
    "abandoned",
    "paused",
    "ended",
    "archived",
    "attended",
    "quiet",
    "empty",
]
Icon = Literal[
    "dot", "cross", "question", "gate", "hand", "check", "gap", "pause", "stop", "box", "eye"
]


class Status(msgspec.Struct, frozen=True, rename="camel"):
    code: StatusCode
    word: str
    """The status as it is shown."""
    meaning: str
    icon: Icon
    needs_you: bool = False
    """Whether nothing goes on until the user does something."""


OPEN = Status("open", "open", "A step is pending: it is the agent's turn.", "dot")
ASKS_YOU = Status(
    "asks_you",
    "asks you",
    "The agent was told to ask you before it hands in the pending step.",
    "question",
    needs_you=True,
)
WAITS_FOR_APPROVAL = Status(
    "waits_for_approval",
    "waits for approval",
    "A step is done; the run goes on once you have granted or denied it.",
    "gate",
    needs_you=True,
)
WAITS_FOR_YOU = Status(
    "waits_for_you",
    "waits for you",
    f"{BLOCKED_IN_ROW_MAX} attempts in a row were not accepted; you can let the run go on.",
    "hand",
    needs_you=True,
)
ABANDONED = Status(
    "abandoned", "abandoned", "It was abandoned or cancelled. No agent continues it.", "stop"
)
PAUSED = Status("paused", "paused", "The session was put aside.", "pause")
ENDED = Status("ended", "ended", "Somebody has ended it.", "stop")
CLIENT_GONE = Status(
    "ended", "ended", "Its client has ended; it goes on with its conversation.", "stop"
)
QUIET = Status("quiet", "quiet", "Nobody has ended it, and nobody seems to work in it.", "pause")
ARCHIVED = Status("archived", "archived", "It is left out of lists and of resuming.", "box")
ATTENDED = Status("attended", "attended", "A gate watches over it; no run was started.", "eye")
EMPTY = Status("empty", "empty", "Nothing was started in it.", "dot")


def run_status(run: RunHead) -> Status:
    match run.status:
        case "complete":
            return _done_status(run)
        case "complete_with_gaps":
            gaps = _gap_count_text(run.gaps_critical, "critical ")
            meaning = f"{_end_text(run)}; {gaps} left open."
            return Status("done_with_gaps", f"{_end_word(run)} with gaps", meaning, "gap")
        case "abandoned":
            return ABANDONED
        case "waiting":
            return WAITS_FOR_YOU if run.is_waiting else WAITS_FOR_APPROVAL
        case "open":
            return (
                _blocked_status(run) if run.blocked_in_row else ASKS_YOU if run.asks_user else OPEN
            )


def session_status(head: Head, run: RunHead | None = None) -> Status:
    """Return a session's status. `run` is the run that counts, usually the newest, if any."""
    if head.is_archived:
        return ARCHIVED
    if run and run.status in ("complete", "complete_with_gaps", "abandoned"):
        return run_status(run)
    match head.attended.status if head.attended else None:
        case "paused":
            return PAUSED
        case "ended" if run is None:
            return CLIENT_GONE if head.attended and head.attended.is_departed else ENDED
        case _:
            pass  # a run is open, whoever goes on with it
    if run:
        return run_status(run)
    if head.unattended and head.unattended.outcome not in (None, "success"):
        return ABANDONED
    return ATTENDED if head.attended else EMPTY


def _done_status(run: RunHead) -> Status:
    open_gaps = (
        f" {_gap_count_text(run.gaps_open, '')} left open, none of them critical."
        if run.gaps_open
        else ""
    )
    return Status("done", _end_word(run), f"{_end_text(run)}.{open_gaps}", "check")


def _end_word(run: RunHead) -> str:
    return "complete" if run.steps_skipped else "done"


def _end_text(run: RunHead) -> str:
    if not run.steps_skipped:
        return "Every step is done"
    return f"Complete: {pluralise(run.steps_done, 'step')} done, {run.steps_skipped} skipped"


def _blocked_status(run: RunHead) -> Status:
    count = run.blocked_in_row
    attempts = "The last attempt was" if count == 1 else f"The last {count} attempts were"
    meaning = f"{attempts} not accepted; it is the agent's turn to try again."
    return Status("blocked", f"blocked ({count})", meaning, "cross")


def _gap_count_text(count: int, adjective: str) -> str:
    return f"1 {adjective}gap is" if count == 1 else f"{count} {adjective}gaps are"


def self_attested_text(commands: tuple[str, ...]) -> str:
    """Return the mark of commands that no hook has seen to pass; empty if there are none."""
    names = ", ".join(f"`{command}`" for command in commands)
    return f"Self-attested: only the agent says that this passed: {names}" if names else ""
