"""Hand-offs: the kinds of artifact that one piece of work leaves to the next."""

from __future__ import annotations  # types are evaluated when a pack is first used: 1 ms

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Confidence = Literal["high", "medium", "low"]

ShortText = Annotated[str, Meta(min_length=1, max_length=500)]
Text = Annotated[str, Meta(min_length=1)]
_Line = Annotated[str, Meta(min_length=1, max_length=200)]
_LongLine = Annotated[str, Meta(min_length=1, max_length=300)]
_Lines6 = Annotated[tuple[_Line, ...], Meta(max_length=6)]
_Lines8 = Annotated[tuple[_Line, ...], Meta(max_length=8)]
_Lines10 = Annotated[tuple[_Line, ...], Meta(max_length=10)]
Version = Literal[1] | None


class PackArtifact(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """An artifact with a kind. Each has a pack; its docstring is the pack's purpose, one line."""


class ArtifactPart(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an artifact."""


class RejectedDirection(ArtifactPart, frozen=True):
    direction: _Line
    reason: _LongLine


class CodebaseLocation(ArtifactPart, frozen=True):
    path: _LongLine
    relevance: Annotated[str, Meta(min_length=1, max_length=150)]


class DiscoveryHandoffArtifact(PackArtifact, frozen=True, tag="discovery_handoff"):
    """The direction that discovery chose, for those who shape or build it."""

    selected_direction: Text
    design_doc_path: str
    confidence_band: Confidence
    key_invariants: Annotated[tuple[_Line, ...], Meta(max_length=12)]
    rejected_directions: Annotated[tuple[RejectedDirection, ...], Meta(max_length=5)] | None = None
    implementation_constraints: _Lines8 | None = None
    key_codebase_locations: Annotated[tuple[CodebaseLocation, ...], Meta(max_length=10)] | None = (
        None
    )
    selection_tier: (
        Literal["strong_recommendation", "provisional_recommendation", "insufficient_signal"] | None
    ) = None
    version: Version = None


class ShapingHandoffArtifact(PackArtifact, frozen=True, tag="shaping_handoff"):
    """The shape and the bounds of a piece of work, for those who build it."""

    pitch_path: Text
    selected_shape: _Line
    appetite: Annotated[str, Meta(min_length=1, max_length=100)]
    key_constraints: _Lines8
    rabbit_holes: _Lines6
    out_of_scope: _Lines6
    validation_checklist: _Lines10
    version: Version = None


class CorrectedAssumption(ArtifactPart, frozen=True):
    assumed: _Line
    actual: _Line


class CodingHandoffArtifact(PackArtifact, frozen=True, tag="coding_handoff"):
    """A report of what was built and decided, for those who review it."""

    key_decisions: _Lines8
    known_limitations: _Lines6
    tests_added: _Lines10
    files_changed: Annotated[tuple[_LongLine, ...], Meta(max_length=200)]
    """Only these are delivered. Of another repository of the work: `api:src/main.py`."""
    branch_name: Text | None = None
    corrected_assumptions: Annotated[tuple[CorrectedAssumption, ...], Meta(max_length=6)] | None = (
        None
    )
    version: Version = None


class EvidenceFreshness(ArtifactPart, frozen=True):
    oldest_captured_at: Text
    newest_captured_at: Text


class ShapingConstraints(ArtifactPart, frozen=True):
    team_size: Annotated[int, Meta(ge=1)]
    technical_capabilities: Annotated[tuple[Text, ...], Meta(min_length=1)]
    exclusions: tuple[Text, ...] | None = None


Power = Literal[
    "Counter-Positioning",
    "Switching Costs",
    "Network Economies",
    "Scale Economies",
    "Cornered Resource",
    "Process Power",
    "Branding",
    "None_Imitable",
]


class DefensibilityClaim(ArtifactPart, frozen=True):
    power: Power
    cannibalization: str


class ShapingBrief(ArtifactPart, frozen=True):
    raw_idea: Text
    problem: Text
    baseline: Text
    appetite_hint: Literal["small_batch", "big_batch"]
    no_gos_hints: tuple[str, ...]
    constraints: ShapingConstraints
    evidence_top_k: Annotated[tuple[Text, ...], Meta(max_length=10)]
    defensibility_claim: DefensibilityClaim


class DifferentiationHandoffArtifact(PackArtifact, frozen=True, tag="differentiation_handoff"):
    """A report of what sets a product apart, with the evidence, for those who shape it."""

    evidence_freshness: EvidenceFreshness
    validation_checklist: _Lines10
    shaping_handoff: ShapingBrief
    generated_at: Text | None = None
    schema_version: Text | None = None
    version: Version = None
