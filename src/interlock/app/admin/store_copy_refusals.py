"""Refusals to copy a store, or to accept the copy as one, each with its explanation."""

from typing import TypeAlias

from interlock.core.explanation import Explanation
from interlock.core.ids import SessionId
from interlock.core.refusal import Refusal, TextRefusal

_SHOWN_MAX = 10


class NoTarget(TextRefusal, frozen=True):
    """The name of the target is empty, like a variable that is not set."""

    code = "invalid_arguments"
    error = "No target is named"
    hint = (
        "Nothing was copied. Give a URL that begins with postgresql://, or a directory; is"
        " a variable empty?"
    )


class TargetNotEmpty(TextRefusal, frozen=True):
    """The target is a directory with something else in it."""

    directory: str

    code = "target_not_empty"
    error = "`{directory}` holds something else than an Interlock store"
    hint = "Nothing was copied. Name a new or an empty directory, or one with a store."


class SameStore(TextRefusal, frozen=True):
    store_label: str

    code = "same_store"
    error = "`{store_label}` is the store in use"
    hint = "Name another database or directory."


class ForeignSession(TextRefusal, frozen=True):
    """The target has a session that did not come from the source."""

    target: str
    session: str
    reason: str

    code = "target_not_empty"
    error = "`{target}` holds sessions of its own: `{session}` {reason}"
    hint = (
        "Nothing was copied. Name an empty database or directory; in a database that others"
        " use, another schema: ?options=-csearch_path%3Dname"
    )


class SourceDamaged(Refusal, frozen=True):
    damaged_sessions: tuple[tuple[str, str], ...]

    def explain(self) -> Explanation:
        count = len(self.damaged_sessions)
        details = [
            f"`{session}` ({reason})" for session, reason in self.damaged_sessions[:_SHOWN_MAX]
        ]
        more = [f"{count - _SHOWN_MAX} more"] if count > _SHOWN_MAX else []
        subject = "A session is" if count == 1 else f"{count} sessions are"
        return Explanation(
            "session_unhealthy",
            f"{subject} damaged: {', '.join((*details, *more))}",
            "Nothing was copied. Restore the store from a backup, or do without them:"
            " `interlock session delete ID`, then copy again.",
        )


class CopyMismatch(Refusal, frozen=True):
    """The copy is not what was sent."""

    target: str
    session: SessionId | None
    reason: str

    def explain(self) -> Explanation:
        subject = f"Session `{self.session}`" if self.session else "The copy"
        return Explanation(
            "copy_unlike",
            f"{subject} is not the same in `{self.target}`: {self.reason}",
            "The target is marked as unfinished and cannot be used; the store in use is as it"
            " was. See that nobody else writes to the target, then copy to an empty one.",
        )


CopyRefusal: TypeAlias = (
    NoTarget | TargetNotEmpty | SameStore | ForeignSession | SourceDamaged | CopyMismatch
)
