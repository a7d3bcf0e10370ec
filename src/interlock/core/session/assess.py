"""Assessments that a step asks for: what the agent judged, and what follows from it."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.session.artifacts import SubmittedArtifact
from interlock.core.session.blockers import Blocker
from interlock.core.workflow.compiled import CompiledStep
from interlock.core.workflow.packs import kind_without_prefix
from interlock.core.workflow.passthrough import Assessment
from interlock.core.workflow.prompt import assessment_example


class AssessmentResult(msgspec.Struct, frozen=True):
    assessment: str
    levels: dict[str, str]
    """By dimension, in the author's spelling."""


def assess(
    step: CompiledStep, artifacts: tuple[SubmittedArtifact, ...]
) -> tuple[tuple[AssessmentResult, ...], tuple[Blocker, ...]]:
    """What was assessed, and what is missing, wrong or has a consequence."""
    found: list[AssessmentResult] = []
    blockers: list[Blocker] = []
    for wanted in step.assessments:
        index = _artifact_index(wanted, artifacts, is_only=len(step.assessments) == 1)
        if index is None:
            blockers.append(_missing_assessment(wanted, step))
            continue
        levels, wrong = _parse_levels(wanted, artifacts[index].value, f"/output/artifacts/{index}")
        blockers += wrong
        if not wrong:
            found.append(AssessmentResult(wanted.id, levels))
    blockers += _consequence_blockers(step, found)
    return tuple(found), tuple(blockers)


def _artifact_index(
    assessment: Assessment, artifacts: tuple[SubmittedArtifact, ...], *, is_only: bool
) -> int | None:
    """The artifact for an assessment. One that names none is for the only one there is."""
    for index, artifact in enumerate(artifacts):
        if kind_without_prefix(artifact.kind) != "assessment":
            continue
        value = cast("dict[str, Any]", artifact.value)
        if value.get("assessmentId", assessment.id if is_only else None) == assessment.id:
            return index
    return None


def _parse_levels(
    assessment: Assessment, value: Json, pointer: str
) -> tuple[dict[str, str], list[Blocker]]:
    given = value.get("dimensions") if isinstance(value, dict) else None
    given = given if isinstance(given, dict) else {}
    levels: dict[str, str] = {}
    wrong: list[Blocker] = []
    for part in assessment.dimensions:
        said = given.get(part.id)
        said = said.get("level") if isinstance(said, dict) else said
        folded = {level.casefold(): level for level in part.levels}
        level = folded.get(said.strip().casefold()) if isinstance(said, str) else None
        if level is None:
            shown = msgspec.json.encode(said).decode()[:80] if said is not None else "missing"
            wrong.append(
                Blocker(
                    "invalid_output",
                    f"{pointer}/dimensions/{part.id}",
                    f"The level of `{part.id}` in assessment `{assessment.id}` is {shown}",
                    f"It is one of: {', '.join(part.levels)}. {part.purpose}",
                    about=assessment.id,
                )
            )
        else:
            levels[part.id] = level
    return levels, wrong


def _missing_assessment(assessment: Assessment, step: CompiledStep) -> Blocker:
    example = msgspec.json.encode(assessment_example(assessment, step)).decode()
    return Blocker(
        "missing_output",
        "/output/artifacts",
        f"The assessment `{assessment.id}` was not handed in",
        f"Send it as an artifact like this: {example}",
        about=assessment.id,
    )


def _consequence_blockers(step: CompiledStep, found: list[AssessmentResult]) -> Iterator[Blocker]:
    for consequence in step.consequences:
        when = consequence.when
        hit = [
            f"`{dimension}` of `{assessed.assessment}`"
            for assessed in found
            if when.for_assessment in (None, assessed.assessment)
            for dimension, level in assessed.levels.items()
            if level.casefold() == when.any_equals_level.casefold()
        ]
        if hit:
            yield Blocker(
                "assessment_followup_required",
                "/output/artifacts",
                f"{', '.join(hit)} is {when.any_equals_level}",
                consequence.effect.guidance,
                about=when.for_assessment or "",
            )
