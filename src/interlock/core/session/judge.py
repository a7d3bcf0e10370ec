"""Judge what was handed in for a step: what stops the run, and what passes with a gap."""

from collections.abc import Iterator, Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.session import artifacts as artifacts_
from interlock.core.session import assess
from interlock.core.session.artifacts import SubmittedArtifact
from interlock.core.session.assess import AssessmentResult
from interlock.core.session.blockers import NOTES_PLACEHOLDER, Blocker
from interlock.core.session.events import GapCategory
from interlock.core.session.head import RunHead
from interlock.core.workflow import contracts, criteria, interpret
from interlock.core.workflow.compiled import CompiledStep, CompiledWorkflow
from interlock.core.workflow.interpret import EnclosingLoop, Position
from interlock.core.workflow.packs import (
    EXAMPLES,
    CapabilityArtifact,
    DivergenceArtifact,
    GapArtifact,
    GapResolutionArtifact,
    KnownArtifact,
    LoopControlArtifact,
    Severity,
    UserOnlyArtifact,
)
from interlock.core.workflow.prompt import assessment_example


class StepOutput(msgspec.Struct, frozen=True):
    """What an agent hands in for a step."""

    notes: str
    artifacts: tuple[SubmittedArtifact, ...] = ()


class NewGap(msgspec.Struct, frozen=True):
    """Something left undone with the run going on."""

    category: GapCategory
    severity: Severity
    summary: str
    capability: str = ""
    """Set where the gap is about a capability: recorded once in a run."""


class Judgement(msgspec.Struct, frozen=True):
    blockers: tuple[Blocker, ...] = ()
    gaps: tuple[NewGap, ...] = ()
    observations: tuple[CapabilityArtifact, ...] = ()
    divergences: tuple[DivergenceArtifact, ...] = ()
    resolutions: tuple[GapResolutionArtifact, ...] = ()
    assessments: tuple[AssessmentResult, ...] = ()
    controls: tuple[LoopControlArtifact, ...] = ()
    """Whether the loops around the step go on, as the agent has decided."""
    warnings: tuple[str, ...] = ()


class CurrentStep(msgspec.Struct, frozen=True):
    """The step that something was handed in for, and what surrounds it."""

    workflow: CompiledWorkflow
    position: Position
    step: CompiledStep
    scope: Mapping[str, Json]
    """What its conditions see."""

    @property
    def loops(self) -> tuple[EnclosingLoop, ...]:
        return interpret.enclosing_loops(self.workflow, self.position)


class _Shortcoming(msgspec.Struct, frozen=True):
    """Something that is wrong. The preferences say whether it stops the run or becomes a gap."""

    blocker: Blocker
    gap: NewGap


def judge(current: CurrentStep, output: StepOutput, run: RunHead) -> Judgement:
    step, workflow = current.step, current.workflow
    known, wrong = artifacts_.known_artifacts(output.artifacts)
    breaches, warnings = _contract_breaches(step, output)
    found_levels, unassessed = assess.assess(step, output.artifacts)
    covered = step.contract.name if step.contract else ""
    controls = [found for found in known if isinstance(found, LoopControlArtifact)]
    observed = {
        **run.capabilities,
        **{
            found.capability: found.status
            for found in known
            if isinstance(found, CapabilityArtifact)
        },
    }
    reasons = (
        *(
            _misshapen_artifact(found)
            for found in wrong
            if found.kind not in (covered, "assessment")
        ),
        *_missing_notes(step, output),
        *_unmet_criteria(current, output),
        *breaches,
        *(_assessment_shortcoming(step, blocker) for blocker in unassessed),
        *_misdirected_loop_controls(current, controls),
        *_unanswered_user_question(step, known, run.preferences),
        *_missing_capabilities(workflow, observed),
    )
    stopping = [found for found in reasons if stops_run(found.blocker, run.preferences)]
    passing = [found.gap for found in reasons if not stops_run(found.blocker, run.preferences)]
    gaps = (
        *passing,
        *_gaps_settled_without_user(known),
        *_missing_preferred_capabilities(workflow, observed),
        *(
            NewGap("reported", gap.severity, gap.summary)
            for gap in known
            if isinstance(gap, GapArtifact)
        ),
    )
    return Judgement(
        blockers=tuple(found.blocker for found in stopping),
        gaps=tuple(gap for gap in gaps if gap.capability not in run.capability_gaps),
        observations=tuple(found for found in known if isinstance(found, CapabilityArtifact)),
        divergences=tuple(found for found in known if isinstance(found, DivergenceArtifact)),
        resolutions=tuple(found for found in known if isinstance(found, GapResolutionArtifact)),
        assessments=found_levels,
        controls=tuple(controls),
        warnings=warnings,
    )


