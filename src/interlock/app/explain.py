"""Refusals in words, once, for the terminal and for the model alike."""

import difflib
from typing import TypeAlias, assert_never

from interlock.app.explanation import Explanation
from interlock.app.refusals import (
    ApprovalAnswered,
    BadToken,
    BundleBroken,
    GoalMissing,
    NodeGone,
    NoSuchApproval,
    NoSuchDirectory,
    NoSuchGap,
    NoSuchNode,
    NoSuchRun,
    NoSuchSession,
    NoSuchWorkflow,
    NotesRequired,
    NothingToUnblock,
    OpenSession,
    ProjectNotOptedIn,
    Refusal,
    RequestReused,
    SeveralSessions,
    UnhealthySession,
)
from interlock.core.protocol.gated_session import ChangeNotAllowed, SessionEnded, SessionNotAttended
from interlock.core.session.artifacts import ArtifactRefused
from interlock.core.session.blockers import NOTES_PLACEHOLDER
from interlock.core.session.context import ContextRefused
from interlock.core.session.decide import (
    ApprovalPending,
    ContextUnset,
    NoPendingStep,
    NotesNotWritten,
    NotesTooLong,
    RunCannotBegin,
    RunWaitsForUser,
)
from interlock.core.tokens import (
    ForeignStoreToken,
    ForgedToken,
    MangledToken,
    RevokedKey,
    TokenFault,
    UnknownTokenVersion,
)

_NotFoundRefusal: TypeAlias = (
    NoSuchWorkflow
    | NoSuchSession
    | SeveralSessions
    | NoSuchRun
    | NoSuchGap
    | NoSuchApproval
    | NodeGone
    | NoSuchNode
)
_WrongCallRefusal: TypeAlias = (
    GoalMissing
    | NoSuchDirectory
    | NotesNotWritten
    | NotesTooLong
    | NotesRequired
    | RunCannotBegin
    | ContextUnset
    | ContextRefused
    | ArtifactRefused
    | RequestReused
)


_AttendanceRefusal: TypeAlias = (
    ChangeNotAllowed | SessionNotAttended | SessionEnded | ProjectNotOptedIn
)


def explain(refusal: Refusal) -> Explanation:
    match refusal:
        case ChangeNotAllowed() | SessionNotAttended() | SessionEnded() | ProjectNotOptedIn():
            return _explain_attendance(refusal)
        case BadToken():
            return _explain_bad_token(refusal.fault)
        case UnhealthySession():
            return Explanation(
                "session_unhealthy",
                f"Session `{refusal.session}` is damaged ({refusal.health.state}):"
                f" {refusal.health.reason}",
                f"Nothing was changed. `interlock session show {refusal.session}` shows the"
                f" {refusal.health.valid} events that can still be read.",
            )
        case NoPendingStep():
            return Explanation(
                "nothing_pending",
                "The workflow is complete at this point: no step is pending",
                "Nothing to hand in. Start another workflow with `start_workflow`.",
            )
        case RunWaitsForUser():
            return Explanation(
                "run_waits",
                f"Too many attempts were not accepted: run `{refusal.run}` waits for the user",
                f"Tell the user, who can let it go on with `interlock run unblock {refusal.run}`.",
            )
        case NothingToUnblock():
            return Explanation(
                "nothing_to_unblock",
                f"Run `{refusal.run}` does not wait for anybody",
                f"`interlock run show {refusal.run}` shows where it stands.",
            )
        case ApprovalPending():
            return Explanation(
                "approval_pending",
                f"No step is pending here: approval `{refusal.approval}` comes before the next one",
                "Ask again with the same token and without output: that shows whether it was"
                " answered, and where the run goes on.",
            )
        case ApprovalAnswered():
            return Explanation(
                "approval_answered",
                f"Approval `{refusal.approval}` was {refusal.verdict} already, by {refusal.by}",
                "Nothing was changed.",
            )
        case BundleBroken():
            return Explanation(
                "bundle_broken",
                f"The bundle was changed or is not one: {refusal.part}: {refusal.reason}",
                "Nothing was imported. Export it again where it came from.",
            )
        case (
            NoSuchWorkflow()
            | NoSuchSession()
            | SeveralSessions()
            | NoSuchRun()
            | NoSuchGap()
            | NoSuchApproval()
            | NodeGone()
            | NoSuchNode()
        ):
            return _explain_not_found(refusal)
        case _:
            return _explain_wrong_call(refusal)


