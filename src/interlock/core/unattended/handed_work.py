"""What unattended work hands on to be delivered: its typed artifacts, not what is said about it."""

from collections.abc import Iterable, Mapping

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow.handoff_artifacts import CodingHandoffArtifact
from interlock.core.workflow.packs import ReviewVerdictArtifact, kind_without_prefix

_KINDS = {"coding_handoff": CodingHandoffArtifact, "review_verdict": ReviewVerdictArtifact}


class HandedWork(msgspec.Struct, frozen=True):
    """The newest submission of each."""

    handoff: CodingHandoffArtifact | None = None
    verdict: ReviewVerdictArtifact | None = None
    notes: str = ""
    missing_places: tuple[str, ...] = ()
    """The files and lines that findings name and that do not exist."""

    def with_output(self, notes: str, artifacts: Iterable[Json]) -> "HandedWork":
        """After one more step. Artifacts that are none, or misshapen, count for nothing."""
        change = msgspec.structs.replace
        handed = change(self, notes=notes or self.notes)
        for value in artifacts:
            match _read_artifact(value):
                case CodingHandoffArtifact() as handoff:
                    handed = change(handed, handoff=handoff)
                case ReviewVerdictArtifact() as verdict:
                    handed = change(handed, verdict=verdict)
                case None:
                    pass
        return handed


def _read_artifact(value: Json) -> CodingHandoffArtifact | ReviewVerdictArtifact | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        return None
    name = kind_without_prefix(kind)
    try:
        return msgspec.convert({**value, "kind": name}, _KINDS[name]) if name in _KINDS else None
    except msgspec.ValidationError:
        return None


def files_by_repository(named: Iterable[str], worktrees: Mapping[str, str]) -> dict[str, list[str]]:
    """The files that a hand-off names, by the names of their repositories; the first has none.

    Those of another repository are named as `api:src/main.py`, or by their whole paths.
    """
    found: dict[str, list[str]] = {name: [] for name in worktrees}
    for text in named:
        name, mark, path = text.strip().partition(":")
        if mark and name in worktrees:
            found[name].append(path)
            continue
        homes = (one for one, place in worktrees.items() if text.strip().startswith(f"{place}/"))
        found[next(homes, "")].append(text)
    return found


def relative_paths(named: Iterable[str], worktree: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files that a hand-off names, from the top of the worktree; and the names that are none.

    What leads out of the worktree, or into git's own directory, is no file of the work.
    """
    paths: dict[str, None] = {}
    unsafe: list[str] = []
    for name in named:
        path = name.strip().removeprefix(f"{worktree}/")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        is_git = any(part.lower().rstrip(". ") == ".git" for part in parts)
        if path.startswith("/") or ".." in parts or is_git or "\0" in name:
            unsafe.append(name)
        elif parts:
            paths["/".join(parts)] = None
    return tuple(paths), tuple(unsafe)
