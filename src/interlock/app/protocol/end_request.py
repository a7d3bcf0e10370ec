"""Ending a session by its protocol: check everything, ask for the end, wait for the job.

What is in the way is found in the calling process, all at once. The effects are a job's
(`interlock.durable`): a note, a logbook and a commit would not survive `kill -9` together.
"""

from collections.abc import Iterator

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import ensure_attended, state_of
from interlock.app.context import App
from interlock.app.jobs.executor_process import wait_for_outcome
from interlock.app.protocol.ending import check_end
from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.protocol import session_end
from interlock.core.protocol.gated_session import SessionEnded
from interlock.core.refusal import Refusal
from interlock.core.session.plan import Plan
from interlock.core.session.protocol_events import (
    ProtocolEndRefused,
    SessionCompleted,
    completion_key,
    refusal_key,
)
from interlock.core.session.requirements import STEPS, CheckedRequirement
from interlock.core.visible_text import make_visible


class EndBlocked(Refusal, frozen=True):
    """Requirements of the protocol are open; all of them are told."""

    session: SessionId
    blockers: tuple[str, ...]

    def explain(self) -> Explanation:
        open_items = "\n".join(f"- {blocker}" for blocker in self.blockers)
        return Explanation(
            "protocol_open",
            f"Session `{self.session}` cannot end yet:\n{open_items}",
            "Do these, then end it again. The user can end it as it is with"
            " `interlock session end --force`.",
        )


class SessionEnding(msgspec.Struct, frozen=True, rename="camel"):
    """The end of a session, as far as it has come."""

    session: SessionId
    job: str
    requirements: tuple[CheckedRequirement, ...]
    """The requirements as they were when the end was asked for."""
    is_complete: bool
    """False: the job has not come to its end yet."""
    commit: str = ""
    remarks: tuple[str, ...] = ()
    """What was not done, though it should have been, each with its reason."""


SUMMARY_CHARS_MAX = 8_000
EndRefusal = EndBlocked | SessionEnded


def end_session(app: App, session: SessionId, summary: str = "") -> SessionEnding | EndRefusal:
    """Carry out the end of the protocol. Asking again is asking how far it has come.

    Raises:
        SettingsBroken: the config of the project cannot be used.
    """
    ensure_attended(app, session)
    summary = make_visible(summary)[:SUMMARY_CHARS_MAX]
    report = check_end(app, session, summary)
    if report.blockers:
        return EndBlocked(session, report.blockers)

    job = ""

    def decide() -> Plan | SessionEnded | None:
        nonlocal job
        stream = app.log.known_stream(session)
        planned = session_end.request_end(stream, summary=summary, at_ms=app.clock.now_ms())
        # Now: it may have an outcome by the time that the request is written.
        job = session_end.job_of(stream, is_new=isinstance(planned, Plan))
        return planned

    refused = append_plan(app, decide)
    if refused is not None:
        return refused
    match wait_for_outcome(app, lambda: _outcome(app, session, job)):
        case ProtocolEndRefused(blockers=blockers):
            return EndBlocked(session, blockers)
        case SessionCompleted() as event:
            return SessionEnding(
                session,
                job,
                report.requirements,
                is_complete=True,
                commit=event.commit,
                remarks=tuple(_remarks(app, session, event)),
            )
        case None:
            return SessionEnding(session, job, report.requirements, is_complete=False)


def _remarks(app: App, session: SessionId, event: SessionCompleted) -> Iterator[str]:
    ended = state_of(app, session)
    for key, text in ended.protocol_end_evidence.items():
        if text.startswith(("open: ", "skipped: not written")):
            status, _, evidence = text.partition(": ")
            yield f"{'not met' if status == 'open' else status}: {STEPS.get(key, key)} ({evidence})"
    for review in ended.work.feature_reviews:
        if review.is_open:
            awaited = ", ".join(one.agent for one in review.awaited_reviewers)
            yield f"review {review.id} of “{review.feature}” has no verdict yet from {awaited}"
    if event.commit_fault:
        yield f"its files were not committed: {event.commit_fault}"


def _outcome(
    app: App, session: SessionId, job: str
) -> ProtocolEndRefused | SessionCompleted | None:
    keys = (completion_key(job), refusal_key(job))
    recorded = app.reader.events_with_keys(session, keys)
    event = next((recorded[key].event for key in keys if key in recorded), None)
    assert event is None or isinstance(event, ProtocolEndRefused | SessionCompleted), "their keys"
    return event
