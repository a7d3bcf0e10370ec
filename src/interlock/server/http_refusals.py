"""The body of a refused request, always `code`, `error` and `hint`, and its HTTP status.

Where the server failed, the body has a `logId` too, and the line in the log begins with it.
"""

import logging
import os
from typing import Literal, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from interlock.core.explanation import Code
from interlock.core.ids import FAILURE_BYTES, failure_id

_LOG = logging.getLogger(__name__)

ServerCode = Literal[
    "not_found",
    "method_not_allowed",
    "too_large",
    "wrong_media_type",
    "wrong_host",
    "wrong_origin",
    "not_signed_in",
    "no_csrf",
    "refused",
]
AnyCode: TypeAlias = Code | ServerCode


class HttpRefusal(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    code: AnyCode
    error: str
    """The fact that stands in the way."""
    hint: str
    """The next thing to do."""
    log_id: str = ""
    """The name under which the server's log has it, where the server itself failed."""


STATUS_BY_CODE: dict[AnyCode, int] = {
    "invalid_arguments": 400,
    "bundle_broken": 400,
    "context_unset": 400,
    "notes_missing": 400,
    "notes_not_written": 400,
    "notes_too_long": 400,
    "note_refused": 400,
    "refused": 400,
    "not_signed_in": 401,
    "wrong_origin": 403,
    "no_csrf": 403,
    "needs_person": 403,
    "not_found": 404,
    "unknown_workflow": 404,
    "unknown_trigger": 404,
    "unknown_session": 404,
    "unknown_run": 404,
    "unknown_gap": 404,
    "unknown_job": 404,
    "unknown_project": 404,
    "unknown_work": 404,
    "unknown_identity": 404,
    "unknown_message": 404,
    "unknown_delegation": 404,
    "unknown_decision": 404,
    "feature_not_done": 409,
    "unknown_node": 404,
    "unknown_step": 404,
    "unknown_approval": 404,
    "unknown_note": 404,
    "node_gone": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "wrong_media_type": 415,
    "wrong_host": 421,
    "internal_error": 500,
    "store_busy": 503,
    "store_failed": 503,
}
"""All other codes are a 409: the request is understood, but conflicts with the current state."""
CONFLICT = 409


def status_of(code: AnyCode) -> int:
    return STATUS_BY_CODE.get(code, CONFLICT)


def code_of(status: int) -> AnyCode:
    """The code for a status with which the framework refuses a request by itself."""
    codes: dict[int, AnyCode] = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    return codes.get(status, "refused")


def logged_failure(refusal: HttpRefusal, request: Request) -> HttpRefusal:
    """Log a failure of the server's own, and return the refusal with the name it has there."""
    name = failure_id(os.urandom(FAILURE_BYTES))
    _LOG.error("%s: %s %s: %s", name, request.method, request.url.path, refusal.error)
    hint = f"{refusal.hint} The server's log has it as `{name}`."
    return msgspec.structs.replace(refusal, hint=hint, log_id=name)


def refusal_response(refusal: HttpRefusal, *, status: int | None = None) -> Response:
    return Response(
        msgspec.json.encode(refusal),
        status_code=status or status_of(refusal.code),
        media_type="application/json",
    )