def stops_run(blocker: Blocker, preferences: Preferences) -> bool:
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
        shapes += [shape for shape in _example_artifacts(found) if shape not in shapes]
    if step.user_only and EXAMPLES["user_only"] not in shapes:
        shapes.append(EXAMPLES["user_only"])
    if step.contract:
        example = msgspec.json.decode(step.contract.example)
        shapes += [example] if example not in shapes else []
    shapes += [assessment_example(found, step) for found in step.assessments]
    output: dict[str, Json] = {} if step.notes_optional else {"notesMarkdown": NOTES_PLACEHOLDER}
    return {**output, "artifacts": shapes} if shapes else output


def _example_artifacts(blocker: Blocker) -> Iterator[Json]:
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


def _misshapen_artifact(wrong: artifacts_.MisshapenArtifact) -> _Shortcoming:
    message = f"The artifact of kind `{wrong.kind}` is not of its shape: {wrong.reason}"
    example = msgspec.json.encode(EXAMPLES[wrong.kind]).decode()
    return _Shortcoming(
        Blocker(
            "invalid_artifact",
            f"/output/artifacts/{wrong.index}",
            message,
            f"Send it like this: {example}",
        ),
        NewGap("output", "critical", message),
    )


def _missing_notes(step: CompiledStep, output: StepOutput) -> Iterator[_Shortcoming]:
    if not step.notes_optional and not output.notes.strip():
        yield _Shortcoming(
            Blocker(
                "missing_notes",
                "/output/notesMarkdown",
                "The step was handed in without notes",
                "Say in output.notesMarkdown what you did, found and decided.",
            ),
            NewGap("notes", "warning", f"Step {step.id} was handed in without notes"),
        )


def _unmet_criteria(current: CurrentStep, output: StepOutput) -> Iterator[_Shortcoming]:
    if current.step.validation_criteria is None:
        return
    wanted = criteria.unpack(current.step.validation_criteria.encode())
    values = tuple(artifact.value for artifact in output.artifacts)
    for issue in criteria.check(
        wanted, notes=output.notes, artifacts=values, context=current.scope
    ):
        places = {"schema": "/output/artifacts", "condition": "/context"}
        pointer = places.get(issue.rule, "/output/notesMarkdown")
        yield _Shortcoming(
            Blocker("invalid_output", pointer, issue.message, issue.suggestion),
            NewGap("output", "critical", f"Step {current.step.id}: {issue.message}"),
        )


def _contract_breaches(
    step: CompiledStep, output: StepOutput
) -> tuple[tuple[_Shortcoming, ...], tuple[str, ...]]:
    """Where the output is not what the step's contract asks for, and what it has too much of."""
    if step.contract is None:
        return (), ()
    values = tuple(artifact.value for artifact in output.artifacts)
    breaches, warnings = contracts.check(step.contract, values)
    reasons = tuple(
        _Shortcoming(
            Blocker(
                "missing_output" if found.is_missing else "invalid_output",
                found.pointer,
                found.message,
                found.suggestion,
                about=step.contract.name,
            ),
            NewGap("output", "critical", f"Step {step.id}: {found.message}"),
        )
        for found in breaches
        if step.contract.is_required or not found.is_missing
    )
    return reasons, warnings


