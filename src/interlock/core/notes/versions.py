"""The version of a note: it identifies the text, for a caller who replaces some of it."""

import hashlib

VERSION_CHARS = 12


def version_of(digest: str) -> str:
    return digest[:VERSION_CHARS]


def version_matches(version: str, digest: str) -> bool:
    """Whether `version`, as the caller has it, identifies the text with this digest."""
    return len(version) >= VERSION_CHARS and digest.startswith(version.casefold())


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
