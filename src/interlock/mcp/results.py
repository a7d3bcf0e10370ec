"""What a tool call comes to: facts as a structure and the same facts as text."""

from typing import Literal

import msgspec

from interlock.app.explanation import Code, Explanation
from interlock.app.failures import SettingsBroken, StoreBusy, StoreFailure, StoreUnreachable
from interlock.core.canonical import Json


class Call(msgspec.Struct, frozen=True, rename="camel"):
    tool: str
    params: dict[str, Json]


class Retry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: Literal["not_retryable", "retryable_immediate", "retryable_after_ms"]
    after_ms: int | None = None


class Details(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hint: str
    did_you_mean: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    correct_call: Call | None = None
    """A call that would have been accepted, to be filled in."""
    next_calls: tuple[Call, ...] = ()
    """One for each thing that may have been meant."""


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Why a call was not carried out."""

    code: Code
    message: str
    retry: Retry
    details: Details


class ToolResult(msgspec.Struct, frozen=True):
    structured: msgspec.Struct
    text: str
    is_error: bool = False


CORRECTABLE = Retry("retryable_immediate")
FINAL = Retry("not_retryable")
_LATER = Retry("retryable_after_ms", 1_000)


def refused(
    explanation: Explanation,
    correct_call: Call | None,
    *,
    missing: tuple[str, ...] = (),
    allowed: tuple[str, ...] = (),
    next_calls: tuple[Call, ...] = (),
) -> ToolResult:
    """A refusal, with a call that would get further."""
    return problem(
        Problem(
            explanation.code,
            explanation.error,
            CORRECTABLE if correct_call else FINAL,
            Details(
                hint=explanation.hint,
                did_you_mean=explanation.did_you_mean,
                missing=missing,
                allowed=allowed,
                correct_call=correct_call,
                next_calls=next_calls,
            ),
        )
    )


def store_failed(failure: StoreFailure, call: Call) -> ToolResult:
    """Nothing was written; the same call is right once the store is."""
    return problem(
        Problem(
            "store_busy" if isinstance(failure, StoreBusy) else "store_failed",
            str(failure),
            _LATER if isinstance(failure, StoreUnreachable | StoreBusy) else FINAL,
            Details(failure.hint, correct_call=call),
        )
    )


def settings_broken(broken: SettingsBroken) -> ToolResult:
    hint = "Tell the user: the file must be corrected or moved away."
    return problem(Problem("settings_broken", str(broken), FINAL, Details(hint)))


def internal_error(error: Exception) -> ToolResult:
    return problem(
        Problem(
            "internal_error",
            f"Unexpected {type(error).__name__}: {error}. This is a bug in Interlock",
            FINAL,
            Details("The server's log (stderr) has the traceback. Repeating the call is safe."),
        )
    )


def problem(found: Problem) -> ToolResult:
    details = found.details
    lines = [f"error: {found.message} ({found.code})", "", f"hint: {details.hint}"]
    lines += [f"missing: {', '.join(details.missing)}"] if details.missing else []
    lines += [f"allowed: {', '.join(details.allowed)}"] if details.allowed else []
    lines += [f"did you mean: {', '.join(details.did_you_mean)}"] if details.did_you_mean else []
    after = f" after {found.retry.after_ms} ms" if found.retry.after_ms else ""
    lines.append(f"retry: {found.retry.kind}{after}")
    if details.correct_call:
        lines.append(f"a call that would work: {_written(details.correct_call)}")
    lines += [f"one of: {_written(call)}" for call in details.next_calls]
    return ToolResult(found, "\n".join(lines), is_error=True)


def _written(call: Call) -> str:
    return f"{call.tool} {msgspec.json.encode(call.params).decode()}"
