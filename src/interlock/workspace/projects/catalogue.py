"""Where workflow files lie: bundled, the user's own, from configured sources, and the project's."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow.compiled import PinnedWorkflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.workspace.projects.settings import Bindings, bindings_for, bindings_in

if TYPE_CHECKING:
    # The compiler costs 20 ms to import; a server that only goes on with runs never needs it.
    from interlock.core.workflow.compile_context import Library
    from interlock.core.workflow.compiler import Compilation
    from interlock.core.workflow.definition import Workflow
    from interlock.core.workflow.parsing import ParsedWorkflow

BUNDLED_DIRECTORY = Path(__file__).parents[2] / "bundled"
FILES_MAX = 500  # in one directory; a catalogue is read by people and agents


class CatalogueLocation(msgspec.Struct, frozen=True):
    """A file in the catalogue, by where it came from."""

    origin: str
    """`bundled`, `user`, `project`, or `source NAME`."""
    path: Path


class CatalogueEntry(msgspec.Struct, frozen=True):
    """A workflow that can be started."""

    workflow: "Workflow"
    pinned: PinnedWorkflow
    place: CatalogueLocation
    warnings: tuple[Problem, ...] = ()
    shadows: tuple[CatalogueLocation, ...] = ()
    """Files with the same id that count less."""


class BrokenEntry(msgspec.Struct, frozen=True):
    """A file that should be a workflow and is not. Listed with its problems, never dropped."""

    place: CatalogueLocation
    problems: tuple[Problem, ...]
    workflow: WorkflowId | None = None
    """Its id, where the file can be read so far."""


_Stamp = tuple[int, int, int]


class Catalogue:
    """Reads a file once, and compiles it once, for as long as nothing changes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._parsed_by_path: dict[Path, tuple[_Stamp, ParsedWorkflow | InvalidWorkflow]] = {}
        self._compiled_by_path: dict[
            Path, tuple[ParsedWorkflow, Library, Compilation | InvalidWorkflow]
        ] = {}

    def entries(
        self, workspace: Path | None, only: WorkflowId | None = None
    ) -> tuple[list[CatalogueEntry], list[BrokenEntry]]:
        """What can be started in `workspace`, by id, and what is broken there.

        Without a workspace, what can be started everywhere.
        With `only`, no other workflow is compiled, as far as that one can be.
        """
        found, broken = self._parsed_files(workspace)
        wanted = [only] if only and only in found else sorted(found)
        routines = _routines_in(found)
        bindings = self._bindings(workspace)
        entries: list[CatalogueEntry] = []
        for name in wanted:
            *shadowed, (place, source) = found[name]
            library = _build_library(routines, name, bindings)
            compiled = self._compile(place.path, source, library)
            if isinstance(compiled, InvalidWorkflow):
                broken.append(BrokenEntry(place, compiled.problems, name))
                continue
            shadows = tuple(other for other, _ in shadowed)
            workflow, pinned = compiled.workflow, compiled.pinned
            entries.append(CatalogueEntry(workflow, pinned, place, compiled.warnings, shadows))
        if only and not entries:
            return self.entries(workspace)  # whoever asked is told what there is instead
        return entries, broken

    def check_file(self, workspace: Path | None, path: Path) -> "Compilation | InvalidWorkflow":
        """A file wherever it lies, as it would be in `workspace`.

        Raises:
            OSError: the file cannot be read.
        """
        source = _parse_file(path)
        if isinstance(source, InvalidWorkflow):
            return source
        return self._compile(path, source, self._library_for(workspace, source))

    def check_content(self, workspace: Path, content: bytes) -> "Compilation | InvalidWorkflow":
        """What would be a file, as it would be in `workspace`."""
        from interlock.core.workflow.compiler import compile_parsed  # noqa: PLC0415 (see above)
        from interlock.core.workflow.parsing import parse_workflow  # noqa: PLC0415

        source = parse_workflow(content)
        if isinstance(source, InvalidWorkflow):
            return source
        return compile_parsed(source, self._library_for(workspace, source))

    def _library_for(self, workspace: Path | None, source: "ParsedWorkflow") -> "Library":
        found, _ = self._parsed_files(workspace)
        bindings = self._bindings(workspace)
        return _build_library(_routines_in(found), source.workflow.id, bindings)

    def _bindings(self, workspace: Path | None) -> list[Bindings]:
        """What the user, and then the project, has put into slots."""
        configs = [self._home / "config.toml"]
        if workspace:
            configs.append(workspace / ".interlock" / "config.toml")
        return [bindings_in(path) for path in configs]

    def _parsed_files(self, workspace: Path | None) -> tuple["_FilesById", list[BrokenEntry]]:
        found: _FilesById = {}
        broken: list[BrokenEntry] = []
        reserved: set[WorkflowId] = set()
        for origin, directory in self._directories(workspace):
            if not origin.startswith("source ") and not os.path.lexists(directory):
                continue  # nobody has to have workflows
            files = _workflow_paths(directory)
            if files is None:
                what = "this directory is not there, or cannot be read"
                broken.append(
                    BrokenEntry(CatalogueLocation(origin, directory), (Problem("json", "", what),))
                )
                continue
            if len(files) > FILES_MAX:
                what = f"more than {FILES_MAX} workflow files lie here; the others are not read"
                broken.append(
                    BrokenEntry(CatalogueLocation(origin, directory), (Problem("size", "", what),))
                )
            for path in files[:FILES_MAX]:
                place, source = CatalogueLocation(origin, path), self._parse_cached(path)
                if not isinstance(source, InvalidWorkflow) and origin != "bundled":
                    source = _refuse_reserved_id(source, reserved)
                if isinstance(source, InvalidWorkflow):
                    broken.append(BrokenEntry(place, source.problems))
                else:
                    found.setdefault(source.workflow.id, []).append((place, source))
            if origin == "bundled":
                reserved |= found.keys()
        return found, broken

    def _directories(self, workspace: Path | None) -> Iterator[tuple[str, Path]]:
        # Later ones win: a project may replace what a user or a source brought along.
        from interlock.workspace.projects import sources  # noqa: PLC0415 (5 ms, for the same reason)

        yield "bundled", BUNDLED_DIRECTORY
        yield "user", self._home / "workflows"
        for name, directory in sources.directories(self._home):
            yield f"source {name}", directory
        if workspace:
            yield "project", workspace / ".interlock" / "workflows"

    def _parse_cached(self, path: Path) -> "ParsedWorkflow | InvalidWorkflow":
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            known = self._parsed_by_path.get(path)
            if known and known[0] == stamp:
                return known[1]
            loaded = _parse_file(path)
        except OSError as error:
            return InvalidWorkflow((Problem("json", "", f"it cannot be read: {error.strerror}"),))
        self._parsed_by_path[path] = (stamp, loaded)
        return loaded

    def _compile(
        self, path: Path, source: "ParsedWorkflow", library: "Library"
    ) -> "Compilation | InvalidWorkflow":
        from interlock.core.workflow.compiler import compile_parsed  # noqa: PLC0415 (see above)

        known = self._compiled_by_path.get(path)
        if known and known[0] is source and known[1] == library:
            return known[2]
        compiled = compile_parsed(source, library)
        self._compiled_by_path[path] = (source, library, compiled)
        return compiled


