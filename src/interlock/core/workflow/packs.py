"""Packs: the kinds of artifact that Interlock knows, each with its schema and an example.

A kind is also accepted with the prefix `wr.`: workflow files from elsewhere tell agents to send
that. Fields beyond those of a kind are kept and not read.
"""

from __future__ import annotations  # types are evaluated when a pack is first used: 1 ms

import functools
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import Meta

from interlock.core import canonical
from interlock.core.canonical import Json
from interlock.core.workflow.blanks import choice
from interlock.core.workflow.handoff_artifacts import (
    ArtifactPart,
    Confidence,
    PackArtifact,
    Power,
    ShortText,
    Text,
    Version,
)

Capability = Literal["delegation", "web_browsing"]
Severity = Literal["info", "warning", "critical"]
_SEVERITY_FORMS: dict[Severity, str] = {
    "info": "info low minor trivial note",
    "warning": "warning warn medium moderate",
    "critical": "critical high major severe error blocker blocking",
}
SEVERITY_FORMS = {form: word for word, forms in _SEVERITY_FORMS.items() for form in forms.split()}
"""The severity for each word in which models send one."""
DivergenceReason = Literal[
    "missing_user_context",
    "capability_unavailable",
    "efficiency_skip",
    "safety_stop",
    "policy_constraint",
]


_CONFIDENCE = choice(get_args(Confidence))


class UserOnlyArtifact(PackArtifact, frozen=True, tag="user_only"):
    """How a step that needs the user was settled."""

    resolution: Literal["answered", "assumed", "skipped"]
    detail: ShortText


class CapabilityArtifact(PackArtifact, frozen=True, tag="capability_observation"):
    """Whether the agent has a capability, and how it knows."""

    capability: Capability
    status: Literal["available", "unavailable"]
    evidence: ShortText


class DivergenceArtifact(PackArtifact, frozen=True, tag="workflow_divergence"):
    """Where the agent left the script, and why."""

    reason: DivergenceReason
    summary: ShortText


class GapArtifact(PackArtifact, frozen=True, tag="gap"):
    """Something that is knowingly left undone."""

    severity: Severity
    summary: ShortText


class GapResolutionArtifact(PackArtifact, frozen=True, tag="gap_resolution"):
    """How a gap was closed."""

    gap_id: ShortText
    how: ShortText


class LoopControlArtifact(PackArtifact, frozen=True, tag="loop_control"):
    """Whether a loop goes round once more."""

    decision: Literal["continue", "stop"]
    loop_id: Text | None = None
    reason: Text | None = None
    metadata: dict[str, Any] | None = None


class Rating(ArtifactPart, frozen=True):
    level: Text
    rationale: Annotated[str, Meta(max_length=512)] | None = None


class AssessmentArtifact(PackArtifact, frozen=True, tag="assessment"):
    """A judgement, one level for each dimension."""

    dimensions: Annotated[dict[str, Text | Rating], Meta(min_length=1)]
    assessment_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    summary: Annotated[str, Meta(max_length=1024)] | None = None


class CoordinatorSignalArtifact(PackArtifact, frozen=True, tag="coordinator_signal"):
    """Word to whoever coordinates this work, in the middle of it."""

    signal_kind: Literal["progress", "finding", "data_needed", "approval_needed", "blocked"]
    payload: dict[str, Any]


class ReviewFinding(ArtifactPart, frozen=True):
    severity: Literal["critical", "major", "minor", "nit"]
    summary: Text
    file: Text | None = None
    line: int | None = None
    must_fix: bool | None = None
    """Whether it must be fixed before the change is merged, however small it is."""
    finding_category: (
        Literal["correctness", "security", "architecture", "ux", "performance", "testing", "style"]
        | None
    ) = None

    @property
    def place(self) -> str:
        """The file, with the line if one is named; empty if no file is."""
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.file}{line}" if self.file else ""


class ReviewVerdictArtifact(PackArtifact, frozen=True, tag="review_verdict"):
    """The verdict of a review, with its findings."""

    verdict: Literal["clean", "minor", "blocking"]
    confidence: Confidence
    findings: tuple[
        # Reviewers add files, lines and remedies to their findings, and should.
        Annotated[ReviewFinding, Meta(extra_json_schema={"additionalProperties": True})], ...
    ]
    summary: Text


class GateVerdictArtifact(PackArtifact, frozen=True, tag="gate_verdict"):
    """Whether work may go on, decided by one who did not do it."""

    verdict: Literal["approved", "rejected", "uncertain"]
    confidence: Confidence
    rationale: Annotated[str, Meta(min_length=20)]
    version: Version = None


class VerificationArtifact(PackArtifact, frozen=True, tag="verification"):
    """How a command ended, as the agent saw it."""

    command: Text
    exit_code: int
    summary: Text


