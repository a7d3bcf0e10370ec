"""The catalogue of workflow files: bundled, the user's, from sources, and the project's.

The directories are read in that order. Of several files with one id the last one counts and shadows
the others, but the ids of bundled workflows are reserved. Files are parsed first, all of them,
because a workflow may call any routine; then each workflow is compiled with the routines and with
what the configs bind to its slots. Both passes are cached by path: parsing until the stamp of the
file changes, compiling until its parse, the routines or the bindings change. A broken file is
listed with its problems, never dropped.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem
from interlock.workspace.files.regular_file import open_regular_file
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
    """A file in the catalogue, with its origin."""

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
    """Files with the same id that it takes precedence over."""


class BrokenEntry(msgspec.Struct, frozen=True):
    """A file that should be a workflow and is not. Listed with its problems, never dropped."""

    place: CatalogueLocation
    problems: tuple[Problem, ...]
    workflow: WorkflowId | None = None
    """Its id, if the file can be parsed so far."""


_Stamp = tuple[int, int, int]


class Catalogue:
    """Parses a file once, and compiles it once, as long as nothing changes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._parsed_by_path: dict[Path, tuple[_Stamp, ParsedWorkflow | InvalidWorkflow]] = {}
        self._compiled_by_path: dict[
            Path, tuple[ParsedWorkflow, Library, Compilation | InvalidWorkflow]
        ] = {}

    def entries(
        self, workspace: Path | None, only: WorkflowId | None = None
    ) -> tuple[list[CatalogueEntry], list[BrokenEntry]]:
        """Return the workflows that can be started in `workspace`, by id, and the broken ones.

        Without a workspace: those that can be started everywhere.
        With `only`, no other workflow is compiled, provided that that one can be.
        """
        files_by_id, broken = self._parsed_files(workspace)
        names = [only] if only and only in files_by_id else sorted(files_by_id)
        routines = _routines_in(files_by_id)
        bindings = self._bindings(workspace)
        entries: list[CatalogueEntry] = []
        for name in names:
            *shadowed, (location, parsed) = files_by_id[name]
            library = _build_library(routines, name, bindings)
            compiled = self._compile(location.path, parsed, library)
            if isinstance(compiled, InvalidWorkflow):
                broken.append(BrokenEntry(location, compiled.problems, name))
                continue
            shadows = tuple(shadowed_location for shadowed_location, _ in shadowed)
            workflow, pinned = compiled.workflow, compiled.pinned
            entries.append(CatalogueEntry(workflow, pinned, location, compiled.warnings, shadows))
        if only and not entries:
            return self.entries(workspace)  # so that the caller can be told what there is instead
        return entries, broken

    def check_file(self, workspace: Path | None, path: Path) -> "Compilation | InvalidWorkflow":
        """Compile a file, wherever it is, as if it and the files beside it were in `workspace`.

        Raises:
            OSError: the file cannot be read.
        """
        parsed, beside = _parse_file(path), path.absolute().parent
        if isinstance(parsed, InvalidWorkflow):
            return self._with_problems_of_meaning(workspace, parsed, beside)
        library = self._library_for(workspace, parsed.workflow.id, beside)
        return self._compile(path, parsed, library)

    def check_content(self, workspace: Path, content: bytes) -> "Compilation | InvalidWorkflow":
        """Compile the content of a file as if it were in `workspace`."""
        from interlock.core.workflow.compiler import compile_parsed  # noqa: PLC0415 (see above)
        from interlock.core.workflow.parsing import parse_workflow  # noqa: PLC0415

        parsed = parse_workflow(content)
        if isinstance(parsed, InvalidWorkflow):
            return self._with_problems_of_meaning(workspace, parsed)
        return compile_parsed(parsed, self._library_for(workspace, parsed.workflow.id))

    def _with_problems_of_meaning(
        self, workspace: Path | None, refused: InvalidWorkflow, beside: Path | None = None
    ) -> InvalidWorkflow:
        from interlock.core.workflow import compiler  # noqa: PLC0415 (see above)

        library = self._library_for(workspace, WorkflowId(""), beside)
        return compiler.with_problems_of_meaning(refused, library)

    def _library_for(
        self, workspace: Path | None, name: WorkflowId, beside: Path | None = None
    ) -> "Library":
        files_by_id, _ = self._parsed_files(workspace, beside)
        bindings = self._bindings(workspace)
        return _build_library(_routines_in(files_by_id), name, bindings)

    def _bindings(self, workspace: Path | None) -> list[Bindings]:
        """Return what the user, and then the project, has bound to slots."""
        configs = [self._home / "config.toml"]
        if workspace:
            configs.append(workspace / ".interlock" / "config.toml")
        return [bindings_in(path) for path in configs]

    def _parsed_files(
        self, workspace: Path | None, beside: Path | None = None
    ) -> tuple["_FilesById", list[BrokenEntry]]:
        """`beside`: another directory whose files count as the project's."""
        files_by_id: _FilesById = {}
        broken: list[BrokenEntry] = []
        reserved: set[WorkflowId] = set()
        directories = dict(self._directories(workspace))
        if beside and beside not in directories.values():
            directories["beside"] = beside
        for origin, directory in directories.items():
            if not origin.startswith("source ") and not os.path.lexists(directory):
                continue  # having workflows is optional
            files = _workflow_paths(directory)
            if files is None:
                message = "this directory is not there, or cannot be read"
                location = CatalogueLocation(origin, directory)
                broken.append(BrokenEntry(location, (Problem("json", "", message),)))
                continue
            if len(files) > FILES_MAX:
                message = f"more than {FILES_MAX} workflow files lie here; the others are not read"
                location = CatalogueLocation(origin, directory)
                broken.append(BrokenEntry(location, (Problem("size", "", message),)))
            for path in files[:FILES_MAX]:
                location, parsed = CatalogueLocation(origin, path), self._parse_cached(path)
                if not isinstance(parsed, InvalidWorkflow) and origin != "bundled":
                    parsed = _refuse_reserved_id(parsed, reserved)
                if isinstance(parsed, InvalidWorkflow):
                    broken.append(BrokenEntry(location, parsed.problems))
                else:
                    files_by_id.setdefault(parsed.workflow.id, []).append((location, parsed))
            if origin == "bundled":
                reserved |= files_by_id.keys()
        return files_by_id, broken

    def _directories(self, workspace: Path | None) -> Iterator[tuple[str, Path]]:
        # Later ones win: a project may replace a workflow of the user or of a source.
        from interlock.workspace.projects import sources  # noqa: PLC0415 (5 ms, for the same reason)

        yield "bundled", BUNDLED_DIRECTORY
        yield "user", self._home / "workflows"
        for name, directory in sources.directories(self._home):
            yield f"source {name}", directory
        if workspace:
            yield "project", workspace / ".interlock" / "workflows"

    def _parse_cached(self, path: Path) -> "ParsedWorkflow | InvalidWorkflow":
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            cached = self._parsed_by_path.get(path)
            if cached and cached[0] == stamp:
                return cached[1]
            parsed = _parse_file(path)
        except OSError as error:
            return InvalidWorkflow((Problem("json", "", f"it cannot be read: {error.strerror}"),))
        self._parsed_by_path[path] = (stamp, parsed)
        return parsed

    def _compile(
        self, path: Path, parsed: "ParsedWorkflow", library: "Library"
    ) -> "Compilation | InvalidWorkflow":
        from interlock.core.workflow.compiler import compile_parsed  # noqa: PLC0415 (see above)

        cached = self._compiled_by_path.get(path)
        if cached and cached[0] is parsed and cached[1] == library:
            return cached[2]
        compiled = compile_parsed(parsed, library)
        self._compiled_by_path[path] = (parsed, library, compiled)
        return compiled


