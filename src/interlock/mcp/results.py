"""The result of a tool call: the facts as a structure, and the same facts as text."""

from collections.abc import Callable
from typing import Literal

import msgspec

from interlock.app.failures import SettingsBroken, StoreBusy, StoreFailure, StoreUnreachable
from interlock.core.canonical import Json
from interlock.core.explanation import Code, Explanation
from interlock.core.workflow.blanks import blanks_in


class SuggestedCall(msgspec.Struct, frozen=True, rename="camel"):
    tool: str
    params: dict[str, Json]


class RetryAdvice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: Literal["not_retryable", "retryable_immediate", "retryable_after_ms"]
    after_ms: int | None = None


class ProblemDetails(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    hint: str
    did_you_mean: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    correct_call: SuggestedCall | None = None
    """A call that would have been accepted, to be filled in."""
    next_calls: tuple[SuggestedCall, ...] = ()
    """One for each thing that may have been meant."""


class ToolProblem(msgspec.Struct, frozen=True, rename="camel"):
    """The reason why a call was not carried out."""

    code: Code
    message: str
    retry: RetryAdvice
    details: ProblemDetails


class ToolResult(msgspec.Struct, frozen=True):
    structured: msgspec.Struct
    text: str
    is_error: bool = False
    question: "UserQuestion | None" = None
    """A question that a client may put to its user, for a better result."""


class UserQuestion(msgspec.Struct, frozen=True):
    message: str
    record: Callable[[bool, str, str], ToolResult]
    """Records the answer: yes or no, a reason, and the name of the client."""


RETRY_CORRECTED = RetryAdvice("retryable_immediate")
NOT_RETRYABLE = RetryAdvice("not_retryable")
_RETRY_LATER = RetryAdvice("retryable_after_ms", 1_000)


_FINAL_CODES: frozenset[Code] = frozenset(
    (
        "session_unhealthy",
        "token_other_store",
        "token_revoked",
        "token_unknown_version",
        "node_gone",
        "nothing_pending",
        "workflow_unusable",
    )
)
"""Refusals of calls that no correction makes good; another call may lead on."""


def refusal_result(
    explanation: Explanation,
    correct_call: SuggestedCall | None,
    *,
    missing: tuple[str, ...] = (),
    allowed: tuple[str, ...] = (),
    next_calls: tuple[SuggestedCall, ...] = (),
) -> ToolResult:
    """A refusal, with a call that would get further."""
    return problem_result(
        ToolProblem(
            explanation.code,
            explanation.error,
            NOT_RETRYABLE
            if not (correct_call or next_calls) or explanation.code in _FINAL_CODES
            else RETRY_CORRECTED,
            ProblemDetails(
                hint=explanation.hint,
                did_you_mean=explanation.did_you_mean,
                missing=missing,
                allowed=allowed,
                correct_call=correct_call,
                next_calls=next_calls,
            ),
        )
    )


def store_failure_result(failure: StoreFailure, call: SuggestedCall) -> ToolResult:
    """The store failed: nothing was written, and the same call works once the store does."""
    return problem_result(
        ToolProblem(
            "store_busy" if isinstance(failure, StoreBusy) else "store_failed",
            str(failure),
            _RETRY_LATER if isinstance(failure, StoreUnreachable | StoreBusy) else NOT_RETRYABLE,
            ProblemDetails(failure.hint, correct_call=call),
        )
    )


def settings_broken_result(broken: SettingsBroken) -> ToolResult:
    hint = "Tell the user: the file must be corrected or moved away."
    return problem_result(
        ToolProblem("settings_broken", str(broken), NOT_RETRYABLE, ProblemDetails(hint))
    )


def internal_error_result(error: Exception, failure: str) -> ToolResult:
    """A failure of ours. The log has the traceback under the same id."""
    return problem_result(
        ToolProblem(
            "internal_error",
            f"Unexpected {type(error).__name__}: {error}. This is a bug in Interlock",
            NOT_RETRYABLE,
            ProblemDetails(
                f"The server's log (stderr) has the traceback as {failure}. Repeating the call is"
                " safe."
            ),
        )
    )


def problem_result(tool_problem: ToolProblem) -> ToolResult:
    details = tool_problem.details
    lines = [f"error: {tool_problem.message} ({tool_problem.code})", "", f"hint: {details.hint}"]
    lines += [f"missing: {', '.join(details.missing)}"] if details.missing else []
    lines += [f"allowed: {', '.join(details.allowed)}"] if details.allowed else []
    lines += [f"did you mean: {', '.join(details.did_you_mean)}"] if details.did_you_mean else []
    if tool_problem.retry.after_ms:
        lines.append(f"retry after {tool_problem.retry.after_ms} ms")
    if details.correct_call:
        lines.append(f"a call that would work: {_call_text(details.correct_call)}")
    lines += [f"one of: {_call_text(call)}" for call in details.next_calls]
    return ToolResult(tool_problem, "\n".join(lines), is_error=True)


def _call_text(call: SuggestedCall) -> str:
    fill_in = "(fill in every <…>) " if blanks_in(call.params) else ""
    return f"{fill_in}{call.tool} {msgspec.json.encode(call.params).decode()}"