KnownArtifact: TypeAlias = (
    UserOnlyArtifact
    | CapabilityArtifact
    | DivergenceArtifact
    | GapArtifact
    | GapResolutionArtifact
    | LoopControlArtifact
)
"""The artifacts that the engine reads from any step."""
_EXAMPLE_FIELDS: dict[str, dict[str, Json]] = {
    "user_only": {
        "resolution": "<answered | assumed | skipped>",
        "detail": "<the user's answer, or what you assumed and why>",
    },
    "capability_observation": {
        "capability": "<delegation | web_browsing>",
        "status": "<available | unavailable>",
        "evidence": "<how you know>",
    },
    "workflow_divergence": {
        "reason": choice(get_args(DivergenceReason)),
        "summary": "<what you did instead, and why>",
    },
    "gap": {"severity": "<info | warning | critical>", "summary": "<what is left undone>"},
    "gap_resolution": {"gapId": "<gap_…>", "how": "<how it was closed>"},
    "loop_control": {"decision": "<continue | stop>", "reason": "<why>"},
    "assessment": {"dimensions": {"<dimension>": {"level": "<level>", "rationale": "<why>"}}},
    "coordinator_signal": {
        "signalKind": "<progress | finding | data_needed | approval_needed | blocked>",
        "payload": {"summary": "<what there is to say>"},
    },
    "review_verdict": {
        "verdict": "<blocking | minor | clean>",
        "confidence": _CONFIDENCE,
        "findings": [
            {
                "severity": "<critical | major | minor | nit>",
                "summary": "<what is wrong>",
                "file": "<path of the file>",
                "line": "<whole number>",
                "mustFix": "<true or false>",
            }
        ],
        "summary": "<the review in one line>",
    },
    "gate_verdict": {
        "verdict": "<approved | rejected | uncertain>",
        "confidence": _CONFIDENCE,
        "rationale": "<why, with the evidence for it, at least 20 characters>",
    },
    "discovery_handoff": {
        "selectedDirection": "<the direction, in one sentence>",
        "designDocPath": "<path of the design document>",
        "confidenceBand": _CONFIDENCE,
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
            "appetiteHint": "<small_batch | big_batch>",
            "noGosHints": ["<what will not be built>"],
            "constraints": {
                "teamSize": "<whole number, at least 1>",
                "technicalCapabilities": ["<what the team can do>"],
            },
            "evidenceTopK": ["<id of a piece of evidence>"],
            "defensibilityClaim": {
                "power": choice(get_args(Power)),
                "cannibalization": "<what a copy would cost a rival>",
            },
        },
    },
    "verification": {
        "command": "<the command, as it was run>",
        "exitCode": "<whole number>",
        "summary": "<what it showed>",
    },
}
EXAMPLES: dict[str, Json] = {
    kind: {"kind": kind, **_EXAMPLE_FIELDS[kind]}
    for kind in (artifact.__struct_config__.tag for artifact in get_args(KnownArtifact))
}
"""The form of each known kind, with blanks for what the agent decides."""


class ContractRule(msgspec.Struct, frozen=True):
    """Two parts of an artifact that cannot both be true."""

    contradiction: str
    """The schema of such an artifact: canonical JSON as text."""
    rule: str
    """What must hold instead, as an instruction."""


_MUST_FIX_FINDING: dict[str, Any] = {
    "anyOf": [
        {"required": ["severity"], "properties": {"severity": {"const": "critical"}}},
        {"required": ["mustFix"], "properties": {"mustFix": {"const": True}}},
    ]
}
_RULES: dict[str, tuple[tuple[dict[str, Any], str], ...]] = {
    "review_verdict": (
        (
            {
                "properties": {
                    "verdict": {"not": {"const": "blocking"}},
                    "findings": {"contains": _MUST_FIX_FINDING},
                }
            },
            "With a finding that is critical or must be fixed, `verdict` is `blocking`.",
        ),
    ),
}


class Pack(msgspec.Struct, frozen=True):
    """A built-in contract. The example has blanks for what the agent decides (`blanks`)."""

    name: str
    purpose: str
    schema: dict[str, Any]
    example: dict[str, Json]
    rules: tuple[ContractRule, ...] = ()


def names() -> tuple[str, ...]:
    return tuple(_EXAMPLE_FIELDS)


def pack(name: str) -> Pack | None:
    """Return the pack of that name, if there is one. Its schema contains no references."""
    return _pack(name) if name in _EXAMPLE_FIELDS else None


@functools.cache
def _pack(name: str) -> Pack:
    [artifact_type] = [
        subclass
        for subclass in PackArtifact.__subclasses__()
        if subclass.__struct_config__.tag == name
    ]
    generated = msgspec.json.schema(artifact_type)
    schema = _inline_refs(generated, generated["$defs"])
    schema["properties"]["kind"] = {"enum": [name, f"wr.{name}"]}
    return Pack(
        name=name,
        purpose=artifact_type.__doc__ or "",
        schema=schema,
        example={"kind": name, **_EXAMPLE_FIELDS[name]},
        rules=tuple(
            ContractRule(canonical.encode(contradiction).decode(), rule)
            for contradiction, rule in _RULES.get(name, ())
        ),
    )


def kind_without_prefix(kind: str) -> str:
    """Return the kind by our name for it."""
    return kind.removeprefix("wr.")


def contract_name(ref: str) -> str:
    """Return the name of a contract, however a file refers to it."""
    return ref.removeprefix("wr.contracts.").removeprefix("interlock.contracts.")


def _inline_refs(node: Any, defs: dict[str, Any]) -> Any:
    """Return the schema with its references expanded, and without annotations."""
    if isinstance(node, list):
        return [_inline_refs(item, defs) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    parts = cast("dict[str, Any]", node)
    inlined = {
        key: {name: _inline_refs(item, defs) for name, item in parts[key].items()}
        if key == "properties"
        else _inline_refs(parts[key], defs)
        for key in parts
        if key not in ("$ref", "$defs", "title", "description", "default")
    }
    if "$ref" in parts:
        inlined = {**_inline_refs(defs[parts["$ref"].removeprefix("#/$defs/")], defs), **inlined}
    match inlined.get("anyOf"):
        case [{"enum": options}, {"type": "null"}]:
            return {"enum": [*options, None]}
        case [{"type": str(kind), **rest}, {"type": "null"}]:
            return {"type": [kind, "null"], **rest}
        case _:
            return inlined
