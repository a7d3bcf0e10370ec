"""Refusals in words, once, for the terminal and for the model alike."""

import difflib
from typing import Literal, NamedTuple, assert_never

from interlock.app.refusals import (
    BadToken,
    GoalMissing,
    NodeGone,
    NoSuchDirectory,
    NoSuchSession,
    NoSuchWorkflow,
    Refusal,
    Unhealthy,
)
from interlock.core.session.answer import WRITE_YOUR_NOTES
from interlock.core.session.decide import (
    NotesMissing,
    NotesNotWritten,
    NotesTooLong,
    NothingPending,
)
from interlock.core.tokens import (
    Forged,
    Mangled,
    OtherStore,
    RevokedKey,
    TokenFault,
    UnknownVersion,
)

Code = Literal[
    "invalid_arguments",
    "unknown_tool",
    "unknown_workflow",
    "unknown_session",
    "token_mangled",
    "token_other_store",
    "token_revoked",
    "token_unknown_version",
    "token_forged",
    "node_gone",
    "session_unhealthy",
    "nothing_pending",
    "notes_missing",
    "notes_not_written",
    "notes_too_long",
    "store_busy",
    "store_failed",
    "internal_error",
]


class Explanation(NamedTuple):
    code: Code
    error: str
    """What is true."""
    hint: str
    """What to do next."""
    did_you_mean: tuple[str, ...] = ()


def explain(refusal: Refusal) -> Explanation:
    match refusal:
        case NoSuchWorkflow():
            return _no_such_workflow(refusal)
        case BadToken():
            return _bad_token(refusal.fault)
        case NodeGone():
            return Explanation(
                "node_gone",
                "The session of this token is no longer in the store",
                "It was deleted. Start again with `start_workflow`.",
            )
        case Unhealthy():
            return Explanation(
                "session_unhealthy",
                f"Session `{refusal.session}` is damaged ({refusal.health.state}):"
                f" {refusal.health.reason}",
                f"Nothing was changed. `interlock session show {refusal.session}` shows the"
                f" {refusal.health.valid} events that can still be read.",
            )
        case NoSuchSession():
            return _no_such_session(refusal)
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
        case NothingPending():
            return Explanation(
                "nothing_pending",
                "The workflow is complete at this point: no step is pending",
                "Nothing to hand in. Start another workflow with `start_workflow`.",
            )
        case NotesMissing():
            return Explanation(
                "notes_missing",
                "The step was not handed in: it has no notes",
                "Do the step, then call again with your notes in `output.notesMarkdown`.",
            )
        case NotesNotWritten():
            return Explanation(
                "notes_not_written",
                f"`output.notesMarkdown` still says `{WRITE_YOUR_NOTES}`",
                "Put your own notes on this step there.",
            )
        case NotesTooLong():
            return Explanation(
                "notes_too_long",
                f"The notes have {refusal.size} bytes; a step takes {refusal.size_max}",
                "Shorten them: what was done, found and decided. Large results belong in files.",
            )
        case _:
            assert_never(refusal)


def _no_such_workflow(refusal: NoSuchWorkflow) -> Explanation:
    close = tuple(difflib.get_close_matches(refusal.workflow, refusal.known, n=3))
    count = len(refusal.known)
    shown = f"`interlock workflow list` (or `list_workflows`) shows all {count}."
    hint = f"Did you mean `{close[0]}`? {shown}" if close else shown
    if broken := [file for file in refusal.broken if file.path.stem == refusal.workflow]:
        hint = f"`{broken[0].path}` is not valid: {broken[0].problems[0]}"
    return Explanation("unknown_workflow", f"No workflow `{refusal.workflow}`", hint, close)


def _no_such_session(refusal: NoSuchSession) -> Explanation:
    if refusal.candidates:
        return Explanation(
            "unknown_session",
            f"Several sessions begin with `{refusal.asked}`",
            f"Write more of the id: {', '.join(refusal.candidates)}",
            refusal.candidates,
        )
    return Explanation(
        "unknown_session",
        f"No session `{refusal.asked}`",
        "`interlock session list` shows them all.",
    )


_NEWEST = "Use the continueToken of the newest answer, copied whole."


def _bad_token(fault: TokenFault) -> Explanation:
    match fault:
        case Mangled():
            return Explanation("token_mangled", f"The token was miscopied: {fault.reason}", _NEWEST)
        case OtherStore():
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
                "Start again with `start_workflow`.",
            )
        case UnknownVersion():
            return Explanation(
                "token_unknown_version",
                f"The token is of version {fault.version}, which this Interlock does not know",
                "A newer Interlock made it: upgrade this one.",
            )
        case Forged():
            return Explanation(
                "token_forged",
                "The token is well-formed but was not signed by this store",
                _NEWEST,
            )
        case _:
            assert_never(fault)