_FilesById: TypeAlias = "dict[WorkflowId, list[tuple[CatalogueLocation, ParsedWorkflow]]]"
"""Every file by the id it has; the last one of each counts."""


def read_workflow_content(path: Path) -> bytes:
    """What stands in a file, as far as a workflow may be long, and one byte more.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    from interlock.core.workflow.definition import FILE_BYTES_MAX  # noqa: PLC0415 (see above)

    if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would be to wait for somebody
        raise OSError(errno.EINVAL, "this is not a file")
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _parse_file(path: Path) -> "ParsedWorkflow | InvalidWorkflow":
    from interlock.core.workflow.parsing import parse_workflow  # noqa: PLC0415 (see above)

    return parse_workflow(read_workflow_content(path))


def _routines_in(found: "_FilesById") -> "dict[WorkflowId, Workflow]":
    chosen = (candidates[-1][1].workflow for candidates in found.values())
    return {workflow.id: workflow for workflow in chosen if is_routine(workflow)}


def _build_library(
    routines: "dict[WorkflowId, Workflow]", workflow: WorkflowId, bindings: list[Bindings]
) -> "Library":
    from interlock.core.workflow.compile_context import Library  # noqa: PLC0415 (see above)

    bound = {slot: text for file in bindings for slot, text in bindings_for(workflow, file).items()}
    return Library(routines, bound)


def is_routine(workflow: "Workflow") -> bool:
    """WorkRail's routines do not say that they are; their names do."""
    return workflow.kind == "routine" or workflow.id.startswith("wr.routine-")


def _refuse_reserved_id(
    source: "ParsedWorkflow", reserved: set[WorkflowId]
) -> "ParsedWorkflow | InvalidWorkflow":
    name = source.workflow.id
    if name not in reserved and not name.startswith("interlock."):
        return source
    what = f"`{name}` is the id of a workflow that comes with Interlock"
    problem = Problem("reserved", "/id", what, "Give yours another name, like `my.name`.")
    from interlock.core.workflow.parsing import with_locations  # noqa: PLC0415 (see above)

    return InvalidWorkflow(with_locations(source.text, (problem,)))


def _workflow_paths(directory: Path) -> list[Path] | None:
    """The workflow files in a directory; None where it cannot be read."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".json")
    except OSError:
        return None
