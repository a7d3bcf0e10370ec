"""The key of a call without a token, by which a repetition of the call is recognised."""

import msgspec

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef

UNNAMED_VALID_MS = 60_000  # an identical call within a minute is taken for a repetition


class RequestKey(msgspec.Struct, frozen=True):
    """The identity of a call, by which its repetition is recognised."""

    key: BlobRef
    arguments: BlobRef
    caller: str
    is_named: bool


def request_key(tool: str, caller: str, arguments: Json, request_id: str | None) -> RequestKey:
    digest = canonical.blob_ref(canonical.encode(arguments))
    identity: Json = (
        [tool, "named", request_id] if request_id else [tool, "unnamed", caller, digest]
    )
    return RequestKey(
        canonical.blob_ref(canonical.encode(identity)), digest, caller, bool(request_id)
    )
