"""Artifacts: structured results beside notes. The engine interprets some kinds."""

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.session.refusals import InputRefused
from interlock.core.workflow.blanks import find_unreplaced
from interlock.core.workflow.contracts import Contract
from interlock.core.workflow.examples import BLANKS
from interlock.core.workflow.lenient_types import value_by_schema
from interlock.core.workflow.packs import (
    EXAMPLES,
    SEVERITY_FORMS,
    KnownArtifact,
    kind_without_prefix,
)

COUNT_MAX = 20
BYTES_MAX = 256 * 1024


class SubmittedArtifact(msgspec.Struct, frozen=True):
    """A submitted artifact: its value and its canonical bytes."""

    kind: str
    value: Json
    content: CanonicalBytes

    @property
    def ref(self) -> BlobRef:
        return canonical.blob_ref(self.content)


class MisshapenArtifact(msgspec.Struct, frozen=True):
    """An artifact of a known kind that is not of its shape."""

    index: int
    kind: str
    reason: str


def parse_artifacts(values: tuple[Json, ...]) -> tuple[SubmittedArtifact, ...] | InputRefused:
    if len(values) > COUNT_MAX:
        return InputRefused("/output/artifacts", f"more than {COUNT_MAX} artifacts")
    artifacts: list[SubmittedArtifact] = []
    for index, value in enumerate(values):
        pointer = f"/output/artifacts/{index}"
        if isinstance(value, str):
            value = value_by_schema(value, {"type": "object"})  # noqa: PLW2901 (sent as the text of one)
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(value, dict) and kind_without_prefix(str(kind)) == "gap":
            word = str(value.get("severity")).casefold()
            value = {**value, "severity": SEVERITY_FORMS[word]} if word in SEVERITY_FORMS else value  # noqa: PLW2901 (the same, in our words)
        try:
            content = canonical.encode(value)
        except NotCanonical as error:
            return InputRefused(pointer + error.pointer, error.reason)
        if len(content) > BYTES_MAX:
            return InputRefused(pointer, f"more than {BYTES_MAX} bytes; put it into a file")
        artifacts.append(SubmittedArtifact(kind if isinstance(kind, str) else "", value, content))
    return tuple(artifacts)


def with_declared_types(
    artifacts: tuple[SubmittedArtifact, ...], contract: Contract
) -> tuple[SubmittedArtifact, ...]:
    """Return the artifacts, those of the contract's kind in the types of its schema."""
    schema = msgspec.json.decode(contract.schema)
    understood: list[SubmittedArtifact] = []
    for artifact in artifacts:
        is_due = kind_without_prefix(artifact.kind) == contract.name
        parsed = (
            parse_artifacts((value_by_schema(artifact.value, schema),)) if is_due else (artifact,)
        )
        understood += (artifact,) if isinstance(parsed, InputRefused) else parsed
    return tuple(understood)


def known_artifacts(
    artifacts: tuple[SubmittedArtifact, ...],
) -> tuple[list[KnownArtifact], list[MisshapenArtifact]]:
    """Return the artifacts of known kinds, and those of a known kind that cannot be read."""
    known: list[KnownArtifact] = []
    misshapen: list[MisshapenArtifact] = []
    for index, artifact in enumerate(artifacts):
        kind = kind_without_prefix(artifact.kind)
        if kind not in EXAMPLES:
            continue
        left = next(find_unreplaced(artifact.value, BLANKS), None)
        if left:
            at, blank = left
            misshapen.append(MisshapenArtifact(index, kind, f"`{at}` still says {blank}"))
            continue
        assert isinstance(artifact.value, dict), "what has a kind is an object"
        try:
            known.append(msgspec.convert({**artifact.value, "kind": kind}, KnownArtifact))
        except msgspec.ValidationError as error:
            misshapen.append(MisshapenArtifact(index, kind, str(error)))
    return known, misshapen
