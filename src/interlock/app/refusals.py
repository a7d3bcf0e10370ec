"""Refusals of use cases that several rooms share, each with its explanation."""

from typing import Literal, TypeAlias

import msgspec

from interlock.core.explanation import Explanation
from interlock.core.ids import ApprovalId, RunId, SessionId, WorkflowId
from interlock.core.notes.wording import TOOL_WORDING, WordedRefusal, Wording
from interlock.core.refusal import Refusal, TextRefusal
from interlock.core.session.chain import Health
from interlock.core.session.state import timestamp
from interlock.workspace.projects.catalogue import BrokenEntry

STEPS_NAMED_MAX = 20


class NoSuchWorkflow(Refusal, frozen=True):
    workflow: WorkflowId
    available: tuple[WorkflowId, ...]
    broken: tuple[BrokenEntry, ...]
    """Files that do not validate: the requested one may be among them."""

    def explain(self) -> Explanation:
        import difflib  # noqa: PLC0415 (1 ms at the start of a server)

        folded_ids = {name.casefold(): name for name in self.available}
        similar = difflib.get_close_matches(self.workflow.casefold(), folded_ids, n=3)
        close = tuple(folded_ids[name] for name in similar)
        count = len(self.available)
        listing = f"`interlock workflow list` (or `list_workflows`) shows all {count}."
        hint = f"Did you mean `{close[0]}`? {listing}" if close else listing
        if broken := [file for file in self.broken if file.place.path.stem == self.workflow]:
            hint = f"`{broken[0].place.path}` is not valid: {broken[0].problems[0]}"
        return Explanation("unknown_workflow", f"No workflow `{self.workflow}`", hint, close)


class NoSuchNode(Refusal, frozen=True):
    requested: str
    """Empty if no node could be requested, since there is no run."""
    session: SessionId

    def explain(self) -> Explanation:
        missing = f"node `{self.requested}`" if self.requested else "run yet"
        hint = f"`interlock session show {self.session}` shows what it has."
        return Explanation("unknown_node", f"Session `{self.session}` has no {missing}", hint)


class NoSuchStep(Refusal, frozen=True):
    """Nothing was submitted for a step of that name."""

    requested: str
    available: tuple[str, ...]
    """The steps for which something was."""

    def explain(self) -> Explanation:
        known = ", ".join(f"`{step}`" for step in self.available[:STEPS_NAMED_MAX]) or "none yet"
        return Explanation(
            "unknown_step",
            f"Nothing was submitted for a step `{self.requested}`",
            f"There are notes of: {known}.",
            self.available[:STEPS_NAMED_MAX],
        )


class UnhealthySession(TextRefusal, frozen=True):
    session: SessionId
    health: Health

    code = "session_unhealthy"
    error = "Session `{session}` is damaged ({health.state}): {health.reason}"
    hint = (
        "Nothing was changed. `interlock session show {session}` shows the"
        " {health.valid} events that can still be read."
    )


class NoSuchSession(Refusal, frozen=True):
    requested: str
    candidates: tuple[SessionId, ...]
    """The sessions whose ids begin with it, if there are several."""
    variable: str = ""
    """The variable of the environment that named the session, if the call did not."""

    def explain(self) -> Explanation:
        if self.variable:
            return Explanation(
                "unknown_session",
                f"The variable {self.variable} names the session `{self.requested}`, and"
                f" {'several begin so' if self.candidates else 'there is none'}",
                "Name another one in the call; the user can correct the variable.",
                self.candidates,
            )
        if self.candidates:
            return _explain_prefix("unknown_session", "sessions", self.requested, self.candidates)
        return Explanation(
            "unknown_session",
            f"No session `{self.requested}`" if self.requested else "You have no open session here",
            "`interlock session list` shows them all.",
        )


class OpenSession(msgspec.Struct, frozen=True):
    """A session that the caller may mean, with details that tell it from others."""

    session: SessionId
    mode: str = ""
    task: str = ""
    title: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        task = f"task {self.task}" if self.task else ""
        details = [part for part in (self.mode, task, self.title, *self.hosts) if part]
        return f"{self.session} ({'; '.join(details)})" if details else self.session


class SeveralSessions(Refusal, frozen=True):
    """Several sessions are open, and nothing tells which of them is the caller's."""

    candidates: tuple[OpenSession, ...]

    def explain(self) -> Explanation:
        return Explanation(
            "several_sessions",
            "Several sessions are open here, and nothing says which one is meant",
            f"Say which one: {', '.join(candidate.label for candidate in self.candidates)}",
            tuple(candidate.session for candidate in self.candidates),
        )


