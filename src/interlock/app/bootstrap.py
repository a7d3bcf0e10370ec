"""Where a session stands, in a few lines, for an agent that has just come to it."""

from collections.abc import Sequence

from interlock.core.session.state import SessionState
from interlock.store.log import LogReader

RUNS_MAX = 3
LOOK_BACK = 50
TEXT_CHARS_MAX = 4_000  # about a thousand tokens

MEANING = {
    "analysis": "read and search only; nothing is edited and no command is run",
    "planning": "nothing is edited; commands that only read are run",
    "coding": "everything is allowed that the project allows",
    "disabled": "the gate is off",
}


def bootstrap(reader: LogReader, state: SessionState, remarks: Sequence[str] = ()) -> str:
    """Where a session stands, in a few lines. `remarks` are about the project around it."""
    lines = [
        f"Interlock session {state.session_id} in {state.project}.",
        f"Mode: {state.current_mode} ({MEANING[state.current_mode]}).",
    ]
    if state.active_feature or state.active_task:
        lines.append(f"Feature: {state.active_feature or '-'}. Task: {state.active_task or '-'}.")
    if logbook := state.protocol_start_evidence.get("logbook"):
        lines.append(f"Logbook: {logbook}.")
    lines += remarks
    rows = [
        row
        for row in reader.newest_runs(limit=LOOK_BACK)
        if row.workspace == state.worktree and row.status in ("open", "waiting")
    ]
    for row in rows[:RUNS_MAX]:
        lines.append(
            f"Open run {row.run} of {row.workflow}: {row.title}; at “{row.step}”, {row.steps_done}"
            f" of {row.step_count} steps done, {row.status}."
        )
    if len(rows) > RUNS_MAX:
        lines.append(f"{len(rows) - RUNS_MAX} more runs are open.")
    if rows:
        lines.append("resume_session hands out the token with which an open run goes on.")
    return "\n".join(lines)[:TEXT_CHARS_MAX]
