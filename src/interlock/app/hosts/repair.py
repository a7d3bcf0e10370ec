"""Put back what makes the gate work: the project's config, and what was installed in clients."""

from pathlib import Path

from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.registry import host_named
from interlock.app.gate import integrity
from interlock.app.hosts.install import install
from interlock.app.hosts.install_changes import InstallFailed, InstallReport
from interlock.workspace.files import file_replacement
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.machine import install_manifest


def repair(home: Path, directory: Path, program: Program, *, at_ms: int) -> list[Path]:
    """Restore what is different. Returns the files that were written.

    Raises:
        InstallFailed: a file cannot be written.
        SettingsBroken: our own notes cannot be used.
    """
    root = integrity.governed_root(home, directory)
    changed = integrity.differences(home, root)
    for difference in changed:
        if difference.before is not None:
            _write_back(difference.path, difference.before)
    written = [difference.path for difference in changed if difference.before is not None]
    if len(written) < len(changed):
        for known in install_manifest.load(home).installs:
            if not known.skill and (known.scope == "user" or known.root == str(root)):
                scope = "user" if known.scope == "user" else "project"
                report = install(
                    *(home, host_named(known.host), scope, Path(known.root), program), at_ms=at_ms
                )
                written += (
                    [x.path for x in report.changes] if isinstance(report, InstallReport) else []
                )
    return written


def _write_back(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        file_replacement.replace(path, file_replacement.content_of(path), content)
    except (OSError, FileChangedMeanwhile) as error:
        hint = "Put that right, and repeat the command."
        raise InstallFailed(f"`{path}` cannot be written: {error}", hint) from error
