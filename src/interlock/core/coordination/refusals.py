"""Where coordination says no: each refusal names who is in the way, and one thing to do."""

import msgspec

from interlock.core.coordination.records import IdentityEnd, WorkStatus
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal, TextRefusal

_ROUNDING_SECONDS = 30
_SHORT_SECONDS, _LONG_SECONDS = 120, 7_200  # until then in seconds, then in minutes


def ago_text(span_ms: int | None) -> str:
    """How long ago, in words; whole minutes from the second one on."""
    if span_ms is None:
        return "at an unknown time"
    seconds = span_ms // 1_000
    if seconds < _SHORT_SECONDS:
        return f"{seconds} s ago"
    return f"{seconds // 60} min ago" if seconds < _LONG_SECONDS else f"{seconds // 3_600} h ago"


def span_text(span_ms: int) -> str:
    """How long something takes or lasts, in words, to the nearest second or minute."""
    seconds = (max(0, span_ms) + 500) // 1_000
    if seconds >= _SHORT_SECONDS:
        seconds += _ROUNDING_SECONDS
    return ago_text(seconds * 1_000).removesuffix(" ago")


class IdentityLost(Refusal, frozen=True):
    """The caller's identity is over, so that what it wants to write is refused."""

    identity: str
    end: IdentityEnd
    holder: str = ""
    """The display name of who has taken over."""

    def explain(self) -> Explanation:
        if self.end.reason == "taken_over":
            who = self.holder or self.end.by or "Somebody"
            why = f" ({self.end.why})" if self.end.why else ""
            error = f"{who} has taken over from `{self.identity}`{why}: its lease is lost"
        else:
            error = f"`{self.identity}` has ended ({self.end.reason}): its lease is lost"
        return Explanation(
            "lease_lost",
            error,
            "Nothing that you held is yours any more, and nothing was changed now. Look at what"
            " was done since, then call `preflight`: it registers you anew.",
        )


class PathConflict(msgspec.Struct, frozen=True, rename="camel"):
    """Paths that somebody else has reserved."""

    holder: str
    display: str
    pattern: str
    requested: str
    witness: str
    """A path that both have."""
    left_ms: int
    is_exclusive: bool
    is_stale: bool = False
    worktree: str = ""
    reason: str = ""

    def explain(self) -> str:
        kind = "exclusively" if self.is_exclusive else "together with others"
        about = f" for “{self.reason}”" if self.reason else ""
        return (
            f"{self.display} holds `{self.pattern}` {kind}{about}, for another"
            f" {span_text(self.left_ms)} (both have `{self.witness}`)"
        )


class PathsHeld(Refusal, frozen=True):
    conflicts: tuple[PathConflict, ...]
    free: tuple[str, ...] = ()
    """Those of the requested patterns that nobody holds."""
    is_enforced: bool = False

    def explain(self) -> Explanation:
        stale = [conflict.holder for conflict in self.conflicts if conflict.is_stale]
        if stale:
            hint = f"It is stale: `interlock takeover {stale[0]}` releases what it holds."
        elif self.free:
            hint = "Reserve the others alone, or write to the holder (`send_message`)."
        else:
            hint = "Work on other files, wait, or write to the holder (`send_message`)."
        if not self.is_enforced:
            hint += " With `proceed` you reserve them all the same, and the holder is told."
        return Explanation(
            "paths_held", "; ".join(one.explain() for one in self.conflicts[:5]), hint
        )


class WorkHeld(Refusal, frozen=True):
    item: str
    holder: str
    display: str
    since_ms: int
    """How long ago it was claimed."""
    is_stale: bool = False

    def explain(self) -> Explanation:
        hint = "Take another one: `work_items` with `ready` lists what is free."
        if self.is_stale:
            hint = f"It is stale: `interlock takeover {self.holder}` makes it free. {hint}"
        return Explanation(
            "work_held",
            f"`{self.item}` is claimed by {self.display}, {ago_text(self.since_ms)}",
            hint,
        )


