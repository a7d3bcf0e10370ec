"""Packs: the kinds of artifact that Interlock knows, each with its schema and an example.

A kind is also taken with `wr.` before it: workflow files from elsewhere tell agents to send that.
Fields beyond those of a kind are kept and not read.
"""

import functools
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

import msgspec

from interlock.core.canonical import Json

Capability = Literal["delegation", "web_browsing"]
Severity = Literal["info", "warning", "critical"]
DivergenceReason = Literal[
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
]
Confidence = Literal["high", "medium", "low"]

Words = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Line = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_LongLine = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
_Lines6 = Annotated[tuple[_Line, ...], msgspec.Meta(max_length=6)]
_Lines8 = Annotated[tuple[_Line, ...], msgspec.Meta(max_length=8)]
_Lines10 = Annotated[tuple[_Line, ...], msgspec.Meta(max_length=10)]
_Version = Literal[1] | None


class _Known(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """What has a kind. Each has a pack, and says in one line what it is for."""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """What stands inside an artifact."""


class UserOnlyArtifact(_Known, frozen=True, tag="user_only"):
    """How a step that needs the user was settled."""

    resolution: Literal["answered", "assumed", "skipped"]
    detail: Words


class CapabilityArtifact(_Known, frozen=True, tag="capability_observation"):
    """Whether the agent has a capability, and how it knows."""

    capability: Capability
    status: Literal["available", "unavailable"]
    evidence: Words


class DivergenceArtifact(_Known, frozen=True, tag="workflow_divergence"):
    """Where the agent left the script, and why."""

    reason: DivergenceReason
    summary: Words


class GapArtifact(_Known, frozen=True, tag="gap"):
    """Something that is knowingly left undone."""

    severity: Severity
    summary: Words


class GapResolutionArtifact(_Known, frozen=True, tag="gap_resolution"):
    """How a gap was closed."""

    gap_id: Words
    how: Words


class LoopControlArtifact(_Known, frozen=True, tag="loop_control"):
    """Whether a loop goes round once more."""

    decision: Literal["continue", "stop"]
    loop_id: _Text | None = None
    reason: _Text | None = None
    metadata: dict[str, Any] | None = None


class Rating(_Part, frozen=True):
    level: _Text
    rationale: Annotated[str, msgspec.Meta(max_length=512)] | None = None


class AssessmentArtifact(_Known, frozen=True, tag="assessment"):
    """A judgement, one level for each dimension."""

    dimensions: Annotated[dict[str, _Text | Rating], msgspec.Meta(min_length=1)]
    assessment_id: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    summary: Annotated[str, msgspec.Meta(max_length=1024)] | None = None


class CoordinatorSignalArtifact(_Known, frozen=True, tag="coordinator_signal"):
    """Word to whoever coordinates this work, in the middle of it."""

    signal_kind: Literal["progress", "finding", "data_needed", "approval_needed", "blocked"]
    payload: dict[str, Any]


class Finding(_Part, frozen=True):
    severity: Literal["critical", "major", "minor", "nit"]
    summary: _Text
    finding_category: (
        Literal["correctness", "security", "architecture", "ux", "performance", "testing", "style"]
        | None
    ) = None


class ReviewVerdictArtifact(_Known, frozen=True, tag="review_verdict"):
    """What a review comes to, with what it found."""

    verdict: Literal["clean", "minor", "blocking"]
    confidence: Confidence
    findings: tuple[
        # Reviewers add files, lines and remedies to their findings, and should.
        Annotated[Finding, msgspec.Meta(extra_json_schema={"additionalProperties": True})], ...
    ]
    summary: _Text


class GateVerdictArtifact(_Known, frozen=True, tag="gate_verdict"):
    """Whether work may go on, decided by one who did not do it."""

    verdict: Literal["approved", "rejected", "uncertain"]
    confidence: Confidence
    rationale: Annotated[str, msgspec.Meta(min_length=20)]
    version: _Version = None


class RejectedDirection(_Part, frozen=True):
    direction: _Line
    reason: _LongLine


class CodebaseLocation(_Part, frozen=True):
    path: _LongLine
    relevance: Annotated[str, msgspec.Meta(min_length=1, max_length=150)]


class DiscoveryHandoffArtifact(_Known, frozen=True, tag="discovery_handoff"):
    """The direction that discovery chose, for those who shape or build it."""

    selected_direction: _Text
    design_doc_path: str
    confidence_band: Confidence
    key_invariants: Annotated[tuple[_Line, ...], msgspec.Meta(max_length=12)]
    rejected_directions: (
        Annotated[tuple[RejectedDirection, ...], msgspec.Meta(max_length=5)] | None
    ) = None
    implementation_constraints: _Lines8 | None = None
    key_codebase_locations: (
        Annotated[tuple[CodebaseLocation, ...], msgspec.Meta(max_length=10)] | None
    ) = None
    selection_tier: (
        Literal["strong_recommendation", "provisional_recommendation", "insufficient_signal"] | None
    ) = None
    version: _Version = None


class ShapingHandoffArtifact(_Known, frozen=True, tag="shaping_handoff"):
    """The shape and the bounds of a piece of work, for those who build it."""

    pitch_path: _Text
    selected_shape: _Line
    appetite: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    key_constraints: _Lines8
    rabbit_holes: _Lines6
    out_of_scope: _Lines6
    validation_checklist: _Lines10
    version: _Version = None


class CorrectedAssumption(_Part, frozen=True):
    assumed: _Line
    actual: _Line


class CodingHandoffArtifact(_Known, frozen=True, tag="coding_handoff"):
    """What was built and decided, for those who review it."""

    key_decisions: _Lines8
    known_limitations: _Lines6
    tests_added: _Lines10
    files_changed: Annotated[tuple[_LongLine, ...], msgspec.Meta(max_length=20)]
    branch_name: _Text | None = None
    corrected_assumptions: (
        Annotated[tuple[CorrectedAssumption, ...], msgspec.Meta(max_length=6)] | None
    ) = None
    version: _Version = None


class EvidenceFreshness(_Part, frozen=True):
    oldest_captured_at: _Text
    newest_captured_at: _Text


class ShapingConstraints(_Part, frozen=True):
    team_size: Annotated[int, msgspec.Meta(ge=1)]
    technical_capabilities: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1)]
    exclusions: tuple[_Text, ...] | None = None


