"""Blockers: the reasons why an output was not accepted, and what to send instead."""

from typing import Literal

import msgspec

BlockerCode = Literal[
    "missing_notes",
    "invalid_output",
    "invalid_artifact",
    "missing_output",
    "assessment_followup_required",
    "approval_denied",
    "condition_failed",
    "user_only_dependency",
    "capability_unknown",
    "capability_unavailable",
    "missing_context_key",
    "verification_failed",
    "verification_missing",
]


class Blocker(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    code: BlockerCode
    pointer: str
    """The place in the call, as a JSON pointer."""
    message: str
    """The fact that is in the way."""
    suggestion: str
    """A hint about what to send instead."""
    about: str = ""
    """The capability, context key, contract or assessment that it is about."""
