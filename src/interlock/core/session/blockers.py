"""Blockers: why an output was not accepted, where, and what would be."""

from typing import Literal

import msgspec

Code = Literal[
    "missing_notes",
    "invalid_output",
    "invalid_artifact",
    "user_only_dependency",
    "capability_unknown",
    "capability_unavailable",
    "missing_context_key",
]


class Blocker(msgspec.Struct, frozen=True, rename="camel"):
    code: Code
    pointer: str
    """Where in the call."""
    message: str
    """What is true."""
    suggestion: str
    """What to send instead."""
