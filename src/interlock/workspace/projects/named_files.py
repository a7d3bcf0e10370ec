"""Files that others name: the references of a workflow, skills of a project, a hand-off file."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from interlock.core.session.start_evidence import SkillCount
from interlock.core.workflow.passthrough import Reference
from interlock.core.workflow.prompt import ResolvedReference
from interlock.workspace.failures import FileUnreadable
from interlock.workspace.files.bounded_walk import find_files
from interlock.workspace.files.regular_file import read_regular_file

BYTES_MAX = 64 * 1024 * 1024  # no agent reads a larger file


def resolve_references(
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


ENTRIES_MAX = 400  # examined while a session starts


def count_skills(root: Path, folders: Iterable[str]) -> SkillCount:
    """Count the skills in folders of the project."""
    found = find_files(root, folders, entries_max=ENTRIES_MAX)
    names = [Path(path).name for path in found.paths]
    return SkillCount(
        names.count("SKILL.md"),
        sum(name.endswith(".sh") for name in names),
        sum(name.endswith(".ps1") for name in names),
        found.is_complete,
    )


HANDOFF_BYTES_MAX = 4 * 1024 * 1024  # as much as a note may have


def read_handoff(path: Path) -> str:
    """Return the text of a hand-off file from any of its locations.

    Bytes that are not UTF-8 are lone surrogates, as in a note.

    Raises:
        FileUnreadable: it is not there, not a file, too large or not text.
    """
    try:
        content = read_regular_file(path, HANDOFF_BYTES_MAX)
    except (OSError, ValueError) as error:  # a NUL in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileUnreadable(reason[:1].lower() + reason[1:]) from error
    if b"\0" in content:
        raise FileUnreadable("it is not text")
    return content.decode("utf-8", "surrogateescape")
