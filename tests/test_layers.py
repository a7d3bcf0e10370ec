"""The import contracts, seen to fail when they are broken."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BREACHES = {
    "Surfaces, use cases, adapters, core": ("core/ids.py", "import interlock.app.context"),
    "Inside the core": ("core/ids.py", "import interlock.core.tokens"),
    "The core does no I/O and has no clock and no chance": ("core/ids.py", "import os"),
    "Surfaces reach the adapters only through app": (
        "mcp/stdio.py",
        "import interlock.store.keyring",
    ),
    "Inside the use cases": ("app/runs/start.py", "import interlock.app.notes.write"),
    "Inside the workspace": ("workspace/files/json_patch.py", "import interlock.workspace.git"),
    "No cycles between siblings": ("app/runs/submission.py", "import interlock.app.runs.advance"),
}


def lint(tree: Path) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=tree,
        env={"PYTHONPATH": str(tree / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_each_breach_and_a_package_that_belongs_nowhere_are_seen(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for where, line in BREACHES.values():
        with (tmp_path / "src" / "interlock" / where).open("a") as module:
            module.write(f"\n{line}\n")

    said = lint(tmp_path)

    assert [contract for contract in BREACHES if f"{contract} BROKEN" not in said] == []
    package = tmp_path / "src" / "interlock" / "toolbox"
    package.mkdir()
    (package / "__init__.py").write_text('"""No place in the layers."""\n')
    assert "interlock.toolbox" in lint(tmp_path)