class DefensibilityClaim(_Part, frozen=True):
    power: Literal[
        "Counter-Positioning",
        "Switching Costs",
        "Network Economies",
        "Scale Economies",
        "Cornered Resource",
        "Process Power",
        "Branding",
        "None_Imitable",
    ]
    cannibalization: str


class ShapingBrief(_Part, frozen=True):
    raw_idea: _Text
    problem: _Text
    baseline: _Text
    appetite_hint: Literal["small_batch", "big_batch"]
    no_gos_hints: tuple[str, ...]
    constraints: ShapingConstraints
    evidence_top_k: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=10)]
    defensibility_claim: DefensibilityClaim


class DifferentiationHandoffArtifact(_Known, frozen=True, tag="differentiation_handoff"):
    """What sets a product apart, with the evidence, for those who shape it."""

    evidence_freshness: EvidenceFreshness
    validation_checklist: _Lines10
    shaping_handoff: ShapingBrief
    generated_at: _Text | None = None
    schema_version: _Text | None = None
    version: _Version = None


class VerificationArtifact(_Known, frozen=True, tag="verification"):
    """Proof that a command was run and passed."""

    command: _Text
    exit_code: Literal[0]
    summary: _Text


KnownArtifact: TypeAlias = (
    UserOnlyArtifact
    | CapabilityArtifact
    | DivergenceArtifact
    | GapArtifact
    | GapResolutionArtifact
    | LoopControlArtifact
)
"""What the engine reads of any step."""
_FIELDS: dict[str, dict[str, Json]] = {
    "user_only": {"resolution": "answered", "detail": "<what the user said>"},
    "capability_observation": {
        "capability": "web_browsing",
        "status": "available",
        "evidence": "<how you know>",
    },
    "workflow_divergence": {
        "reason": "efficiency_skip",
        "summary": "<what you did instead, and why>",
    },
    "gap": {"severity": "warning", "summary": "<what is left undone>"},
    "gap_resolution": {"gapId": "<gap_…>", "how": "<how it was closed>"},
    "loop_control": {"decision": "continue", "reason": "<why>"},
    "assessment": {"dimensions": {"<dimension>": {"level": "<level>", "rationale": "<why>"}}},
    "coordinator_signal": {"signalKind": "finding", "payload": {"summary": "<what you found>"}},
    "review_verdict": {
        "verdict": "minor",
        "confidence": "medium",
        "findings": [{"severity": "minor", "summary": "<what is wrong, and where>"}],
        "summary": "<the review in one line>",
    },
    "gate_verdict": {
        "verdict": "uncertain",
        "confidence": "medium",
        "rationale": "<why, with the evidence for it>",
    },
    "discovery_handoff": {
        "selectedDirection": "<the direction, in one sentence>",
        "designDocPath": "<path of the design document>",
        "confidenceBand": "medium",
        "keyInvariants": ["<what must stay true>"],
    },
    "shaping_handoff": {
        "pitchPath": "<path of the pitch>",
        "selectedShape": "<the shape, and why this one>",
        "appetite": "<how much time it is worth>",
        "keyConstraints": ["<what must be kept to>"],
        "rabbitHoles": ["<what looks useful and is not>"],
        "outOfScope": ["<what was ruled out>"],
        "validationChecklist": ["<what a reviewer can check>"],
    },
    "coding_handoff": {
        "keyDecisions": ["<what was decided, and why>"],
        "knownLimitations": ["<what it does not do>"],
        "testsAdded": ["<a test that is new>"],
        "filesChanged": ["<a file that changed>"],
    },
    "differentiation_handoff": {
        "evidenceFreshness": {
            "oldestCapturedAt": "<date of the oldest evidence>",
            "newestCapturedAt": "<date of the newest evidence>",
        },
        "validationChecklist": ["<what can be checked>"],
        "shapingHandoff": {
            "rawIdea": "<the idea>",
            "problem": "<a story of what goes wrong today>",
            "baseline": "<what people do without it>",
            "appetiteHint": "small_batch",
            "noGosHints": ["<what will not be built>"],
            "constraints": {"teamSize": 1, "technicalCapabilities": ["<what the team can do>"]},
            "evidenceTopK": ["<id of a piece of evidence>"],
            "defensibilityClaim": {
                "power": "Counter-Positioning",
                "cannibalization": "<what a copy would cost a rival>",
            },
        },
    },
    "verification": {
        "command": "<the command, as it was run>",
        "exitCode": 0,
        "summary": "<what it showed>",
    },
}
EXAMPLES: dict[str, Json] = {
    kind: {"kind": kind, **_FIELDS[kind]}
    for kind in (known.__struct_config__.tag for known in get_args(KnownArtifact))
}
"""One that is accepted, for each known kind."""


