"""The context of a run: JSON that steps and prompts share, merged key by key."""

from collections.abc import Mapping
from typing import cast

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.workflow import schemas
from interlock.core.workflow.passthrough import RESERVED_NAME

BYTES_MAX = 256 * 1024
_PATH_MAX = 8  # as deep as a path in a prompt may be

Context = Mapping[str, Json]


class ContextRefused(msgspec.Struct, frozen=True):
    """The context cannot be taken as it was sent. Nothing was written."""

    pointer: str
    reason: str


class MergedContext(msgspec.Struct, frozen=True):
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


def merge(base: Context, delta: Context) -> MergedContext | ContextRefused:
    """Shallow: each key of `delta` replaces the one of `base`; null removes it."""
    for key in delta:
        if RESERVED_NAME.fullmatch(key):
            return ContextRefused(
                f"/context/{canonical.escape_pointer_part(key)}", "this key is reserved"
            )
        if place := _unfilled_path(delta[key], key):
            where = canonical.escape_pointer_part(place).replace(".", "/")
            return ContextRefused(f"/context/{where}", f"it still says `<{place}>`")
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
    return MergedContext(context, content, tuple(changed))


def initial_context(goal: str, given: Context) -> MergedContext | ContextRefused:
    merged = merge({}, given)
    if isinstance(merged, ContextRefused):
        return merged
    context = {**merged.context, "goal": goal}
    return MergedContext(context, canonical.encode(context), ("goal", *merged.changed))


def example_context(current: Context, paths: tuple[str, ...]) -> dict[str, Json]:
    """Context with something for each path to be filled in, beside what is known already."""
    wanted: dict[str, Json] = {}
    for path in paths:
        first, *inner = path.split(".")
        if not inner:
            wanted[first] = f"<{path}>"
            continue
        before = wanted.get(first, current.get(first))
        here: dict[str, Json] = dict(before) if isinstance(before, dict) else {}
        wanted[first] = here
        for name in inner[:-1]:
            below = here.get(name)
            here[name] = dict(below) if isinstance(below, dict) else {}
            here = cast("dict[str, Json]", here[name])
        here[inner[-1]] = f"<{path}>"
    return wanted


def _unfilled_path(value: Json, path: str) -> str:
    """The path at which an example was handed in as it is; or nothing."""
    if value == f"<{path}>":
        return path
    items = value.items() if isinstance(value, dict) and path.count(".") < _PATH_MAX else ()
    found = (_unfilled_path(item, f"{path}.{name}") for name, item in items)
    return next((place for place in found if place), "")


def schema_violation(context: Context, schema: str | None) -> ContextRefused | None:
    """Where the context is not what the workflow says it is."""
    if schema is None:
        return None
    wanted = msgspec.json.decode(schema)
    # The goal is always there; a schema need not know that.
    spoken = "goal" in (wanted.get("properties") or {})
    given = {key: value for key, value in context.items() if spoken or key != "goal"}
    wrong = schemas.errors(wanted, given)
    return ContextRefused(f"/context{wrong[0].pointer}", wrong[0].message) if wrong else None


def decode(content: bytes) -> Context:
    return msgspec.json.decode(content, type=dict[str, Json])
