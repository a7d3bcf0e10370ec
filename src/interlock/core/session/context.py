"""The context of a run: JSON that steps and prompts share, merged key by key."""

from collections.abc import Mapping

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.session.refusals import InputRefused
from interlock.core.workflow import schemas
from interlock.core.workflow.blanks import blanks_in, find_unreplaced
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.examples import known_values
from interlock.core.workflow.lenient_types import values_by_form
from interlock.core.workflow.passthrough import RESERVED_NAME

BYTES_MAX = 256 * 1024
_PATH_MAX = 8  # as deep as a path in a prompt may be

Context = Mapping[str, Json]


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


def merge(base: Context, delta: Context) -> MergedContext | InputRefused:
    """Merge one level deep: each key of `delta` replaces the one of `base`; null removes it."""
    for key in delta:
        if RESERVED_NAME.fullmatch(key):
            return InputRefused(
                f"/context/{canonical.escape_pointer_part(key)}", "this key is reserved"
            )
        if unfilled := _unfilled_path(delta[key], key):
            pointer = canonical.escape_pointer_part(unfilled).replace(".", "/")
            return InputRefused(f"/context/{pointer}", f"it still says `<{unfilled}>`")
    context = {**base, **delta}
    context = {key: value for key, value in context.items() if value is not None}
    try:
        content = canonical.encode(dict(context))
    except NotCanonical as error:
        return InputRefused(f"/context{error.pointer}", error.reason)
    if len(content) > BYTES_MAX:
        return InputRefused(
            "/context", f"it would have {len(content)} bytes; a run keeps {BYTES_MAX}"
        )
    changed = sorted(key for key in delta if base.get(key) != delta[key])
    return MergedContext(context, content, tuple(changed))


def with_declared_types(sent: Context | None, workflow: CompiledWorkflow) -> dict[str, Json] | None:
    """Return the submitted values in the types that the workflow declares."""
    return values_by_form(sent, known_values(workflow)) if sent else None


def initial_context(goal: str, initial: Context) -> MergedContext | InputRefused:
    merged = merge({}, initial)
    if isinstance(merged, InputRefused):
        return merged
    context = {**merged.context, "goal": goal}
    return MergedContext(context, canonical.encode(context), ("goal", *merged.changed))


def _unfilled_path(value: Json, path: str) -> str:
    """Return the path of an unchanged placeholder, or nothing."""
    if value == f"<{path}>":
        return path
    items = value.items() if isinstance(value, dict) and path.count(".") < _PATH_MAX else ()
    unfilled_paths = (_unfilled_path(item, f"{path}.{name}") for name, item in items)
    return next((unfilled for unfilled in unfilled_paths if unfilled), "")


def blank_left(sent: Context, examples: Mapping[str, str]) -> InputRefused | None:
    """Return the first blank of the examples (JSON by key) that was sent back unchanged, if any."""
    for key, example in examples.items():
        for at, blank in find_unreplaced(sent.get(key), blanks_in(msgspec.json.decode(example))):
            pointer = canonical.escape_pointer_part(key)
            return InputRefused(f"/context/{pointer}{at}", f"it still says `{blank}`")
    return None


def schema_violation(context: Context, schema: str | None) -> InputRefused | None:
    """Return the first place where the context violates the workflow's schema, if any."""
    if schema is None:
        return None
    parsed_schema = msgspec.json.decode(schema)
    # The goal is always there; a schema need not know that.
    mentions_goal = "goal" in (parsed_schema.get("properties") or {})
    checked = {key: value for key, value in context.items() if mentions_goal or key != "goal"}
    errors = schemas.errors(parsed_schema, checked)
    return InputRefused(f"/context{errors[0].pointer}", errors[0].message) if errors else None


def decode(content: bytes) -> Context:
    return msgspec.json.decode(content, type=dict[str, Json])
