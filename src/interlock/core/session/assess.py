"""Assessments that a step asks for: the levels that the agent chose, and their consequences."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.session.artifacts import SubmittedArtifact
from interlock.core.session.blockers import Blocker
from interlock.core.workflow.compiled_workflow import CompiledStep
from interlock.core.workflow.packs import kind_without_prefix
from interlock.core.workflow.passthrough import Assessment


class AssessmentResult(msgspec.Struct, frozen=True):
    assessment: str
    levels: dict[str, str]
    """The level of each dimension, in the author's spelling."""


def assess(
    step: CompiledStep, artifacts: tuple[SubmittedArtifact, ...]
) -> tuple[tuple[AssessmentResult, ...], tuple[Blocker, ...]]:
    """Return the assessments, and blockers for what is missing, wrong or has a consequence."""
    results: list[AssessmentResult] = []
    blockers: list[Blocker] = []
    for assessment in step.assessments:
        index = _artifact_index(assessment, artifacts, is_only=len(step.assessments) == 1)
        if index is None:
            blockers.append(_missing_assessment(assessment))
            continue
        levels, level_blockers = _parse_levels(
            assessment, artifacts[index].value, f"/output/artifacts/{index}"
        )
        blockers += level_blockers
        if not level_blockers:
            results.append(AssessmentResult(assessment.id, levels))
    blockers += _consequence_blockers(step, results)
    return tuple(results), tuple(blockers)


def _artifact_index(
    assessment: Assessment, artifacts: tuple[SubmittedArtifact, ...], *, is_only: bool
) -> int | None:
    """Return the index of an assessment's artifact. One that names none is for the only one."""
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
    dimensions = value.get("dimensions") if isinstance(value, dict) else None
    dimensions = dimensions if isinstance(dimensions, dict) else {}
    levels: dict[str, str] = {}
    blockers: list[Blocker] = []
    for dimension in assessment.dimensions:
        raw_level = dimensions.get(dimension.id)
        raw_level = raw_level.get("level") if isinstance(raw_level, dict) else raw_level
        levels_by_folded_name = {level.casefold(): level for level in dimension.levels}
        level = (
            levels_by_folded_name.get(raw_level.strip().casefold())
            if isinstance(raw_level, str)
            else None
        )
        if level is None:
            raw_text = (
                msgspec.json.encode(raw_level).decode()[:80] if raw_level is not None else "missing"
            )
            blockers.append(
                Blocker(
                    "invalid_output",
                    f"{pointer}/dimensions/{dimension.id}",
                    f"The level of `{dimension.id}` in assessment `{assessment.id}` is {raw_text}",
                    f"It is one of: {', '.join(dimension.levels)}. {dimension.purpose}",
                    about=assessment.id,
                )
            )
        else:
            levels[dimension.id] = level
    return levels, blockers


def _missing_assessment(assessment: Assessment) -> Blocker:
    return Blocker(
        "missing_output",
        "/output/artifacts",
        f"The assessment `{assessment.id}` was not submitted",
        "Add it to `output.artifacts`, in the form that this answer shows.",
        about=assessment.id,
    )


def _consequence_blockers(step: CompiledStep, results: list[AssessmentResult]) -> Iterator[Blocker]:
    for consequence in step.consequences:
        when = consequence.when
        hits = [
            f"`{dimension}` of `{result.assessment}`"
            for result in results
            if when.for_assessment in (None, result.assessment)
            for dimension, level in result.levels.items()
            if level.casefold() == when.any_equals_level.casefold()
        ]
        if hits:
            yield Blocker(
                "assessment_followup_required",
                "/output/artifacts",
                f"{', '.join(hits)} is {when.any_equals_level}",
                consequence.effect.guidance,
                about=when.for_assessment or "",
            )
