"""Resolving the references of a workflow: whether a file is there, and a hash of its content."""

import hashlib
from pathlib import Path

from interlock.core.workflow.passthrough import Reference
from interlock.core.workflow.prompt import ResolvedReference

BYTES_MAX = 64 * 1024 * 1024  # no agent reads a larger file


def resolve(
    references: tuple[Reference, ...], *, workspace: Path, package: Path
) -> tuple[ResolvedReference, ...]:
    """Return each reference as it is now. Addresses are left alone: nothing is ever fetched.

    `package` is the directory of the workflow file, for references that go along with it.
    """
    roots = {"workspace": workspace, "package": package}
    return tuple(_resolve_one(reference, roots[reference.resolve_from]) for reference in references)


def _resolve_one(reference: Reference, root: Path) -> ResolvedReference:
    if reference.is_address:
        return ResolvedReference(reference.id)
    try:
        path, root = (root / reference.source).resolve(), root.resolve()
        if not path.is_relative_to(root):
            return ResolvedReference(reference.id, problem="it leads out of the workspace")
        if path.is_dir():
            return ResolvedReference(reference.id)
        if not path.is_file():
            return ResolvedReference(reference.id, problem="it is not there")
        if path.stat().st_size > BYTES_MAX:
            return ResolvedReference(reference.id, problem=f"it has more than {BYTES_MAX} bytes")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL in the name
        # Not the message: it names a path of this machine, and a session may be carried elsewhere.
        reason = (isinstance(error, OSError) and error.strerror) or "its path makes no sense"
        return ResolvedReference(reference.id, problem=f"it cannot be read: {reason}")
    return ResolvedReference(reference.id, f"sha256:{digest}")