class WorkNotFree(Refusal, frozen=True):
    item: str
    status: WorkStatus
    waits_for: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        if self.waits_for:
            error = f"`{self.item}` waits for {', '.join(f'`{one}`' for one in self.waits_for)}"
        else:
            error = f"`{self.item}` is {self.status}, so that nobody claims it"
        return Explanation("work_held", error, "Take another one: `work_items` with `ready`.")


class UnknownWork(TextRefusal, frozen=True):
    item: str
    candidates: tuple[str, ...] = ()

    code = "unknown_work"
    error = "There is no work item `{item}`"
    hint = "`interlock work list` shows them all."


class WorkRefused(Refusal, frozen=True):
    reason: str
    hint: str

    def explain(self) -> Explanation:
        return Explanation("invalid_arguments", self.reason, self.hint)


class UnknownProject(TextRefusal, frozen=True):
    project: str

    code = "unknown_project"
    error = "Nothing is recorded of a project `{project}`"
    hint = "The board lists the projects in which agents have registered."


class UnknownIdentity(TextRefusal, frozen=True):
    name: str
    candidates: tuple[str, ...] = ()

    code = "unknown_identity"
    error = "Nobody here is called `{name}`"
    hint = "`interlock who` shows who works on this project."


class StillThere(Refusal, frozen=True):
    """An agent that is active is not taken over, nor is unattended work that is not over."""

    identity: str
    display: str
    silent_ms: int | None
    stale_ms: int
    session: str = ""
    work: str = ""
    """As in `unattended, parked`; empty for an attended session."""

    def explain(self) -> Explanation:
        if self.work:
            return Explanation(
                "not_stale",
                f"{self.display} ({self.work}) cannot be taken over",
                "`interlock driver status` shows the user how to continue it. `interlock driver"
                f" cancel {self.session}` ends it and releases its reservations and claims.",
            )
        return Explanation(
            "not_stale",
            f"{self.display} was seen {ago_text(self.silent_ms)}, so it is not taken over",
            f"It is stale after {span_text(self.stale_ms)} of silence. Write to it, or work on"
            " something else. A person can take over at once: `interlock takeover"
            f" {self.identity} --force`.",
        )


class AlreadyOver(Refusal, frozen=True):
    """Somebody else was faster."""

    identity: str
    end: IdentityEnd
    display: str = ""

    def explain(self) -> Explanation:
        who = f" by {self.display or self.end.by}" if self.end.by else ""
        what = "was taken over" if self.end.reason == "taken_over" else "has ended"
        return Explanation(
            "not_stale",
            f"`{self.identity}` {what}{who} already",
            "What it held is free: `interlock who`.",
        )


class SnapshotFailed(TextRefusal, frozen=True):
    """There is uncommitted work that could not be saved before a take-over."""

    identity: str
    worktree: str
    reason: str

    code = "needs_answer"
    error = "`{worktree}` has uncommitted work that could not be saved: {reason}"
    hint = (
        "Look at it first. `interlock takeover {identity} --without-snapshot` goes on"
        " without saving it; nothing in the worktree is changed by that."
    )


class PatternRefused(TextRefusal, frozen=True):
    pattern: str
    reason: str

    code = "invalid_arguments"
    error = "`{pattern}` cannot be reserved: {reason}"
    hint = "Name paths of the project: `src/api/**`, `docs/guide.md`, `src/*.py`."


class NothingReserved(Refusal, frozen=True):
    patterns: tuple[str, ...]
    own: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        mine = ", ".join(f"`{one}`" for one in self.own) or "nothing"
        return Explanation(
            "paths_held",
            f"You have not reserved {', '.join(f'`{one}`' for one in self.patterns)}",
            f"You hold {mine}.",
        )


class MessageRefused(Refusal, frozen=True):
    reason: str
    hint: str = "Send it again, corrected."

    def explain(self) -> Explanation:
        return Explanation("invalid_arguments", self.reason, self.hint)


class UnknownMessage(TextRefusal, frozen=True):
    message: str

    code = "unknown_message"
    error = "There is no message `{message}` in this inbox"
    hint = "`inbox` (`interlock mail inbox`) shows their ids."
