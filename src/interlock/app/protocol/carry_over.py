"""The open work of earlier sessions in a directory, for the briefing of the next one.

Each line is true at that moment: files that were committed since are not named, nor are reviews,
approvals and hand-offs that somebody has settled since.
"""

from collections.abc import Iterator
from pathlib import Path

from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.protocol.left_handoffs import left_handoffs
from interlock.app.runs.approvals import list_pending
from interlock.app.sessions.logbook_file import load_session_log
from interlock.app.sessions.session_approvals import unanswered_requests
from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core.session.state import SessionState
from interlock.core.views.delegated_work import handoff_line, left_open_lines, review_line
from interlock.core.views.logbook_page import done_items
from interlock.core.visible_text import one_line
from interlock.core.workflow.operators import clip
from interlock.store.records import ListedSession, SessionFilter
from interlock.workspace.git.changed_files import uncommitted_files

EARLIER_SESSIONS_MAX = 20
FILES_MAX = 5
LINE_CHARS_MAX = 400


def left_open_lines_here(app: App, state: SessionState, *, goes_on: bool) -> Iterator[str]:
    """Yield what is open here. A session that `goes_on` knows its predecessor and its files."""
    listed = app.reader.list_sessions(
        SessionFilter(workspace=state.worktree), before=None, limit=EARLIER_SESSIONS_MAX
    )
    earlier = [one for one in listed.sessions if one.session != state.session_id]
    own = state.work
    is_new = not (goes_on or own.agent_history or own.decisions or own.compaction_history)
    if is_new:
        yield from _session_before(app, state, earlier)
        yield from _uncommitted_lines(state)
    for one in earlier:
        if one.head.attended and one.head.attended.open_reviews:
            reviews = session_record.state_of(app, one.session).work.feature_reviews
            yield from (f"{one.session}: {review_line(each)}" for each in reviews if each.is_open)
    here = {one.session for one in earlier}
    if any(one.head.waiting_count or one.waiting_runs for one in earlier):
        for pending in list_pending(app):
            if pending.session in here:
                title = clip(one_line(pending.question), LINE_CHARS_MAX)
                yield f"{pending.session}: the user has not answered {pending.approval}: {title}"
    for left in left_handoffs(app, state):
        yield f"{left.session}: {handoff_line(left.handoff)}"


def _session_before(app: App, state: SessionState, earlier: list[ListedSession]) -> Iterator[str]:
    """Describe the outcome of the last session on this branch."""
    now = observe_workspace(Path(state.worktree))
    branch = now.git_branch if now else None
    for one in earlier:
        attended = one.head.attended
        if attended is None or attended.status != "ended":
            continue
        log = load_session_log(app.reader, one.session)
        if branch and log.last_branch not in ("", branch):
            continue
        if done := "; ".join(done_items(log.state, log.envelopes)):
            yield clip(f"{one.session} ended: {done}", LINE_CHARS_MAX)
        for line in left_open_lines(log.state.work):
            yield f"{one.session}: {line}"
        for left in unanswered_requests(app.reader, one.session, one.head):
            if one.head.is_over:  # an open one is listed below
                title = clip(one_line(left.request.title), LINE_CHARS_MAX)
                yield (
                    f"{one.session} ended before the user answered “{title}”. Request it again if"
                    " you need it."
                )
        return


def _uncommitted_lines(state: SessionState) -> Iterator[str]:
    files = uncommitted_files(Path(state.worktree)) or ()
    if files:
        more = f" and {len(files) - FILES_MAX} more" if len(files) > FILES_MAX else ""
        yield f"Not committed: {', '.join(map(one_line, files[:FILES_MAX]))}{more}."
