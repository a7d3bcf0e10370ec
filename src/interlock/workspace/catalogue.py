"""Where workflow files lie: bundled with the package, the user's own, and the project's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow.compiled import Pinned, compile_workflow
from interlock.core.workflow.definition import FILE_BYTES_MAX, Invalid, Problem, Workflow, parse

Origin = Literal["bundled", "user", "project"]
BUNDLED = Path(__file__).parents[1] / "bundled"
FILES_MAX = 500  # in one directory; a catalogue is read by people and agents


class Entry(msgspec.Struct, frozen=True):
    """A workflow that can be started."""

    workflow: Workflow
    pinned: Pinned
    origin: Origin
    path: Path


class Broken(msgspec.Struct, frozen=True):
    """A file that should be a workflow and is not. Listed with its problems, never dropped."""

    path: Path
    origin: Origin
    problems: tuple[Problem, ...]


_Stamp = tuple[int, int, int]


class Catalogue:
    """Reads a file once for as long as it does not change."""

    def __init__(self, user: Path) -> None:
        self._user = user
        self._seen: dict[Path, tuple[_Stamp, Entry | Broken]] = {}

    def entries(self, workspace: Path) -> tuple[list[Entry], list[Broken]]:
        """What can be started in `workspace`, by id, and what is broken there."""
        found: dict[WorkflowId, Entry] = {}
        broken: list[Broken] = []
        for origin, directory in self._directories(workspace):
            for path in _files(directory):
                match self._load(path, origin):
                    case Entry() as entry:
                        found[entry.workflow.id] = entry
                    case Broken() as file:
                        broken.append(file)
        return [found[name] for name in sorted(found)], broken

    def _directories(self, workspace: Path) -> Iterator[tuple[Origin, Path]]:
        # Later ones win: a project may replace what a user brought along.
        yield "bundled", BUNDLED
        yield "user", self._user
        yield "project", workspace / ".interlock" / "workflows"

    def _load(self, path: Path, origin: Origin) -> Entry | Broken:
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._seen.get(path)
            if known and known[0] == stamp:
                return known[1]
            with path.open("rb") as file:
                loaded = _parsed(file.read(FILE_BYTES_MAX + 1), path, origin)
        except OSError as error:
            return Broken(path, origin, (Problem("", f"cannot be read: {error.strerror}"),))
        self._seen[path] = (stamp, loaded)
        return loaded


def _parsed(content: bytes, path: Path, origin: Origin) -> Entry | Broken:
    workflow = parse(content)
    if isinstance(workflow, Invalid):
        return Broken(path, origin, workflow.problems)
    return Entry(workflow, compile_workflow(workflow), origin, path)


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(directory.glob("*.json"))[:FILES_MAX]
