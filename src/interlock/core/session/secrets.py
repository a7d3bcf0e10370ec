"""Patterns for suspected secrets in text that is about to leave the machine, or has come to it."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from interlock.core.workflow.patterns import compile_pattern

_PATTERNS = {
    "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "AWS access key": r"\bAKIA[0-9A-Z]{16}\b",
    "GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{30,}\b",
    "API key": r"\bsk-[A-Za-z0-9_-]{20,}\b",
    "Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b",
    "JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "password": r"(?i)\b(?:password|passwd|secret|token)\b\s*[:=]\s*['\"]?[^\s'\"]{8,}",
}


class SuspectedSecret(msgspec.Struct, frozen=True):
    where: str
    kind: str
    shown: str
    """Only its beginning."""


def find_suspected_secrets(where: str, text: str) -> Iterator[SuspectedSecret]:
    for kind, pattern in _compiled_patterns().items():
        for match in pattern.finditer(text):
            yield SuspectedSecret(where, kind, match[0][:12] + "…")


def redact_secrets(text: str) -> str:
    """Return the text without what surely is a secret.

    Assignments that only look like one stay: most are code, which somebody has to read and edit.
    """
    for kind, pattern in _compiled_patterns().items():
        if kind != "password":
            text = pattern.sub(f"[{kind} removed]", text)
    return text


@cache
def _compiled_patterns() -> dict[str, Any]:
    """The patterns for a linear-time engine: the text is untrusted, and may be megabytes."""
    return {kind: compile_pattern(pattern) for kind, pattern in _PATTERNS.items()}