class GoalMissing(TextRefusal, frozen=True):
    """A run without a goal could not be found again."""

    code = "invalid_arguments"
    error = "The goal is empty"
    hint = "Say in one sentence what the work is for; it is how the session is found again."


class NotesRequired(TextRefusal, frozen=True):
    """A checkpoint without a token is found again by its notes, so it needs some."""

    code = "notes_missing"
    error = "A checkpoint without a token is found again by its notes, and there are none"
    hint = "Say in `notesMarkdown` what you did, found and decided so far."


class RequestReused(TextRefusal, frozen=True):
    """The request id was used before, for another call."""

    code = "request_reused"
    error = "This requestId was used before, for a call with other arguments"
    hint = "Use another requestId for another call."


class NoSuchRun(Refusal, frozen=True):
    requested: str
    candidates: tuple[RunId, ...]

    def explain(self) -> Explanation:
        if self.candidates:
            return _explain_prefix("unknown_run", "runs", self.requested, self.candidates)
        if self.requested.startswith("ses_"):
            return Explanation(
                "unknown_run",
                f"`{self.requested}` is the id of a session, and a run is wanted",
                f"`interlock session show {self.requested}` shows its runs.",
            )
        return Explanation(
            "unknown_run",
            f"No run `{self.requested}`",
            "`interlock run list` shows those that are open here, with `--all` every one.",
        )


class BundleBroken(TextRefusal, frozen=True):
    """The document is not what was exported."""

    part: str
    reason: str

    code = "bundle_broken"
    error = "The bundle was changed or is not one: {part}: {reason}"
    hint = "Nothing was imported. Export it again where it came from."


class NoSuchApproval(Refusal, frozen=True):
    """No approval waits under that id."""

    requested: str
    candidates: tuple[ApprovalId, ...]

    def explain(self) -> Explanation:
        if self.candidates:
            return _explain_prefix("unknown_approval", "approvals", self.requested, self.candidates)
        return Explanation(
            "unknown_approval",
            f"No approval `{self.requested}` waits for an answer",
            "`interlock approvals list` shows those that do.",
        )


class ApprovalAnswered(Refusal, frozen=True):
    """Somebody else was faster, or the deadline passed."""

    approval: ApprovalId
    verdict: str
    by: str
    who: str = ""
    at_ms: int = 0
    """The time of that answer."""

    def explain(self) -> Explanation:
        return Explanation(
            "approval_answered",
            f"Approval `{self.approval}` was {self.verdict} already, by {self.who or self.by},"
            f" at {timestamp(self.at_ms)}",
            "Nothing was changed.",
        )


class ApprovalChanged(Refusal, frozen=True):
    """The answer is to something else than what waits now."""

    approval: ApprovalId
    question: str
    content: str
    shown: str
    """The digest of what waits now."""

    def explain(self) -> Explanation:
        return Explanation(
            "approval_changed",
            f"What approval `{self.approval}` is about has changed since it was shown",
            "Nothing was answered. Look at it again, and answer with the digest"
            f" `{self.shown}`. It is now: {self.question}\n{self.content}".rstrip(),
        )


class ProjectNotOptedIn(TextRefusal, frozen=True):
    """No gate watches over this project."""

    path: str

    code = "not_opted_in"
    error = "The project at `{path}` has not opted in, so nothing binds agents here"
    hint = "The user can opt in with `interlock init`."


class NoSuchDirectory(TextRefusal, frozen=True):
    path: str

    code = "invalid_arguments"
    error = "There is no directory `{path}`"
    hint = "Give the absolute path of the project's directory, or leave it out."


class NoProject(WordedRefusal, frozen=True):
    """Notes belong to a project, and there is none around this directory."""

    path: str

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        return Explanation(
            "no_project",
            f"`{self.path}` is in no project, and notes belong to one",
            f"{wording.place} `interlock init`, or `git init`, makes a directory a project.",
        )


_AmbiguousCode: TypeAlias = Literal["unknown_session", "unknown_run", "unknown_approval"]


def _explain_prefix(
    code: _AmbiguousCode, nouns: str, requested: str, candidates: tuple[str, ...]
) -> Explanation:
    return Explanation(
        code,
        f"Several {nouns} begin with `{requested}`",
        f"Write more of the id: {', '.join(candidates)}",
        candidates,
    )
