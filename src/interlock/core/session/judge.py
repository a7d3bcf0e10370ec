"""Judge the output of a step: which shortcomings stop the run, and which pass with a gap.

`judge` compares one output with what its step, its loops and its workflow ask for. Each thing that
is wrong becomes a `Shortcoming`, which holds both a blocker and a gap; the run's preferences say
which of the two counts (`stops_run`). With a blocker the step is not accepted; with a gap the run
goes on, and the gap says what was left undone. Further gaps never stop a run: questions settled
without the user, preferred capabilities that are missing, and gaps that the agent reports itself.

A gap about a capability is recorded once in a run. The observations, divergences, resolutions,
assessments and loop decisions of the output are handed on unchanged; `decide` says which of them
count. Nothing is read or written here.
"""

from collections.abc import Iterator, Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.preferences import Preferences
from interlock.core.session import artifacts as artifacts_
from interlock.core.session import assess
from interlock.core.session.artifacts import SubmittedArtifact
from interlock.core.session.assess import AssessmentResult
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import EvidenceRecorded
from interlock.core.session.evidence import CommandRecord
from interlock.core.session.run_head import RunHead
from interlock.core.session.shortcomings import NewGap, Shortcoming
from interlock.core.session.verification import verify
from interlock.core.workflow import contracts, criteria, positions
from interlock.core.workflow.compiled_workflow import CompiledStep, CompiledWorkflow
from interlock.core.workflow.packs import (
    EXAMPLES,
    CapabilityArtifact,
    DivergenceArtifact,
    GapArtifact,
    GapResolutionArtifact,
    KnownArtifact,
    LoopControlArtifact,
    UserOnlyArtifact,
)
from interlock.core.workflow.positions import EnclosingLoop, Position


class StepOutput(msgspec.Struct, frozen=True):
    """The output that an agent submits for a step."""

    notes: str
    artifacts: tuple[SubmittedArtifact, ...] = ()


class Judgement(msgspec.Struct, frozen=True):
    blockers: tuple[Blocker, ...] = ()
    gaps: tuple[NewGap, ...] = ()
    observations: tuple[CapabilityArtifact, ...] = ()
    divergences: tuple[DivergenceArtifact, ...] = ()
    resolutions: tuple[GapResolutionArtifact, ...] = ()
    assessments: tuple[AssessmentResult, ...] = ()
    evidence: tuple[EvidenceRecorded, ...] = ()
    controls: tuple[LoopControlArtifact, ...] = ()
    """The agent's decisions whether the loops around the step go on."""
    warnings: tuple[str, ...] = ()


class CurrentStep(msgspec.Struct, frozen=True):
    """The step that an output was submitted for, and its surroundings."""

    workflow: CompiledWorkflow
    position: Position
    step: CompiledStep
    scope: Mapping[str, Json]
    """The values that its conditions see."""
    commands: CommandRecord = CommandRecord()
    """The commands that were seen, if they matter here."""

    @property
    def loops(self) -> tuple[EnclosingLoop, ...]:
        return positions.enclosing_loops(self.workflow, self.position)


def judge(current: CurrentStep, output: StepOutput, run: RunHead) -> Judgement:
    step, workflow = current.step, current.workflow
    known_artifacts, misshapen = artifacts_.known_artifacts(output.artifacts)
    evidence, doubts = verify(current.step, current.scope, current.commands, output.artifacts)
    # An observed command need not be submitted.
    breaches, warnings = ((), ()) if evidence else _contract_breaches(step, output)
    assessments, assessment_blockers = assess.assess(step, output.artifacts)
    contract_kind = step.contract.name if step.contract else ""
    controls = [
        artifact for artifact in known_artifacts if isinstance(artifact, LoopControlArtifact)
    ]
    observed = {
        **run.capabilities,
        **{
            artifact.capability: artifact.status
            for artifact in known_artifacts
            if isinstance(artifact, CapabilityArtifact)
        },
    }
    shortcomings = (
        *(
            _misshapen_artifact(artifact, is_shown=_is_in_example(artifact.kind, current, run))
            for artifact in misshapen
            if artifact.kind not in (contract_kind, "assessment")
        ),
        *_missing_notes(step, output),
        *_unmet_criteria(current, output),
        *(doubts or breaches),
        *(_assessment_shortcoming(step, blocker) for blocker in assessment_blockers),
        *_misdirected_loop_controls(current, controls),
        *_unanswered_user_question(step, known_artifacts, run.preferences),
        *_missing_capabilities(workflow, observed),
    )
    stopping = [
        shortcoming
        for shortcoming in shortcomings
        if stops_run(shortcoming.blocker, run.preferences)
    ]
    passing = [
        shortcoming.gap
        for shortcoming in shortcomings
        if not stops_run(shortcoming.blocker, run.preferences)
    ]
    gaps = (
        *passing,
        *_gaps_settled_without_user(known_artifacts, run.preferences),
        *_missing_preferred_capabilities(workflow, observed),
        *(
            NewGap("reported", artifact.severity, artifact.summary)
            for artifact in known_artifacts
            if isinstance(artifact, GapArtifact)
        ),
    )
    return Judgement(
        blockers=tuple(shortcoming.blocker for shortcoming in stopping),
        gaps=tuple(gap for gap in gaps if gap.subject not in run.single_gaps),
        observations=tuple(
            artifact for artifact in known_artifacts if isinstance(artifact, CapabilityArtifact)
        ),
        divergences=tuple(
            artifact for artifact in known_artifacts if isinstance(artifact, DivergenceArtifact)
        ),
        resolutions=tuple(
            artifact for artifact in known_artifacts if isinstance(artifact, GapResolutionArtifact)
        ),
        assessments=assessments,
        evidence=() if stopping else evidence,
        controls=tuple(controls),
        warnings=(*warnings, *_unused_loop_controls(current, controls)),
    )


