"""Suspected secrets in a commit: in the lines that it adds, each with its place, or its words."""

import re
from collections.abc import Iterator

from interlock.core.session.secrets import SuspectedSecret, find_secrets, find_suspected_secrets

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def find_secrets_in_commit(message: str, patch: str) -> Iterator[SuspectedSecret]:
    yield from find_secrets_in_patch(patch)
    yield from find_suspected_secrets("the message of the commit", message)


def find_secrets_in_patch(patch: str) -> Iterator[SuspectedSecret]:
    """Look into what is added in each place as a whole: a secret may have several lines."""
    for file, number, lines in added_blocks(patch):
        text = "\n".join(lines)
        for secret in find_secrets(text, file):
            line = number + text.count("\n", 0, secret.start)
            yield SuspectedSecret(f"{file}:{line}", secret.rule, secret.beginning_in(text))


def added_blocks(patch: str) -> Iterator[tuple[str, int, list[str]]]:
    """Return the added lines of a patch without context: file, first line and lines of each hunk.

    Hunks say how many lines they have: what is added may look like any line of a patch itself.
    """
    file, first, removed, added = "", 0, 0, 0
    block: list[str] = []
    for line in patch.split("\n"):
        if removed and line.startswith("-"):
            removed -= 1
        elif added and line.startswith("+"):
            block.append(line[1:])
            added -= 1
            if not added:
                yield file, first, block
                block = []
        elif line.startswith("+++ "):
            file = line[4:].rstrip("\t").strip('"').removeprefix("b/")
        elif found := _HUNK.match(line):
            removed, added = int(found[1] or 1), int(found[3] or 1)
            first = int(found[2])
    if block:  # the patch was cut off
        yield file, first, block
