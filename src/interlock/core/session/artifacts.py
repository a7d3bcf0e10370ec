"""Artifacts: what an agent hands in beside its notes. Some kinds mean something to the engine."""

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json, NotCanonical
from interlock.core.ids import BlobRef
from interlock.core.workflow.packs import EXAMPLES, KnownArtifact, kind_without_prefix

COUNT_MAX = 20
BYTES_MAX = 256 * 1024


class SubmittedArtifact(msgspec.Struct, frozen=True):
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


class MisshapenArtifact(msgspec.Struct, frozen=True):
    """An artifact of a known kind that is not of its shape."""

    index: int
    kind: str
    reason: str


def parse_artifacts(values: tuple[Json, ...]) -> tuple[SubmittedArtifact, ...] | ArtifactRefused:
    if len(values) > COUNT_MAX:
        return ArtifactRefused("/output/artifacts", f"more than {COUNT_MAX} artifacts")
    taken: list[SubmittedArtifact] = []
    for index, value in enumerate(values):
        here = f"/output/artifacts/{index}"
        try:
            content = canonical.encode(value)
        except NotCanonical as refused:
            return ArtifactRefused(here + refused.pointer, refused.reason)
        if len(content) > BYTES_MAX:
            return ArtifactRefused(here, f"more than {BYTES_MAX} bytes; put it into a file")
        kind = value.get("kind") if isinstance(value, dict) else None
        taken.append(SubmittedArtifact(kind if isinstance(kind, str) else "", value, content))
    return tuple(taken)


def known_artifacts(
    artifacts: tuple[SubmittedArtifact, ...],
) -> tuple[list[KnownArtifact], list[MisshapenArtifact]]:
    """What the engine reads of `artifacts`, and what it should be able to read and cannot."""
    found: list[KnownArtifact] = []
    wrong: list[MisshapenArtifact] = []
    for index, artifact in enumerate(artifacts):
        kind = kind_without_prefix(artifact.kind)
        if kind not in EXAMPLES:
            continue
        if left := _unfilled_placeholder(kind, artifact):
            wrong.append(MisshapenArtifact(index, kind, f"it still says {left}"))
            continue
        assert isinstance(artifact.value, dict), "what has a kind is an object"
        try:
            found.append(msgspec.convert({**artifact.value, "kind": kind}, KnownArtifact))
        except msgspec.ValidationError as error:
            wrong.append(MisshapenArtifact(index, kind, str(error)))
    return found, wrong


def _unfilled_placeholder(kind: str, artifact: SubmittedArtifact) -> str:
    """What stands in the example for the agent's own words and was handed in as it is."""
    example = EXAMPLES[kind]
    assert isinstance(artifact.value, dict), "what has a kind is an object"
    assert isinstance(example, dict), "so is its example"
    for name, value in artifact.value.items():
        if isinstance(value, str) and value.startswith("<") and value == example.get(name):
            return value
    return ""
