"""Judge what was handed in for a step: what stops the run, and what passes with a gap."""

from collections.abc import Iterator

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.session import artifacts as artifacts_
from interlock.core.session.artifacts import (
    EXAMPLES,
    Artifact,
    CapabilityArtifact,
    DivergenceArtifact,
    GapArtifact,
    GapResolutionArtifact,
    KnownArtifact,
    Severity,
    UserOnlyArtifact,
)
from interlock.core.session.blockers import WRITE_YOUR_NOTES, Blocker
from interlock.core.session.events import GapCategory
from interlock.core.session.head import RunHead
from interlock.core.workflow import criteria
from interlock.core.workflow.compiled import CompiledStep, CompiledWorkflow


class Submission(msgspec.Struct, frozen=True):
    """What an agent hands in for a step."""

    notes: str
    artifacts: tuple[Artifact, ...] = ()


class Left(msgspec.Struct, frozen=True):
    """Something left undone with the run going on."""

    category: GapCategory
    severity: Severity
    summary: str
    capability: str = ""
    """Set where the gap is about a capability: recorded once in a run."""


class Judged(msgspec.Struct, frozen=True):
    blockers: tuple[Blocker, ...] = ()
    gaps: tuple[Left, ...] = ()
    observations: tuple[CapabilityArtifact, ...] = ()
    divergences: tuple[DivergenceArtifact, ...] = ()
    resolutions: tuple[GapResolutionArtifact, ...] = ()


class _Reason(msgspec.Struct, frozen=True):
    """Something that is wrong. The preferences say whether it stops the run or becomes a gap."""

    blocker: Blocker
    gap: Left


def judge(
    workflow: CompiledWorkflow, step: CompiledStep, output: Submission, run: RunHead
) -> Judged:
    known, wrong = artifacts_.known(output.artifacts)
    observed = {
        **run.capabilities,
        **{
            found.capability: found.status
            for found in known
            if isinstance(found, CapabilityArtifact)
        },
    }
    reasons = (
        *(_misshapen(found) for found in wrong),
        *_missing_notes(step, output),
        *_unmet_criteria(step, output),
        *_unsettled(step, known, run.preferences),
        *_missing_capabilities(workflow, observed),
    )
    stopping = [found for found in reasons if stops(found.blocker, run.preferences)]
    passing = [found.gap for found in reasons if not stops(found.blocker, run.preferences)]
    gaps = (
        *passing,
        *_settled_without_user(known),
        *_missed_preferences(workflow, observed),
        *(
            Left("reported", gap.severity, gap.summary)
            for gap in known
            if isinstance(gap, GapArtifact)
        ),
    )
    return Judged(
        blockers=tuple(found.blocker for found in stopping),
        gaps=tuple(gap for gap in gaps if gap.capability not in run.capability_gaps),
        observations=tuple(found for found in known if isinstance(found, CapabilityArtifact)),
        divergences=tuple(found for found in known if isinstance(found, DivergenceArtifact)),
        resolutions=tuple(found for found in known if isinstance(found, GapResolutionArtifact)),
    )


def stops(blocker: Blocker, preferences: Preferences) -> bool:
    """Whether it stops the run; otherwise it passes and a gap is recorded."""
    if preferences.autonomy == "full_auto_never_stop":
        return False
    if blocker.code == "capability_unknown":
        return preferences.risk_policy == "conservative"
    if blocker.code == "capability_unavailable":
        return preferences.risk_policy != "aggressive"
    return True


def example_output(step: CompiledStep, blockers: tuple[Blocker, ...]) -> dict[str, Json]:
    """An output of the right shape, to be filled in."""
    shapes: list[Json] = []
    for found in blockers:
        shapes += [shape for shape in _shapes(found) if shape not in shapes]
    if step.user_only and EXAMPLES["user_only"] not in shapes:
        shapes.append(EXAMPLES["user_only"])
    output: dict[str, Json] = {} if step.notes_optional else {"notesMarkdown": WRITE_YOUR_NOTES}
    return {**output, "artifacts": shapes} if shapes else output