def _assessment_shortcoming(step: CompiledStep, blocker: Blocker) -> _Shortcoming:
    return _Shortcoming(
        blocker, NewGap("assessment", "critical", f"Step {step.id}: {blocker.message}")
    )


def _misdirected_loop_controls(
    current: CurrentStep, controls: list[LoopControlArtifact]
) -> Iterator[_Shortcoming]:
    """A decision about a loop that is not there would be lost in silence."""
    loops = current.loops
    inner = [index for index, found in enumerate(loops) if found.loop.is_controlled]
    meant = {interpret.targeted_loop_index(loops, control) for control in controls}
    owes = current.step.contract and current.step.contract.name == "loop_control"
    if owes and inner and meant and inner[-1] not in meant and None not in meant:
        name = loops[inner[-1]].loop.id
        message = f"Nothing was decided about the loop `{name}`, which is the innermost"
        hint = f"Hand in a decision for it too, with loopId {name}."
        yield _Shortcoming(
            Blocker("missing_output", "/output/artifacts", message, hint, about="loop_control"),
            NewGap("output", "warning", f"Step {current.step.id}: {message}"),
        )
    for control in controls:
        # Where none of that name is around, it may be about a loop that comes next.
        names = interpret.controlled_loop_names(current.workflow)
        if not control.loop_id or control.loop_id in names:
            continue
        message = f"No loop `{control.loop_id}` that you decide about is in this workflow"
        hint = f"Leave `loopId` out, or name one of: {', '.join(names)}." if names else ""
        yield _Shortcoming(
            Blocker("invalid_artifact", "/output/artifacts", message, hint, about="loop_control"),
            NewGap("output", "warning", f"Step {current.step.id}: {message}"),
        )


def _unanswered_user_question(
    step: CompiledStep, known: list[KnownArtifact], preferences: Preferences
) -> Iterator[_Shortcoming]:
    if step.user_only is None:
        return
    settled = [found for found in known if isinstance(found, UserOnlyArtifact)]
    answers = {found.resolution for found in settled}
    is_enough = answers if preferences.autonomy == "full_auto_never_stop" else "answered" in answers
    if not is_enough:
        yield _Shortcoming(
            Blocker(
                "user_only_dependency",
                "/output/artifacts",
                f"Only the user can settle this ({step.user_only.reason}):"
                f" {step.user_only.question}",
                "Ask the user, wait, and hand in the answer as an artifact of kind user_only"
                " with resolution answered.",
            ),
            NewGap("user_only", "critical", f"Nobody settled: {step.user_only.question}"),
        )


def _gaps_settled_without_user(known: list[KnownArtifact]) -> Iterator[NewGap]:
    for found in known:
        if isinstance(found, UserOnlyArtifact) and found.resolution != "answered":
            summary = f"{found.resolution.capitalize()} without the user: {found.detail}"
            yield NewGap("user_only", "warning", summary)


def _missing_capabilities(
    workflow: CompiledWorkflow, observed: dict[str, str]
) -> Iterator[_Shortcoming]:
    for name, level in workflow.capabilities.items():
        status = observed.get(name, "unknown")
        if level != "required" or status == "available":
            continue
        is_unknown = status == "unknown"
        message = f"This workflow requires {name}, which is {status}"
        yield _Shortcoming(
            Blocker(
                "capability_unknown" if is_unknown else "capability_unavailable",
                "/output/artifacts",
                message,
                "Try it and hand in an artifact of kind capability_observation."
                if is_unknown
                else "Ask the user to make it available, then hand in a new observation.",
                about=name,
            ),
            NewGap("capability", "warning", message, capability=name),
        )


def _missing_preferred_capabilities(
    workflow: CompiledWorkflow, observed: dict[str, str]
) -> Iterator[NewGap]:
    for name, level in workflow.capabilities.items():
        if level == "preferred" and observed.get(name) == "unavailable":
            summary = f"This workflow prefers {name}, which is unavailable"
            yield NewGap("capability", "info", summary, capability=name)
