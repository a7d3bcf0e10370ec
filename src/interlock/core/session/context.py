"""The context of a run: JSON that steps and prompts share, merged key by key."""

import re
from collections.abc import Mapping

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.workflow import schemas

BYTES_MAX = 256 * 1024
RESERVED = re.compile(r"goal|interlock.*|__proto__|constructor|prototype")

Context = Mapping[str, Json]


class ContextRefused(msgspec.Struct, frozen=True):
    """The context cannot be taken as it was sent. Nothing was written."""

    pointer: str
    reason: str


class Merged(msgspec.Struct, frozen=True):
    context: Context
    content: CanonicalBytes
    changed: tuple[str, ...]
    """The keys that were set or removed, sorted."""

    @property
    def ref(self) -> BlobRef:
        return canonical.blob_ref(self.content)

    @property
    def blobs(self) -> dict[BlobRef, bytes]:
        return {self.ref: bytes(self.content)}


def merge(base: Context, delta: Context) -> Merged | ContextRefused:
    """Shallow: each key of `delta` replaces the one of `base`; null removes it."""
    for key in delta:
        if RESERVED.fullmatch(key):
            return ContextRefused(f"/context/{canonical.escape(key)}", "this key is reserved")
    context = {**base, **delta}
    context = {key: value for key, value in context.items() if value is not None}
    try:
        content = canonical.encode(dict(context))
    except NotCanonical as refused:
        return ContextRefused(f"/context{refused.pointer}", refused.reason)
    if len(content) > BYTES_MAX:
        return ContextRefused(
            "/context", f"it would have {len(content)} bytes; a run keeps {BYTES_MAX}"
        )
    changed = sorted(key for key in delta if base.get(key) != delta[key])
    return Merged(context, content, tuple(changed))


def initial(goal: str, given: Context) -> Merged | ContextRefused:
    merged = merge({}, given)
    if isinstance(merged, ContextRefused):
        return merged
    context = {**merged.context, "goal": goal}
    return Merged(context, canonical.encode(context), ("goal", *merged.changed))


def unfit(context: Context, schema: str | None) -> ContextRefused | None:
    """Where the context is not what the workflow says it is."""
    if schema is None:
        return None
    wrong = schemas.errors(msgspec.json.decode(schema), dict(context))
    return ContextRefused(f"/context{wrong[0].pointer}", wrong[0].message) if wrong else None


def decode(content: bytes) -> Context:
    return msgspec.json.decode(content, type=dict[str, Json])