def _explain_attendance(refusal: _AttendanceRefusal) -> Explanation:
    match refusal:
        case ChangeNotAllowed():
            return Explanation(
                "not_allowed",
                f"{refusal.change.capitalize()} is not allowed: {refusal.reason}",
                "Ask the user.",
            )
        case SessionNotAttended():
            return Explanation(
                "unknown_session",
                f"No gate watches over session `{refusal.session}`",
                "`interlock session start` begins one that has a gate.",
            )
        case SessionEnded():
            return Explanation(
                "unknown_session",
                f"Session `{refusal.session}` has ended",
                "`interlock session start` begins another one.",
            )
        case ProjectNotOptedIn():
            return Explanation(
                "not_opted_in",
                f"The project at `{refusal.path}` has not opted in, so nothing binds agents here",
                "The user can opt in with `interlock init`.",
            )
        case _:
            assert_never(refusal)


def _explain_not_found(refusal: _NotFoundRefusal) -> Explanation:
    match refusal:
        case NoSuchWorkflow():
            return _explain_no_such_workflow(refusal)
        case NoSuchSession():
            return _explain_no_such_session(refusal)
        case SeveralSessions():
            return _explain_several_sessions(refusal)
        case NoSuchRun():
            return _explain_no_such_run(refusal)
        case NoSuchGap():
            return Explanation(
                "unknown_gap",
                f"No open gap `{refusal.requested}`",
                "`interlock gaps list` shows those that are open.",
            )
        case NoSuchApproval() if refusal.candidates:
            return Explanation(
                "unknown_approval",
                f"Several approvals begin with `{refusal.requested}`",
                f"Write more of the id: {', '.join(refusal.candidates)}",
                refusal.candidates,
            )
        case NoSuchApproval():
            return Explanation(
                "unknown_approval",
                f"No approval `{refusal.requested}` waits for an answer",
                "`interlock approvals list` shows those that do.",
            )
        case NoSuchNode():
            missing = f"node `{refusal.requested}`" if refusal.requested else "run yet"
            hint = f"`interlock session show {refusal.session}` shows what it has."
            return Explanation(
                "unknown_node", f"Session `{refusal.session}` has no {missing}", hint
            )
        case NodeGone():
            return Explanation(
                "node_gone",
                "The session of this token is no longer in the store",
                "It was deleted. `resume_session` shows what there is.",
            )
        case _:
            assert_never(refusal)


def _explain_wrong_call(refusal: _WrongCallRefusal) -> Explanation:
    match refusal:
        case GoalMissing():
            return Explanation(
                "invalid_arguments",
                "The goal is empty",
                "Say in one sentence what the work is for; it is how the session is found again.",
            )
        case NoSuchDirectory():
            return Explanation(
                "invalid_arguments",
                f"There is no directory `{refusal.path}`",
                "Give the absolute path of the project's directory, or leave it out.",
            )
        case NotesNotWritten():
            return Explanation(
                "notes_not_written",
                f"The notes still say `{NOTES_PLACEHOLDER}`",
                "Put your own notes there.",
            )
        case NotesTooLong():
            return Explanation(
                "notes_too_long",
                f"The notes have {refusal.size} bytes; a step takes {refusal.size_max}",
                "Shorten them: what was done, found and decided. Large results belong in files.",
            )
        case NotesRequired():
            return Explanation(
                "notes_missing",
                "A checkpoint without a token is found again by its notes, and there are none",
                "Say in `notesMarkdown` what you did, found and decided so far.",
            )
        case RunCannotBegin() if refusal.var:
            return Explanation(
                "context_unset",
                f"Where to begin cannot be decided: {refusal.message} (asked at {refusal.pointer})",
                f"Send `{refusal.var}` along in `context`, with a value that fits.",
            )
        case RunCannotBegin():
            return Explanation(
                "workflow_unusable",
                f"The workflow cannot begin: {refusal.message} (at {refusal.pointer})",
                "Tell the user: the workflow file must be changed there.",
            )
        case ContextUnset():
            return Explanation(
                "context_unset",
                f"The first step speaks of context that was not given: {', '.join(refusal.keys)}",
                "Send it along in `context`.",
            )
        case ContextRefused() | ArtifactRefused():
            return Explanation(
                "invalid_arguments",
                f"`{refusal.pointer}` cannot be taken: {refusal.reason}",
                "Change or leave out that part and send the call again.",
            )
        case RequestReused():
            return Explanation(
                "request_reused",
                "This requestId was used before, for a call with other arguments",
                "Use another requestId for another call.",
            )
        case _:
            assert_never(refusal)