_FilesById: TypeAlias = "dict[WorkflowId, list[tuple[CatalogueLocation, ParsedWorkflow]]]"
"""Every file by the id in it; of each id the last one counts."""


def read_workflow_content(path: Path) -> bytes:
    """Return the content of a file, up to the length of a workflow and one byte more.

    Raises:
        OSError: it cannot be read, or is not a file.
    """
    from interlock.core.workflow.definition import FILE_BYTES_MAX  # noqa: PLC0415 (see above)

    with open_regular_file(path) as file:
        return file.read(FILE_BYTES_MAX + 1)


def _parse_file(path: Path) -> "ParsedWorkflow | InvalidWorkflow":
    from interlock.core.workflow.parsing import parse_workflow  # noqa: PLC0415 (see above)

    return parse_workflow(read_workflow_content(path))


def _routines_in(files_by_id: "_FilesById") -> "dict[WorkflowId, Workflow]":
    chosen = (candidates[-1][1].workflow for candidates in files_by_id.values())
    return {workflow.id: workflow for workflow in chosen if is_routine(workflow)}


def _build_library(
    routines: "dict[WorkflowId, Workflow]", workflow: WorkflowId, bindings: list[Bindings]
) -> "Library":
    from interlock.core.workflow.compile_context import Library  # noqa: PLC0415 (see above)

    bound = {
        slot: text
        for file_bindings in bindings
        for slot, text in bindings_for(workflow, file_bindings).items()
    }
    return Library(routines, bound)


def is_routine(workflow: "Workflow") -> bool:
    return workflow.kind == "routine"


def _refuse_reserved_id(
    parsed: "ParsedWorkflow", reserved: set[WorkflowId]
) -> "ParsedWorkflow | InvalidWorkflow":
    name = parsed.workflow.id
    if name not in reserved and not name.startswith("interlock."):
        return parsed
    message = f"`{name}` is the id of a workflow that comes with Interlock"
    problem = Problem("reserved", "/id", message, "Give yours another name, like `my.name`.")
    from interlock.core.workflow.parsing import with_locations  # noqa: PLC0415 (see above)

    return InvalidWorkflow(with_locations(parsed.text, (problem,)))


def _workflow_paths(directory: Path) -> list[Path] | None:
    """Return the workflow files in a directory; None if it cannot be read."""
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".json")
    except OSError:
        return None