class Pack(msgspec.Struct, frozen=True):
    """A contract that is built in. What stands in <…> in the example is for the agent to write."""

    name: str
    purpose: str
    schema: dict[str, Any]
    example: dict[str, Json]


def names() -> tuple[str, ...]:
    return tuple(_FIELDS)


def pack(name: str) -> Pack | None:
    """The pack of that name. Its schema stands alone: it refers to nothing."""
    return _pack(name) if name in _FIELDS else None


@functools.cache
def _pack(name: str) -> Pack:
    [shape] = [one for one in _Known.__subclasses__() if one.__struct_config__.tag == name]
    generated = msgspec.json.schema(shape)
    schema = _inlined(generated, generated["$defs"])
    schema["properties"]["kind"] = {"enum": [name, f"wr.{name}"]}
    return Pack(name, shape.__doc__ or "", schema, {"kind": name, **_FIELDS[name]})


def plain_kind(kind: str) -> str:
    """A kind as it is called here."""
    return kind.removeprefix("wr.")


def named(ref: str) -> str:
    """The name of a contract, however a file refers to it."""
    return ref.removeprefix("wr.contracts.").removeprefix("interlock.contracts.")


def _inlined(node: Any, defs: dict[str, Any]) -> Any:
    """The schema with what it refers to in place, and without what only people read."""
    if isinstance(node, list):
        return [_inlined(item, defs) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    parts = cast("dict[str, Any]", node)
    plain = {
        key: {name: _inlined(item, defs) for name, item in parts[key].items()}
        if key == "properties"
        else _inlined(parts[key], defs)
        for key in parts
        if key not in ("$ref", "$defs", "title", "description", "default")
    }
    if "$ref" in parts:
        plain = {**_inlined(defs[parts["$ref"].removeprefix("#/$defs/")], defs), **plain}
    match plain.get("anyOf"):
        case [{"enum": options}, {"type": "null"}]:
            return {"enum": [*options, None]}
        case [{"type": str(kind), **rest}, {"type": "null"}]:
            return {"type": [kind, "null"], **rest}
        case _:
            return plain
