"""Why a store is not copied, or the copy not taken for one, and that in words."""

from typing import TypeAlias, assert_never

import msgspec

from interlock.app.explanation import Explanation
from interlock.core.ids import SessionId

_SHOWN_MAX = 10


class NoTarget(msgspec.Struct, frozen=True):
    """The name of the target is empty, as that of a variable which is not set."""


class TargetNotEmpty(msgspec.Struct, frozen=True):
    """The target is a directory in which something else lies."""

    directory: str


class SameStore(msgspec.Struct, frozen=True):
    store_label: str


class ForeignSession(msgspec.Struct, frozen=True):
    """The target holds something that did not come from the source."""

    target: str
    session: SessionId
    reason: str


class SourceDamaged(msgspec.Struct, frozen=True):
    damaged_sessions: tuple[tuple[SessionId, str], ...]


class CopyMismatch(msgspec.Struct, frozen=True):
    """What arrived is not what was sent."""

    target: str
    session: SessionId | None
    reason: str


CopyRefusal: TypeAlias = (
    NoTarget | TargetNotEmpty | SameStore | ForeignSession | SourceDamaged | CopyMismatch
)


def explain_copy(refusal: CopyRefusal) -> Explanation:
    match refusal:
        case NoTarget():
            return Explanation(
                "invalid_arguments",
                "No target is named",
                "Nothing was copied. Give a URL that begins with postgresql://, or a directory; is"
                " a variable empty?",
            )
        case TargetNotEmpty():
            return Explanation(
                "target_not_empty",
                f"`{refusal.directory}` holds something else than an Interlock store",
                "Nothing was copied. Name a new or an empty directory, or one with a store.",
            )
        case SameStore():
            return Explanation(
                "same_store",
                f"`{refusal.store_label}` is the store in use",
                "Name another database or directory.",
            )
        case ForeignSession():
            return Explanation(
                "target_not_empty",
                f"`{refusal.target}` holds sessions of its own: `{refusal.session}`"
                f" {refusal.reason}",
                "Nothing was copied. Name an empty database or directory; in a database that others"
                " use, another schema: ?options=-csearch_path%3Dname",
            )
        case SourceDamaged():
            return _explain_damage(refusal.damaged_sessions)
        case CopyMismatch():
            which = f"session `{refusal.session}`" if refusal.session else "the copy"
            return Explanation(
                "copy_unlike",
                f"{which[0].upper()}{which[1:]} is not the same in `{refusal.target}`:"
                f" {refusal.reason}",
                "The target is marked as unfinished and cannot be used; the store in use is as it"
                " was. See that nobody else writes to the target, then copy to an empty one.",
            )
        case _:
            assert_never(refusal)


def _explain_damage(unsound: tuple[tuple[SessionId, str], ...]) -> Explanation:
    shown = [f"`{session}` ({reason})" for session, reason in unsound[:_SHOWN_MAX]]
    more = [f"{len(unsound) - _SHOWN_MAX} more"] if len(unsound) > _SHOWN_MAX else []
    count = "A session is" if len(unsound) == 1 else f"{len(unsound)} sessions are"
    return Explanation(
        "session_unhealthy",
        f"{count} damaged: {', '.join((*shown, *more))}",
        "Nothing was copied. Restore the store from a backup, or do without them:"
        " `interlock session delete ID`, then copy again.",
    )
