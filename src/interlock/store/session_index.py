"""Finding sessions and runs, whatever engine stores them: in lists, by words, by git, by ids."""

from collections.abc import Sequence
from typing import Any

from interlock.core.ids import ApprovalId, NodeId, RunId, SessionId
from interlock.core.session.events import Envelope, decode_envelope
from interlock.core.session.head import Head, decode_head
from interlock.core.session.nodes import approval_resolved_key
from interlock.core.session.run_head import RunHead, decode_run_head
from interlock.core.views.resume_ranking import ResumeRow
from interlock.core.views.status import run_status
from interlock.store.index_rows import ENDED_FOR_GOOD
from interlock.store.records import (
    AttendedSession,
    ListedSession,
    RunSearch,
    SessionFilter,
    SessionGroup,
    SessionList,
    WaitingRunRow,
    WorkflowUsage,
)
from interlock.store.sql import Numbers, SqlDatabase, Texts, Value

FOUND_BY_PREFIX_MAX = 10
_LAST_CHARACTER = "\U0010ffff"
_IS_OVER = f"coalesce(attended, '') = '{ENDED_FOR_GOOD}'"
_STATUS = f"CASE WHEN {_IS_OVER} AND status IN ('open', 'waiting') THEN 'ended' ELSE status END"
_NEEDS_USER = (
    f"(NOT {_IS_OVER} AND (waiting > 0 OR id IN (SELECT stream FROM run WHERE waiting > 0)))"
)
_RESUME_ROWS = "SELECT s.session, s.head, r.head FROM run r JOIN stream s ON s.id = r.stream "


