"""The version of a note: what names its text, for whoever replaces some of it."""

import hashlib

CHARS = 12


def version_of(digest: str) -> str:
    return digest[:CHARS]


def is_version(version: str, digest: str) -> bool:
    """Whether `version`, as the caller has it, names the text with this digest."""
    return len(version) >= CHARS and digest.startswith(version.casefold())


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