def stops_run(blocker: Blocker, preferences: Preferences) -> bool:
    """Whether a blocker stops the run; otherwise the step passes and a gap is recorded."""
    if preferences.autonomy == "full_auto_never_stop":
        return False
    if blocker.code == "capability_unknown":
        return preferences.risk_policy == "conservative"
    if blocker.code == "capability_unavailable":
        return preferences.risk_policy != "aggressive"
    return True


def _is_in_example(kind: str, current: CurrentStep, run: RunHead) -> bool:
    """Whether the example of the step has this kind anyway (`examples.step_example`)."""
    if kind == "capability_observation":
        return bool(current.workflow.capabilities.keys() - run.capabilities.keys())
    return kind == "user_only" and current.step.user_only is not None


def _misshapen_artifact(artifact: artifacts_.MisshapenArtifact, *, is_shown: bool) -> Shortcoming:
    message = f"The artifact of kind `{artifact.kind}` cannot be used: {artifact.reason}"
    form = f"Send it like this: {msgspec.json.encode(EXAMPLES[artifact.kind]).decode()}"
    return Shortcoming(
        Blocker(
            "invalid_artifact",
            f"/output/artifacts/{artifact.index}",
            message,
            "Send it in the form that this answer shows." if is_shown else form,
        ),
        NewGap("output", "critical", message),
    )


def _missing_notes(step: CompiledStep, output: StepOutput) -> Iterator[Shortcoming]:
    if not step.notes_optional and not output.notes.strip():
        yield Shortcoming(
            Blocker(
                "missing_notes",
                "/output/notesMarkdown",
                "The step was submitted without notes",
                "Say in output.notesMarkdown what you did, found and decided.",
            ),
            NewGap("notes", "warning", f"Step {step.id} was submitted without notes"),
        )


def _unmet_criteria(current: CurrentStep, output: StepOutput) -> Iterator[Shortcoming]:
    if current.step.validation_criteria is None:
        return
    criterion = criteria.unpack(current.step.validation_criteria.encode())
    values = tuple(artifact.value for artifact in output.artifacts)
    for issue in criteria.check(
        criterion,
        notes=output.notes,
        artifacts=values,
        context=current.scope,
        is_lenient=current.workflow.is_lenient,
    ):
        pointers_by_rule = {"schema": "/output/artifacts", "condition": "/context"}
        pointer = pointers_by_rule.get(issue.rule, "/output/notesMarkdown")
        yield Shortcoming(
            Blocker("invalid_output", pointer, issue.message, issue.suggestion),
            NewGap("output", "critical", f"Step {current.step.id}: {issue.message}"),
        )


def _contract_breaches(
    step: CompiledStep, output: StepOutput
) -> tuple[tuple[Shortcoming, ...], tuple[str, ...]]:
    """Return the breaches of the step's contract, and warnings about fields that nobody reads."""
    if step.contract is None:
        return (), ()
    values = tuple(artifact.value for artifact in output.artifacts)
    breaches, warnings = contracts.check(step.contract, values)
    shortcomings = tuple(
        Shortcoming(
            Blocker(
                "missing_output" if breach.is_missing else "invalid_output",
                breach.pointer,
                breach.message,
                breach.suggestion,
                about=step.contract.name,
            ),
            NewGap("output", "critical", f"Step {step.id}: {breach.message}"),
        )
        for breach in breaches
        if step.contract.is_required or not breach.is_missing
    )
    return shortcomings, warnings


