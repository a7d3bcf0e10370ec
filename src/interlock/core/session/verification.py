"""Whether a step that a command must prove is proven: by what was seen, or by the agent's word."""

from collections.abc import Mapping

from interlock.core.canonical import Json
from interlock.core.session.artifacts import SubmittedArtifact
from interlock.core.session.blockers import Blocker
from interlock.core.session.events import EvidenceRecorded
from interlock.core.session.evidence import CommandRecord, Unproven, bare_command, find_proof
from interlock.core.session.shortcomings import NewGap, Shortcoming
from interlock.core.workflow.compiled_workflow import CompiledStep
from interlock.core.workflow.packs import kind_without_prefix
from interlock.core.workflow.placeholders import fill_placeholders


def verify(
    step: CompiledStep,
    scope: Mapping[str, Json],
    commands_seen: CommandRecord,
    artifacts: tuple[SubmittedArtifact, ...],
) -> tuple[tuple[EvidenceRecorded, ...], tuple[Shortcoming, ...]]:
    """Return the evidence for a step that a command must prove, or the doubts about it."""
    if not step.verification:
        return (), ()
    command = fill_placeholders(step.verification, scope)
    reports = [
        artifact.value
        for artifact in artifacts
        if kind_without_prefix(artifact.kind) == "verification" and isinstance(artifact.value, dict)
    ]
    codes = [code for report in reports if isinstance(code := report.get("exitCode"), int)]
    if any(codes):
        return (), (_failed_verification(step, command, f"it ended with {max(codes, key=abs)}"),)
    found = find_proof(command, commands_seen)
    if not isinstance(found, Unproven):
        return (EvidenceRecorded(step.id, command, "observed", found.at_ms),), ()
    if found.is_failure:
        return (), (_failed_verification(step, command, found.reason),)
    if not found.is_unseen:
        message = f"`{command}` is not proven to have passed: {found.reason}"
        return (), (_doubtful_verification(step, message, f"Run exactly this: {command}"),)
    commands = [str(report.get("command", "")) for report in reports]
    if codes and not any(bare_command(sent) == bare_command(command) for sent in commands):
        message = f"`{commands[0][:200]}` was reported, and `{command}` is what proves this step"
        return (), (_doubtful_verification(step, message, f"Run exactly this: {command}"),)
    return ((EvidenceRecorded(step.id, command, "self_attested", 0),), ()) if codes else ((), ())


def _failed_verification(step: CompiledStep, command: str, reason: str) -> Shortcoming:
    message = f"`{command}` has failed: {reason}"
    hint = "Fix what is wrong, run it again, and submit the step when it passes."
    return Shortcoming(
        Blocker("verification_failed", "/output", message, hint, about=command),
        NewGap("verification", "critical", f"Step {step.id}: {message}"),
    )


def _doubtful_verification(step: CompiledStep, message: str, hint: str) -> Shortcoming:
    return Shortcoming(
        Blocker("verification_missing", "/output", message, hint),
        NewGap("verification", "critical", f"Step {step.id}: {message}"),
    )
