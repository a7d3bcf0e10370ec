"""What looks like a secret in text that is about to leave the machine."""

import re
from collections.abc import Iterator

import msgspec

_PATTERNS = {
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "AWS access key": re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    "GitHub token": re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,}\b"),
    "API key": re.compile(r"\bsk-[A-Za-z0-9_-]{20,}\b"),
    "Slack token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b"),
    "JSON web token": re.compile(r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "password": re.compile(r"(?i)\b(?:password|passwd|secret|token)\b\s*[:=]\s*['\"]?[^\s'\"]{8,}"),
}


class Suspect(msgspec.Struct, frozen=True):
    where: str
    kind: str
    shown: str
    """Its beginning only."""


def suspects(where: str, text: str) -> Iterator[Suspect]:
    for kind, pattern in _PATTERNS.items():
        for found in pattern.finditer(text):
            yield Suspect(where, kind, found[0][:12] + "…")
