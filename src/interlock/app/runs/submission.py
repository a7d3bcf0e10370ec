"""Parse the arguments of a call into a submission, with the digest that identifies it."""

import msgspec

from interlock.core import canonical
from interlock.core.canonical import CanonicalBytes, Json
from interlock.core.ids import BlobRef
from interlock.core.session import artifacts
from interlock.core.session.context import Context
from interlock.core.session.judge import StepOutput
from interlock.core.session.refusals import InputRefused


class Output(msgspec.Struct, frozen=True, rename="camel"):
    """An agent's unmodified submission for a step."""

    notes_markdown: str | None = None
    artifacts: tuple[Json, ...] | None = None


class _Arguments(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    notes: str
    artifacts: tuple[msgspec.Raw, ...] = ()
    context: msgspec.Raw | None = None


class Submission(msgspec.Struct, frozen=True):
    output: StepOutput
    context: Context | None
    arguments: BlobRef
    """The same for the same output and context, however they were written."""


def parse_submission(
    output: Output | None, context: dict[str, Json] | None
) -> Submission | InputRefused:
    notes = (output and output.notes_markdown) or ""
    submitted = artifacts.parse_artifacts((output and output.artifacts) or ())
    if isinstance(submitted, InputRefused):
        return submitted
    canonical_context: CanonicalBytes | None = None
    if context:
        try:
            canonical_context = canonical.encode(context)
        except canonical.NotCanonical as error:
            return InputRefused(f"/context{error.pointer}", error.reason)
    arguments = canonical.encode(
        _Arguments(
            notes,
            tuple(msgspec.Raw(artifact.content) for artifact in submitted),
            msgspec.Raw(canonical_context) if canonical_context else None,
        )
    )
    return Submission(StepOutput(notes, submitted), context or None, canonical.blob_ref(arguments))
