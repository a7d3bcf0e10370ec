"""The demos of unattended work, as a newcomer runs them."""

import os
import subprocess
import sys
from pathlib import Path


def play(option: str, directory: Path) -> list[str]:
    environment = os.environ | {"INTERLOCK_HOME": str(directory / "home"), "TMPDIR": str(directory)}
    played = subprocess.run(
        [sys.executable, "-m", "interlock", "demo", option],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert played.returncode == 0, played.stderr
    assert not (directory / "home").exists(), "the user's own data home is not touched"
    return played.stdout.splitlines()


def require_in_order(told: list[str], in_order: list[str]) -> None:
    places = [
        next(n for n, line in enumerate(told) if line.startswith(begin)) for begin in in_order
    ]
    assert places == sorted(places)


def test_the_demo_changes_proves_and_commits_although_it_is_killed(tmp_path: Path) -> None:
    in_order = [
        "# Step 1: Find the cause",
        "kill -9",
        "tool:   Interrupted: the driver stopped",
        "tool:   ok [exit code 0]",
        "# Step 4: Say what was done",
        "Done: One character in greet.sh",
        "On the branch interlock/make-the-test-pass-",
        " greet.sh | 2 +-",
    ]
    require_in_order(play("--driver", tmp_path), in_order)


def test_a_merge_request_is_reviewed_and_commented_on_once(tmp_path: Path) -> None:
    told = play("--review", tmp_path)

    require_in_order(
        told,
        [
            "  ordered  ses_",
            "  duplicate  ses_",
            "# Step 1: Freeze the facts",
            "# Step 5: Give the verdict",
            "On merge request !7 there is one comment now:",
            "  | **Review: blocking**",
            "  | - **critical**, must be fixed, `greet.sh:3`",
            "  | <!-- interlock:ses_",
        ],
    )