def _shapes(blocker: Blocker) -> Iterator[Json]:
    """The artifacts that would do away with a blocker."""
    if blocker.code == "user_only_dependency":
        yield EXAMPLES["user_only"]
    for kind, example in EXAMPLES.items():
        if blocker.code == "invalid_artifact" and f"`{kind}`" in blocker.message:
            yield example
    if blocker.code in ("capability_unknown", "capability_unavailable"):
        observation = EXAMPLES["capability_observation"]
        assert isinstance(observation, dict), "an artifact is an object"
        yield {**observation, "capability": blocker.about}


def _misshapen(wrong: artifacts_.Misshapen) -> _Reason:
    message = f"The artifact of kind `{wrong.kind}` is not of its shape: {wrong.reason}"
    example = msgspec.json.encode(EXAMPLES[wrong.kind]).decode()
    return _Reason(
        Blocker(
            "invalid_artifact",
            f"/output/artifacts/{wrong.index}",
            message,
            f"Send it like this: {example}",
        ),
        Left("output", "critical", message),
    )


def _missing_notes(step: CompiledStep, output: Submission) -> Iterator[_Reason]:
    if not step.notes_optional and not output.notes.strip():
        yield _Reason(
            Blocker(
                "missing_notes",
                "/output/notesMarkdown",
                "The step was handed in without notes",
                "Say in output.notesMarkdown what you did, found and decided.",
            ),
            Left("notes", "warning", f"Step {step.id} was handed in without notes"),
        )


def _unmet_criteria(step: CompiledStep, output: Submission) -> Iterator[_Reason]:
    if step.validation_criteria is None:
        return
    wanted = criteria.unpack(step.validation_criteria.encode())
    values = tuple(artifact.value for artifact in output.artifacts)
    for issue in criteria.check(wanted, notes=output.notes, artifacts=values):
        pointer = "/output/artifacts" if issue.rule == "schema" else "/output/notesMarkdown"
        yield _Reason(
            Blocker("invalid_output", pointer, issue.message, issue.suggestion),
            Left("output", "critical", f"Step {step.id}: {issue.message}"),
        )


def _unsettled(
    step: CompiledStep, known: list[KnownArtifact], preferences: Preferences
) -> Iterator[_Reason]:
    if step.user_only is None:
        return
    settled = [found for found in known if isinstance(found, UserOnlyArtifact)]
    answers = {found.resolution for found in settled}
    is_enough = answers if preferences.autonomy == "full_auto_never_stop" else "answered" in answers
    if not is_enough:
        yield _Reason(
            Blocker(
                "user_only_dependency",
                "/output/artifacts",
                f"Only the user can settle this ({step.user_only.reason}):"
                f" {step.user_only.question}",
                "Ask the user, wait, and hand in the answer as an artifact of kind user_only"
                " with resolution answered.",
            ),
            Left("user_only", "critical", f"Nobody settled: {step.user_only.question}"),
        )


def _settled_without_user(known: list[KnownArtifact]) -> Iterator[Left]:
    for found in known:
        if isinstance(found, UserOnlyArtifact) and found.resolution != "answered":
            summary = f"{found.resolution.capitalize()} without the user: {found.detail}"
            yield Left("user_only", "warning", summary)


def _missing_capabilities(
    workflow: CompiledWorkflow, observed: dict[str, str]
) -> Iterator[_Reason]:
    for name, level in workflow.capabilities.items():
        status = observed.get(name, "unknown")
        if level != "required" or status == "available":
            continue
        is_unknown = status == "unknown"
        message = f"This workflow requires {name}, which is {status}"
        yield _Reason(
            Blocker(
                "capability_unknown" if is_unknown else "capability_unavailable",
                "/output/artifacts",
                message,
                "Try it and hand in an artifact of kind capability_observation."
                if is_unknown
                else "Ask the user to make it available, then hand in a new observation.",
                about=name,
            ),
            Left("capability", "warning", message, capability=name),
        )


def _missed_preferences(workflow: CompiledWorkflow, observed: dict[str, str]) -> Iterator[Left]:
    for name, level in workflow.capabilities.items():
        if level == "preferred" and observed.get(name) == "unavailable":
            summary = f"This workflow prefers {name}, which is unavailable"
            yield Left("capability", "info", summary, capability=name)
