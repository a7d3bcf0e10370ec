"""Find the session to go on with, and hand out a token for it. Reads only."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock.app.runs.token_target import unspent_attempt
from interlock.app.sessions.resume_check import changes_to_verify
from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core.ids import SessionId
from interlock.core.session import state as states
from interlock.core.session.nodes import advance_prefix
from interlock.core.session.orchestration import NO_WORK
from interlock.core.session.plan import Stream
from interlock.core.tokens import Token, mint
from interlock.core.views import resume_ranking
from interlock.core.views.resume_ranking import (
    RankedMatch,
    RankingQuery,
    ResumeRow,
    SessionCandidate,
)
from interlock.store import queries
from interlock.store.keyring import Keyring
from interlock.store.log_reader import LogReader
from interlock.store.records import RunSearch
from interlock.workspace.git import changed_files

POOL_MAX = 50  # sessions looked at for each way of finding them


class ResumeQuery(msgspec.Struct, frozen=True):
    workspace: Path
    query: str = ""
    session: str | None = None
    run: str | None = None
    git_branch: str | None = None
    git_head: str | None = None
    limit: int = 5
    own_session: SessionId | None = None
    is_only_here: bool = False
    """Whether work in other directories is left out, unless it is named or searched for."""
    holders: Mapping[SessionId, str] = {}
    """Sessions in which other conversations work now, with the names of those."""


class ResumableRun(msgspec.Struct, frozen=True):
    match: RankedMatch
    row: ResumeRow
    token: str
    changes: tuple[str, ...]
    """The differences in git since then; only computed for the first run."""


def find_resumable_runs(
    reader: LogReader, keyring: Keyring, request: ResumeQuery
) -> list[ResumableRun]:
    observation = observe_workspace(request.workspace)
    query = RankingQuery(
        workspace=str(request.workspace),
        words=resume_ranking.words_of(request.query),
        session=request.session,
        run=request.run,
        git_branch=request.git_branch or (observation.git_branch if observation else None),
        git_head=request.git_head or (observation.git_head if observation else None),
    )
    found = _candidate_rows(reader, query)
    rows = {row.run: row for row in found if row.tip and row.is_offered}
    if request.is_only_here and not (query.session or query.run or query.words):
        rows = {run: row for run, row in rows.items() if row.workspace == query.workspace}
    candidates = [_session_candidate(row, request) for row in rows.values()]
    matches = resume_ranking.rank(query, candidates)[: request.limit]
    matched = [rows[match.candidate.run] for match in matches]
    # The pending step may have been submitted before, on another branch.
    events, stream = reader.ask(
        queries.events_with_prefixes([(row.session, advance_prefix(row.tip)) for row in matched]),
        queries.end_of_stream(matched[0].session if matched else SessionId("")),
    )
    key = keyring.current()
    return [
        ResumableRun(
            match,
            row,
            mint(Token(row.tip, unspent_attempt(events, row.tip)), key),
            _changes_since(reader, stream, row) if stream and index == 0 else (),
        )
        for index, (match, row) in enumerate(zip(matches, matched, strict=True))
    ]


def _candidate_rows(reader: LogReader, query: RankingQuery) -> list[ResumeRow]:
    if query.session or query.run:
        # A session or run that is named and missing gives no rows, never those of another.
        return _rows_named(reader, query.session, query.run)
    # A query may be an id, typed where the words go.
    for word in query.words:
        if word.startswith("ses_") and (rows := _rows_named(reader, word, None)):
            return rows
        if word.startswith("run_") and (rows := _rows_named(reader, None, word)):
            return rows
    searches = [RunSearch()]
    if query.words:
        searches += [RunSearch(query.words), RunSearch(query.words, all_of=False)]
    if query.git_head:
        searches.append(RunSearch(git_head=query.git_head))
    if query.git_branch:
        searches.append(RunSearch(git_branch=query.git_branch))
    return reader.find_runs(*searches, limit=POOL_MAX)


def _rows_named(reader: LogReader, session: str | None, run: str | None) -> list[ResumeRow]:
    sessions: list[SessionId] = reader.find_session(session) if session else []
    runs = reader.find_run(run) if run else []
    rows = reader.rows([*sessions, *(run_session for _, run_session in runs)])
    run_ids = {run_id for run_id, _ in runs}
    return [row for row in rows if row.session in sessions or row.run in run_ids]


def _session_candidate(row: ResumeRow, request: ResumeQuery) -> SessionCandidate:
    return SessionCandidate(
        **msgspec.structs.asdict(row),
        is_own=row.session == request.own_session,
        holder=request.holders.get(row.session, ""),
    )


def _changes_since(reader: LogReader, stream: Stream, row: ResumeRow) -> tuple[str, ...]:
    """The changes since the run was last changed, as far as they can be seen."""
    head = stream.head
    if head is None:
        return ()
    work = NO_WORK
    if head.attended and head.attended.delegation_count:
        work = states.fold(reader.history(stream.session)).work
    uncommitted = _describe_uncommitted(Path(row.workspace)) if row.git_head else ()
    return (*changes_to_verify(head, work), *uncommitted)


def _describe_uncommitted(workspace: Path) -> tuple[str, ...]:
    files = changed_files.uncommitted_files(workspace)
    if not files:
        return ()
    more = len(files) - changed_files.NAMED_FILES_MAX
    names = ", ".join(files[: changed_files.NAMED_FILES_MAX])
    return (f"Changed and not committed: {names}{f' and {more} more' if more > 0 else ''}.",)
