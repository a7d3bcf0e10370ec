"""The hosts that Interlock is installed in for the user: a small file for each in the data home.

A project's hooks and a plugin's, and those that a client finds in the settings of another, are
silent where the user's own ones answer.
"""

from pathlib import Path

DIRECTORY = "hosts"


def is_installed_for_user(home: Path, host: str) -> bool:
    return (home / DIRECTORY / host).exists()


def mark_installed(home: Path, host: str, *, is_installed: bool) -> None:
    """Set or remove the mark.

    Raises:
        OSError: it cannot be written.
    """
    path = home / DIRECTORY / host
    if is_installed:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
    else:
        path.unlink(missing_ok=True)
