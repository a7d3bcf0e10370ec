"""The job `protocol-end`: end a session by its protocol.

The request was checked when it was made; the world may have changed since, so the first step checks
again, and records the refusal if something is in the way. The evidence is recorded before the
logbook is written for the last time, because the logbook is written from it, and the commit comes
after that, because it holds the logbook.
"""

import msgspec

from interlock.app.append_loop import append_once
from interlock.app.context import App
from interlock.app.protocol import checks, gated_sessions, session_files
from interlock.app.protocol.ending import EndReport, check_end, end_evidence
from interlock.core.protocol import session_end
from interlock.core.session.protocol_events import completion_key, refusal_key
from interlock.core.session.requirements import Fact
from interlock.durable.job import Job, JobContext, JobStep, StepResult


def _check(app: App, context: JobContext) -> StepResult:
    about = context.announcement
    report = check_end(app, about.session_id, about.text)
    assert isinstance(report, EndReport), "the end of an attended session was wanted"
    if report.blockers:
        _refuse(app, context, report.blockers)
    return StepResult(msgspec.to_builtins(report), is_last=bool(report.blockers))


def _give_up(app: App, context: JobContext, reason: str) -> None:
    """Tell whoever waits that the job has failed, or was cancelled. It can be retried."""
    _refuse(app, context, (f"{context.job}: {reason}. `interlock jobs show {context.job}`",))


def _refuse(app: App, context: JobContext, blockers: tuple[str, ...]) -> None:
    job, at_ms = context.job, app.clock.now_ms()
    append_once(
        app,
        context.announcement.session_id,
        refusal_key(job),
        lambda stream: session_end.refuse_end(stream, job, blockers, at_ms=at_ms),
    )


def _write_summary(app: App, context: JobContext) -> StepResult:
    note = session_files.write_summary_note(app, context.announcement.session_id)
    return StepResult(msgspec.to_builtins(note))


def _write_log(app: App, context: JobContext) -> StepResult:
    log = session_files.write_logbook(app, context.announcement.session_id)
    report = msgspec.convert(context.results["check"], EndReport)
    is_needed = any(
        one.id == "sessionLogValidated" and one.level == "MUST" for one in report.requirements
    )
    is_refused = bool(log.fault) and is_needed
    if is_refused:
        _refuse(app, context, (f"sessionLogValidated: {log.fault}",))
    return StepResult(msgspec.to_builtins(log), is_last=is_refused)


def _lint(app: App, context: JobContext) -> StepResult:
    lint = session_files.lint_session_files(app, context.announcement.session_id)
    return StepResult(msgspec.to_builtins(lint))


def _record_evidence(app: App, context: JobContext) -> StepResult:
    log = msgspec.convert(context.results["write_log"], session_files.LogbookFile)
    evidence = end_evidence(
        # As it was judged: whoever changes something now does that after the end.
        msgspec.convert(context.results["check"], EndReport),
        log=log,
        problems=checks.logbook_problems(app, context.announcement.session_id, log.path),
        note=msgspec.convert(context.results["write_summary"], Fact),
        lint=msgspec.convert(context.results["lint"], Fact),
    )
    job, at_ms = context.job, app.clock.now_ms()
    append_once(
        app,
        context.announcement.session_id,
        session_end.evidence_key(job),
        lambda stream: session_end.record_evidence(stream, job, evidence, at_ms=at_ms),
    )
    return StepResult(dict(evidence))


def _commit(app: App, context: JobContext) -> StepResult:
    session = context.announcement.session_id
    commit = session_files.commit_session_files(app, session, context.job)
    if commit.is_refused:
        _refuse(app, context, (f"gitCommitted: the session's files: {commit.reason}",))
    return StepResult(msgspec.to_builtins(commit), is_last=commit.is_refused)


def _complete(app: App, context: JobContext) -> StepResult:
    commit = msgspec.convert(context.results["commit"], session_files.CommitOutcome)
    job, at_ms = context.job, app.clock.now_ms()
    append_once(
        app,
        context.announcement.session_id,
        completion_key(job),
        lambda stream: session_end.complete(
            stream, job, commit.sha, commit.reason if commit.is_wanted else "", at_ms=at_ms
        ),
    )
    return StepResult(commit.sha or commit.reason)


def _publish(app: App, context: JobContext) -> StepResult:
    gated_sessions.publish_state(app, context.announcement.session_id)
    return StepResult()


PROTOCOL_END = Job(
    session_end.JOB,
    tuple(
        JobStep(name, work, attempts_max=8)  # about a minute: a database may be started anew
        for name, work in (
            ("check", _check),
            ("write_summary", _write_summary),
            ("write_log", _write_log),
            ("lint", _lint),
            ("record_evidence", _record_evidence),
            ("finish_log", _write_log),
            ("commit", _commit),
            ("complete", _complete),
            ("publish", _publish),
        )
    ),
    _give_up,
)