def _explain_no_such_workflow(refusal: NoSuchWorkflow) -> Explanation:
    folded = {name.casefold(): name for name in refusal.available}
    likely = difflib.get_close_matches(refusal.workflow.casefold(), folded, n=3)
    close = tuple(folded[name] for name in likely)
    count = len(refusal.available)
    shown = f"`interlock workflow list` (or `list_workflows`) shows all {count}."
    hint = f"Did you mean `{close[0]}`? {shown}" if close else shown
    if broken := [file for file in refusal.broken if file.place.path.stem == refusal.workflow]:
        hint = f"`{broken[0].place.path}` is not valid: {broken[0].problems[0]}"
    return Explanation("unknown_workflow", f"No workflow `{refusal.workflow}`", hint, close)


def _explain_no_such_run(refusal: NoSuchRun) -> Explanation:
    if refusal.candidates:
        return Explanation(
            "unknown_run",
            f"Several runs begin with `{refusal.requested}`",
            f"Write more of the id: {', '.join(refusal.candidates)}",
            refusal.candidates,
        )
    return Explanation(
        "unknown_run",
        f"No run `{refusal.requested}`",
        "`interlock session list` shows the sessions; `interlock session show` their runs.",
    )


def _explain_several_sessions(refusal: SeveralSessions) -> Explanation:
    return Explanation(
        "several_sessions",
        "Several sessions are open here, and nothing says which one is meant",
        f"Say which one: {', '.join(_session_label(found) for found in refusal.candidates)}",
        tuple(found.session for found in refusal.candidates),
    )


def _session_label(found: OpenSession) -> str:
    task = f"task {found.task}" if found.task else ""
    said = [part for part in (found.mode, task, found.title, *found.hosts) if part]
    return f"{found.session} ({'; '.join(said)})" if said else found.session


def _explain_no_such_session(refusal: NoSuchSession) -> Explanation:
    if refusal.variable:
        return Explanation(
            "unknown_session",
            f"The variable {refusal.variable} names the session `{refusal.requested}`, and"
            f" {'several begin so' if refusal.candidates else 'there is none'}",
            "Name another one in the call; the user can correct the variable.",
            refusal.candidates,
        )
    if refusal.candidates:
        return Explanation(
            "unknown_session",
            f"Several sessions begin with `{refusal.requested}`",
            f"Write more of the id: {', '.join(refusal.candidates)}",
            refusal.candidates,
        )
    return Explanation(
        "unknown_session",
        f"No session `{refusal.requested}`"
        if refusal.requested
        else "No session was recorded here",
        "`interlock session list` shows them all.",
    )


_USE_NEWEST_TOKEN = "Use the continueToken of the newest answer, copied whole."


def _explain_bad_token(fault: TokenFault) -> Explanation:
    match fault:
        case MangledToken():
            return Explanation(
                "token_mangled", f"The token was miscopied: {fault.reason}", _USE_NEWEST_TOKEN
            )
        case ForeignStoreToken():
            return Explanation(
                "token_other_store",
                "The token was made by another Interlock store",
                "Check that INTERLOCK_HOME is the one the token came from, or start again"
                " with `start_workflow`.",
            )
        case RevokedKey():
            return Explanation(
                "token_revoked",
                "The key that signed this token was revoked",
                "`resume_session` gives a new token for the same work.",
            )
        case UnknownTokenVersion():
            return Explanation(
                "token_unknown_version",
                f"The token is of version {fault.version}, which this Interlock does not know",
                "A newer Interlock made it: upgrade this one.",
            )
        case ForgedToken():
            return Explanation(
                "token_forged",
                "The token is well-formed but was not signed by this store",
                _USE_NEWEST_TOKEN,
            )
        case _:
            assert_never(fault)
