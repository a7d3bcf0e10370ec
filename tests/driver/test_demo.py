"""The demo of unattended work, as a newcomer runs it."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_demo_changes_proves_and_commits_although_it_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"INTERLOCK_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    played = subprocess.run(
        [sys.executable, "-m", "interlock", "demo", "--driver"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert played.returncode == 0, played.stderr
    told = played.stdout.splitlines()
    in_order = [
        "# Step 1: Find the cause",
        "kill -9",
        "tool:   Interrupted, effect unknown",
        "tool:   ok [exit code 0]",
        "# Step 4: Say what was done",
        "Done: One character in greet.sh",
        "On the branch interlock/make-the-test-pass-",
        " greet.sh | 2 +-",
    ]
    places = [
        next(n for n, line in enumerate(told) if line.startswith(begin)) for begin in in_order
    ]
    assert places == sorted(places)
    assert not (tmp_path / "home").exists(), "the user's own data home is not touched"
