"""Artifacts: what an agent hands in beside its notes. Some kinds mean something to the engine."""

from typing import Annotated, Literal, TypeAlias, get_args

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.workflow.definition import Capability

COUNT_MAX = 20
BYTES_MAX = 256 * 1024

Severity = Literal["info", "warning", "critical"]
DivergenceReason = Literal[
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
]


Words = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class _Known(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """A kind that the engine reads. Fields beyond these are kept and not read."""


class UserOnlyArtifact(_Known, frozen=True, tag="user_only"):
    """How a step that needs the user was settled."""

    resolution: Literal["answered", "assumed", "skipped"]
    detail: Words


class CapabilityArtifact(_Known, frozen=True, tag="capability_observation"):
    capability: Capability
    status: Literal["available", "unavailable"]
    evidence: Words


class DivergenceArtifact(_Known, frozen=True, tag="workflow_divergence"):
    reason: DivergenceReason
    summary: Words


class GapArtifact(_Known, frozen=True, tag="gap"):
    severity: Severity
    summary: Words


class GapResolutionArtifact(_Known, frozen=True, tag="gap_resolution"):
    gap_id: Words
    how: Words


KnownArtifact: TypeAlias = (
    UserOnlyArtifact | CapabilityArtifact | DivergenceArtifact | GapArtifact | GapResolutionArtifact
)
EXAMPLES: dict[str, Json] = {
    "user_only": {
        "kind": "user_only",
        "resolution": "answered",
        "detail": "<what the user said>",
    },
    "capability_observation": {
        "kind": "capability_observation",
        "capability": "web_browsing",
        "status": "available",
        "evidence": "<how you know>",
    },
    "workflow_divergence": {
        "kind": "workflow_divergence",
        "reason": "efficiency_skip",
        "summary": "<what you did instead, and why>",
    },
    "gap": {"kind": "gap", "severity": "warning", "summary": "<what is left undone>"},
    "gap_resolution": {
        "kind": "gap_resolution",
        "gapId": "<gap_…>",
        "how": "<how it was closed>",
    },
}
"""One that is accepted, for each known kind."""


class Artifact(msgspec.Struct, frozen=True):
    """One artifact as it was handed in: what it says, and its canonical bytes."""

    kind: str
    value: Json
    content: CanonicalBytes

    @property
    def ref(self) -> BlobRef:
        return canonical.blob_ref(self.content)


class ArtifactRefused(msgspec.Struct, frozen=True):
    """The artifacts cannot be kept as they were sent. Nothing was written."""

    pointer: str
    reason: str


class Misshapen(msgspec.Struct, frozen=True):
    """An artifact of a known kind that is not of its shape."""

    index: int
    kind: str
    reason: str


def take(values: tuple[Json, ...]) -> tuple[Artifact, ...] | ArtifactRefused:
    if len(values) > COUNT_MAX:
        return ArtifactRefused("/output/artifacts", f"more than {COUNT_MAX} artifacts")
    taken: list[Artifact] = []
    for index, value in enumerate(values):
        here = f"/output/artifacts/{index}"
        try:
            content = canonical.encode(value)
        except NotCanonical as refused:
            return ArtifactRefused(here + refused.pointer, refused.reason)
        if len(content) > BYTES_MAX:
            return ArtifactRefused(here, f"more than {BYTES_MAX} bytes; put it into a file")
        kind = value.get("kind") if isinstance(value, dict) else None
        taken.append(Artifact(kind if isinstance(kind, str) else "", value, content))
    return tuple(taken)


def known(artifacts: tuple[Artifact, ...]) -> tuple[list[KnownArtifact], list[Misshapen]]:
    """What the engine reads of `artifacts`, and what it should be able to read and cannot."""
    found: list[KnownArtifact] = []
    wrong: list[Misshapen] = []
    for index, artifact in enumerate(artifacts):
        if artifact.kind not in EXAMPLES:
            continue
        if left := _left_to_fill(artifact):
            wrong.append(Misshapen(index, artifact.kind, f"it still says {left}"))
            continue
        try:
            found.append(msgspec.convert(artifact.value, KnownArtifact))
        except msgspec.ValidationError as error:
            wrong.append(Misshapen(index, artifact.kind, str(error)))
    return found, wrong


def _left_to_fill(artifact: Artifact) -> str:
    """What stands in the example for the agent's own words and was handed in as it is."""
    example = EXAMPLES[artifact.kind]
    assert isinstance(artifact.value, dict), "what has a kind is an object"
    assert isinstance(example, dict), "so is its example"
    for name, value in artifact.value.items():
        if isinstance(value, str) and value.startswith("<") and value == example.get(name):
            return value
    return ""


assert set(EXAMPLES) == {kind.__struct_config__.tag for kind in get_args(KnownArtifact)}