class SessionIndex:
    def __init__(self, db: SqlDatabase) -> None:
        self._database = db

    def list_sessions(
        self, session_filter: SessionFilter, *, before: tuple[int, int] | None, limit: int
    ) -> SessionList:
        """Sessions with or without runs, newest first, beginning after the position `before`."""
        condition, values = self._filter_condition(session_filter)
        if before:
            condition += " AND (updated_ms, id) < (?, ?)"
            values += before
        rows = list(
            self._database.read(
                f"SELECT session, head, updated_ms, id FROM stream WHERE {condition}"
                " ORDER BY updated_ms DESC, id DESC LIMIT ?",
                (*values, limit + 1),
            )
        )
        is_last, rows = len(rows) <= limit, rows[:limit]
        runs = self._listed_runs([id_ for *_, id_ in rows])
        sessions = tuple(
            ListedSession(
                SessionId(session),
                head := decode_head(content),
                runs[id_].get(head.latest_run) if head.latest_run else None,
                tuple(run for run in runs[id_].values() if run.waiting_count),
            )
            for session, content, _, id_ in rows
        )
        return SessionList(sessions, None if is_last else rows[-1][2:])

    def group_sessions(self, session_filter: SessionFilter) -> list[SessionGroup]:
        """Count the sessions that match, by what lists are filtered by."""
        condition, values = self._filter_condition(session_filter)
        rows = self._database.read(
            f"SELECT {_STATUS}, {_NEEDS_USER}, is_archived, workspace, count(*), max(updated_ms)"
            f" FROM stream WHERE {condition} GROUP BY 1, 2, 3, 4",
            values,
        )
        return [
            SessionGroup(status, bool(needs_user), bool(is_archived), workspace, count, updated_ms)
            for status, needs_user, is_archived, workspace, count, updated_ms in rows
        ]

    def _filter_condition(self, session_filter: SessionFilter) -> tuple[str, list[Value]]:
        conditions, values = ["true"], list[Value]()
        if session_filter.is_archived is not None:
            conditions.append("is_archived = ?")
            values.append(session_filter.is_archived)
        if session_filter.workspace:
            conditions.append("workspace = ?")
            values.append(session_filter.workspace)
        if session_filter.workflow:
            conditions.append("id IN (SELECT stream FROM run WHERE workflow = ?)")
            values.append(session_filter.workflow)
        if session_filter.statuses:
            conditions.append(f"{_STATUS} = ANY (?)")
            values.append(Texts(session_filter.statuses))
        if session_filter.needs_user is not None:
            conditions.append(f"{'' if session_filter.needs_user else 'NOT '}{_NEEDS_USER}")
        if session_filter.sessions is not None:
            conditions.append("session = ANY (?)")
            values.append(Texts(session_filter.sessions))
        if session_filter.words:
            matching = self._database.runs_with_words(session_filter.words, all_of=True)
            conditions.append(f"id IN (SELECT stream FROM run WHERE id IN ({matching[0]}))")
            values += matching[1]
        return " AND ".join(conditions), values

    def _listed_runs(self, streams: Sequence[int]) -> dict[int, dict[RunId, RunHead]]:
        """The runs that a list of sessions tells of: the latest of each, and those that wait."""
        rows = self._database.read(
            "SELECT r.stream, r.head FROM run r WHERE r.stream = ANY (?) AND (r.waiting > 0 OR"
            " r.id = (SELECT max(l.id) FROM run l WHERE l.stream = r.stream)) ORDER BY r.id",
            (Numbers(streams),),
        )
        runs: dict[int, dict[RunId, RunHead]] = {stream: {} for stream in streams}
        for stream, content in rows:
            run = decode_run_head(content)
            runs[stream][run.run] = run
        return runs

    def usage(self) -> list[WorkflowUsage]:
        """The usage of every workflow that was ever run."""
        rows = self._database.read(
            "SELECT r.workflow, count(DISTINCT s.id) FILTER (WHERE NOT s.is_archived),"
            " count(DISTINCT s.id) FILTER (WHERE s.is_archived), max(r.updated_ms)"
            " FROM run r JOIN stream s ON s.id = r.stream GROUP BY r.workflow"
        )
        return sorted((WorkflowUsage(*row) for row in rows), key=lambda usage: usage.workflow)

    def workspaces(self, *, limit: int) -> list[str]:
        """The directories of all sessions, the most recently used first."""
        rows = self._database.read(
            "SELECT workspace FROM stream"
            " GROUP BY workspace ORDER BY max(updated_ms) DESC, workspace LIMIT ?",
            (limit,),
        )
        return [workspace for (workspace,) in rows]

    def newest_runs(self, *, limit: int) -> list[ResumeRow]:
        """The newest runs of sessions that are not archived."""
        return self.find_runs(RunSearch(), limit=limit)

    def find_runs(self, *searches: RunSearch, limit: int) -> list[ResumeRow]:
        """The runs that each search finds, at most `limit`, in sessions that are not archived."""
        statements = [
            (_RESUME_ROWS + clauses, (*values, limit))
            for clauses, values in (self._search_clauses(search, limit) for search in searches)
        ]
        return [_resume_row(*row) for rows in self._database.read_all(statements) for row in rows]

    def _search_clauses(self, search: RunSearch, limit: int) -> tuple[str, Sequence[Value]]:
        latest_started_first = "AND NOT s.is_archived ORDER BY r.id DESC LIMIT ?"
        if search.words:
            matching, values = self._database.runs_with_words(
                search.words, all_of=search.all_of, newest=limit
            )
            return f"WHERE r.id IN ({matching}) {latest_started_first}", values
        if search.git_head:
            return f"WHERE r.git_head = ? {latest_started_first}", (search.git_head,)
        if search.git_branch:
            return f"WHERE r.git_branch = ? {latest_started_first}", (search.git_branch,)
        return (
            # Of the sessions in which something happened last, whether in a run or not: an index
            # of runs by time would be written at every step.
            "WHERE s.id IN (SELECT id FROM stream WHERE is_archived = ?"
            " AND EXISTS (SELECT 1 FROM run WHERE run.stream = stream.id)"
            " ORDER BY updated_ms DESC, id DESC LIMIT ?)"
            " ORDER BY r.updated_ms DESC, r.id DESC LIMIT ?",
            (False, limit),
        )

    def waiting_runs(self, *, limit: int) -> list[WaitingRunRow]:
        """The runs in which something waits for the user, oldest first, archived or not."""
        rows = self._database.read(
            "SELECT s.session, s.head, r.head FROM run r JOIN stream s ON s.id = r.stream"
            " WHERE r.waiting > 0 ORDER BY r.id LIMIT ?",
            (limit,),
        )
        return [
            WaitingRunRow(SessionId(session), decode_head(head), decode_run_head(run))
            for session, head, run in rows
        ]

    def waiting_sessions(self, *, limit: int) -> list[tuple[SessionId, Head]]:
        """The sessions with approvals of their own that wait, oldest first, archived or not."""
        return self._heads("waiting > 0 ORDER BY id LIMIT ?", limit)

    def unattended_sessions(self, *, limit: int) -> list[tuple[SessionId, Head]]:
        """The sessions with unattended work that is not over, or whose result is not delivered.

        In the order in which it was asked for.
        """
        return self._heads("unattended > 0 ORDER BY unattended, id LIMIT ?", limit)

    def heads(self, sessions: Sequence[SessionId]) -> dict[SessionId, Head]:
        """The heads of these sessions, as far as they exist."""
        return dict(self._heads("session = ANY (?)", Texts(sessions)))

    def _heads(self, condition: str, *values: Value) -> list[tuple[SessionId, Head]]:
        rows = self._database.read(f"SELECT session, head FROM stream WHERE {condition}", values)
        return [(SessionId(session), decode_head(head)) for session, head in rows]

    def answers_to_approvals(self, prefix: str) -> list[Envelope]:
        """The answers to approvals whose ids begin with `prefix`, at most ten."""
        key = approval_resolved_key(ApprovalId(prefix))
        rows = self._database.read(
            # The first two conditions are those of the index.
            "SELECT body FROM keyed_event WHERE key >= 'approval-resolved:'"
            " AND key < 'approval-resolved;' AND key >= ? AND key < ? ORDER BY key LIMIT ?",
            (key, key + _LAST_CHARACTER, FOUND_BY_PREFIX_MAX),
        )
        return [decode_envelope(body) for (body,) in rows]

    def events_by_prefixes(self, prefixes: Sequence[str], *, sessions_max: int) -> list[Envelope]:
        """The events whose keys begin so, in any order, of the sessions that changed last."""
        statements = [
            (
                "SELECT k.body FROM (SELECT id FROM stream WHERE is_archived = ?"
                " ORDER BY updated_ms DESC, id DESC LIMIT ?) s"
                " JOIN keyed_event k ON k.stream = s.id AND k.key >= ? AND k.key < ?",
                (False, sessions_max, prefix, prefix + _LAST_CHARACTER),
            )
            for prefix in prefixes
        ]
        results = self._database.read_all(statements)
        return [decode_envelope(body) for rows in results for (body,) in rows]

    def sessions_with_gaps(self, *, limit: int) -> list[SessionId]:
        """The newest sessions that are not archived and have a run with an open gap."""
        rows = self._database.read(
            "SELECT session FROM stream WHERE NOT is_archived AND id IN"
            " (SELECT stream FROM run WHERE gaps_open > 0) ORDER BY updated_ms DESC LIMIT ?",
            (limit,),
        )
        return [SessionId(session) for (session,) in rows]

    def rows(self, sessions: Sequence[SessionId]) -> list[ResumeRow]:
        """The runs of these sessions, archived or not, as far as they exist."""
        rows = self._database.read(
            f"{_RESUME_ROWS}WHERE s.session = ANY (?) ORDER BY r.id", (Texts(sessions),)
        )
        return [_resume_row(*row) for row in rows]

    def find_session(self, prefix: str) -> list[SessionId]:
        """The sessions whose id begins with `prefix`, at most ten."""
        rows = self._database.read(
            "SELECT session FROM stream WHERE session >= ? AND session < ?"
            " ORDER BY session LIMIT ?",
            (prefix, prefix + _LAST_CHARACTER, FOUND_BY_PREFIX_MAX),
        )
        return [session for (session,) in rows]

    def sessions_in_review(self) -> list[tuple[SessionId, Head]]:
        """Return the sessions with an open review of a feature, also ended and archived ones."""
        is_open = "convert_from(head, 'UTF8') COLLATE \"C\" ILIKE ?"
        return self._heads(f"attended IS NOT NULL AND {is_open}", '%"openReviews":[[%')

    def attended_sessions_in(self, workspace: str) -> list[AttendedSession]:
        """Return the sessions with a gate in this directory that have not ended."""
        rows = self._database.read(
            "SELECT session, version, head FROM stream WHERE attended IN ('active', 'paused')"
            " AND workspace = ? ORDER BY updated_ms DESC LIMIT 20",
            (workspace,),
        )
        return [
            AttendedSession(SessionId(session), version, decode_head(head))
            for session, version, head in rows
        ]

    def find_run(self, prefix: str) -> list[tuple[RunId, SessionId]]:
        """The runs whose id begins with `prefix`, at most ten, with their sessions."""
        rows = self._database.read(
            "SELECT r.run, s.session FROM run r JOIN stream s ON s.id = r.stream"
            " WHERE r.run >= ? AND r.run < ? ORDER BY r.run LIMIT ?",
            (prefix, prefix + _LAST_CHARACTER, FOUND_BY_PREFIX_MAX),
        )
        return [(RunId(run), SessionId(session)) for run, session in rows]

    def all_sessions(self) -> list[SessionId]:
        """All sessions, archived or not, with or without runs, in the order in which they began."""
        return [
            session for (session,) in self._database.read("SELECT session FROM stream ORDER BY id")
        ]

    def _row(self, sql: str, values: Sequence[Value] = ()) -> tuple[Any, ...] | None:
        first, *_ = (*self._database.read(sql, values), None)
        return first

    def _scalar(self, sql: str, values: Sequence[Value] = ()) -> Any:
        row = self._row(sql, values)
        return row[0] if row else None


def _resume_row(session: str, head_content: bytes, run_content: bytes) -> ResumeRow:
    head, run = decode_head(head_content), decode_run_head(run_content)
    work = head.unattended
    return ResumeRow(
        SessionId(session),
        run.goal,
        run.workflow_id,
        run_status(run, head),
        run.pending_title or "",
        run.steps_done,
        run.steps_skipped,
        run.step_count,
        run.recap,
        head.workspace,
        run.updated_ms,
        run.run,
        run.tip or NodeId(""),
        run.git_branch,
        run.git_head,
        head.is_archived,
        is_unattended=bool(work and not work.is_over),
    )
