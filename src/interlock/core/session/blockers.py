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


WRITE_YOUR_NOTES = "<write your notes>"
"""Stands in examples where the agent's notes belong; handed in as it is, it is refused."""


class Blocker(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    code: Code
    pointer: str
    """Where in the call."""
    message: str
    """What is true."""
    suggestion: str
    """What to send instead."""
    about: str = ""
    """The capability or the context key that is missing."""
