"""Blockers: why an output was not accepted, where, and what would be."""

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
]


NOTES_PLACEHOLDER = "<write your notes>"
"""Stands in examples where the agent's notes belong; handed in as it is, it is refused."""


class Blocker(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    code: BlockerCode
    pointer: str
    """Where in the call."""
    message: str
    """What is true."""
    suggestion: str
    """What to send instead."""
    about: str = ""
    """The capability, context key, contract or assessment that it is about."""