def _assessment_shortcoming(step: CompiledStep, blocker: Blocker) -> Shortcoming:
    return Shortcoming(
        blocker, NewGap("assessment", "critical", f"Step {step.id}: {blocker.message}")
    )


def _misdirected_loop_controls(
    current: CurrentStep, controls: list[LoopControlArtifact]
) -> Iterator[Shortcoming]:
    """Report decisions about no loop that exists, which would otherwise be lost silently."""
    loops = current.loops
    controlled = [index for index, enclosing in enumerate(loops) if enclosing.loop.is_controlled]
    targets = {positions.targeted_loop_index(loops, control) for control in controls}
    is_owed = current.step.contract and current.step.contract.name == "loop_control"
    if is_owed and controlled and targets and controlled[-1] not in targets and None not in targets:
        name = loops[controlled[-1]].loop.id
        message = f"Nothing was decided about the loop `{name}`, which is the innermost"
        hint = f"Submit a decision for it too, with loopId {name}."
        yield Shortcoming(
            Blocker("missing_output", "/output/artifacts", message, hint, about="loop_control"),
            NewGap("output", "warning", f"Step {current.step.id}: {message}"),
        )
    for control in controls:
        # A loop that does not enclose the step may be one that comes next.
        names = positions.controlled_loop_names(current.workflow)
        if not control.loop_id or control.loop_id in names:
            continue
        message = f"No loop `{control.loop_id}` that you decide about is in this workflow"
        hint = f"Leave `loopId` out, or name one of: {', '.join(names)}." if names else ""
        yield Shortcoming(
            Blocker("invalid_artifact", "/output/artifacts", message, hint, about="loop_control"),
            NewGap("output", "warning", f"Step {current.step.id}: {message}"),
        )


def _unused_loop_controls(
    current: CurrentStep, controls: list[LoopControlArtifact]
) -> Iterator[str]:
    if controls and not positions.controlled_loop_names(current.workflow):
        yield "`loop_control` had no effect: no loop of this workflow is decided by it."


def _unanswered_user_question(
    step: CompiledStep, artifacts: list[KnownArtifact], preferences: Preferences
) -> Iterator[Shortcoming]:
    if step.user_only is None:
        return
    user_artifacts = [artifact for artifact in artifacts if isinstance(artifact, UserOnlyArtifact)]
    resolutions = {artifact.resolution for artifact in user_artifacts}
    is_enough = (
        resolutions if preferences.autonomy == "full_auto_never_stop" else "answered" in resolutions
    )
    if not is_enough:
        yield Shortcoming(
            Blocker(
                "user_only_dependency",
                "/output/artifacts",
                f"Only the user can settle this ({step.user_only.reason}):"
                f" {step.user_only.question}",
                "Add it to `output.artifacts`, in the form that this answer shows.",
            ),
            NewGap("user_only", "critical", f"Nobody settled: {step.user_only.question}"),
        )


def _gaps_settled_without_user(
    artifacts: list[KnownArtifact], preferences: Preferences
) -> Iterator[NewGap]:
    for artifact in artifacts:
        if not isinstance(artifact, UserOnlyArtifact):
            continue
        if artifact.resolution != "answered":
            summary = f"{artifact.resolution.capitalize()} without the user: {artifact.detail}"
            yield NewGap("user_only", "warning", summary)
        elif preferences.autonomy == "full_auto_never_stop":
            summary = (
                f"Nobody is asked in this run, and the agent reports an answer: {artifact.detail}"
            )
            yield NewGap("user_only", "warning", summary)


def _missing_capabilities(
    workflow: CompiledWorkflow, observed: dict[str, str]
) -> Iterator[Shortcoming]:
    for name, level in workflow.capabilities.items():
        status = observed.get(name, "unknown")
        if level != "required" or status == "available":
            continue
        is_unknown = status == "unknown"
        message = f"This workflow requires {name}, which is {status}"
        yield Shortcoming(
            Blocker(
                "capability_unknown" if is_unknown else "capability_unavailable",
                "/output/artifacts",
                message,
                "Try it and submit an artifact of kind capability_observation."
                if is_unknown
                else "Ask the user to make it available, then submit a new observation.",
                about=name,
            ),
            NewGap("capability", "warning", message, subject=name),
        )


def _missing_preferred_capabilities(
    workflow: CompiledWorkflow, observed: dict[str, str]
) -> Iterator[NewGap]:
    for name, level in workflow.capabilities.items():
        if level == "preferred" and observed.get(name) == "unavailable":
            summary = f"This workflow prefers {name}, which is unavailable"
            yield NewGap("capability", "info", summary, subject=name)
