"""Notes while the store cannot be reached: they are files, and their index is on this machine."""

from pathlib import Path

import pytest

from tests.cli.conftest import Terminal
from tests.cli.note_files import put

pytestmark = pytest.mark.sqlite  # each test names the store itself


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_STORE", "postgresql://me:s3cret@127.0.0.1:1/none")


def test_notes_are_written_without_a_session_and_read_and_found(
    typed: Terminal, folder: Path
) -> None:
    put(folder, "Plan.md", "- [decision] Wait for it\n")

    written = typed("note", "write", "Away", "--content", "The server is gone.")
    assert (written.code, written.err) == (0, "")
    text = (folder / "Away.md").read_text()
    assert text.endswith("The server is gone.\n")
    assert "session:" not in text
    for command in (
        ("recent",),
        ("read", "plan"),
        ("search", "server"),
        ("context", "plan"),
        ("graph",),
        ("check",),
        ("edit", "plan", "append", "--content", "more"),
        ("move", "plan", "old/"),
    ):
        said = typed("note", *command)
        assert said.code == 0, said
    version = typed("note", "read", "away").err.rstrip().rpartition(" ")[2]
    assert typed("note", "delete", "away", "--version", version).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("session", "list"),
        ("store", "stats"),
        ("store", "verify"),
        ("store", "copy", "--to", "there"),
        ("keys", "list"),
        ("keys", "rotate"),
        ("approvals", "list"),
        ("gaps", "list"),
        ("run", "unblock", "run_1"),
    ],
    ids=" ".join,
)
def test_what_needs_the_store_says_that_it_is_away(
    typed: Terminal, tmp_path: Path, command: tuple[str, ...]
) -> None:
    said = typed(*command)

    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "error: `postgresql://me@127.0.0.1:1/none` cannot be reached: Connection refused\n\n"
        "hint: Check that PostgreSQL runs there and that the store's URL is right, then repeat the"
        " call.\n"
    )
    assert list(tmp_path.iterdir()) == []
