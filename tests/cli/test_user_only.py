"""What is the user's: refused to an agent on the command line, and in its shell."""

import runpy
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.cli.commands import interlock
from interlock.core.gate.own_calls import verb_of
from interlock.core.gate.shell import analyse
from interlock.workspace.machine import processes
from tests.cli.conftest import Terminal
from tests.scenes import started

ROOT = Path(__file__).parents[2]
LEAVES = runpy.run_path(str(ROOT / "docs" / "reference" / "generate.py"))["_leaves"]
PATHS: list[tuple[str, ...]] = [path[1:] for path, _ in LEAVES(interlock, ("interlock",))]
ARGUMENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("approvals", "deny"): ("apr_1", "--reason", "no"),
    ("approvals", "grant"): ("apr_1",),
    ("console",): ("--print",),
    ("doctor",): ("claude-code",),
    ("driver", "cancel"): ("--all",),
    ("driver", "deliver"): ("ses_1",),
    ("driver", "limits"): ("ses_1", "--turns", "500"),
    ("driver", "models"): ("openai:gpt", "--try"),
    ("driver", "pause"): ("ses_1",),
    ("driver", "run"): (),
    ("driver", "resume"): ("ses_1",),
    ("driver", "steer"): ("ses_1", "go on"),
    ("gaps", "resolve"): ("ses_1", "gap_1", "somehow"),
    ("gate", "bypass", "add"): ("shell.unknown", "--reason", "because"),
    ("gate", "bypass", "list"): (),
    ("gate", "bypass", "remove"): ("byp_1",),
    ("guard", "install"): (),
    ("guard", "remove"): (),
    ("init",): ("--profile", "light"),
    ("install",): ("claude-code",),
    ("keys", "revoke"): ("1",),
    ("keys", "rotate"): (),
    ("preferences", "set"): ("run_1", "--autonomy", "full_auto_never_stop"),
    ("run", "abandon"): ("run_1",),
    ("run", "unblock"): ("run_1",),
    ("session", "waive"): ("qaValidation", "--reason", "because"),
    ("sources", "add"): ("/nowhere",),
    ("sources", "remove"): ("theirs",),
    ("sources", "sync"): (),
    ("store", "copy"): ("--to", "/nowhere"),
    ("trigger", "run"): ("nightly",),
    ("trigger", "test"): ("nightly",),
    ("trust",): (),
    ("uninstall",): ("claude-code",),
    ("worktrees", "clean"): (),
}
PERSONS = {
    ("approvals", "deny"),
    ("approvals", "grant"),
    ("console",),
    ("driver", "deliver"),
    ("driver", "limits"),
    ("driver", "resume"),
    ("driver", "steer"),
    ("gaps", "resolve"),
    ("gate", "bypass", "add"),
    ("keys", "revoke"),
    ("preferences", "set"),
    ("run", "unblock"),
    ("session", "waive"),
    ("trigger", "run"),
    ("trust",),
}
"""Those that loosen."""
FOR_CLIENTS = {("hook",)}


def verb(*words: str) -> str:
    (command,) = analyse(f"interlock {' '.join(words)}").commands
    return verb_of(command)


def test_the_gate_and_the_command_line_agree_on_what_is_the_users() -> None:
    assert {path for path in PATHS if verb(*path) == "user"} == set(ARGUMENTS) | FOR_CLIENTS


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize("path", ARGUMENTS, ids=" ".join)
def test_an_agent_is_refused_what_is_the_users(
    typed: Terminal,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: tuple[str, ...],
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")

    said = typed(*path, *ARGUMENTS[path])

    assert said.code == 1
    wants = "wants a person" if path in PERSONS else "is the user's"
    assert f"{wants}, and CLAUDECODE is set\n" in said.err
    assert "run it in a terminal" in said.err
    assert list(tmp_path.iterdir()) == []
    assert not home.exists(), "nothing was even looked at"


def test_what_tightens_or_only_changes_things_wants_no_terminal(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "can_open_terminal", lambda: False)

    for words in (
        "init",
        "session start",
        "mode planning",
        "keys rotate",
        "gate bypass list",
        "trust --show",
        "trust --revoke",
        "install claude-code --dry-run",
        "uninstall claude-code",
        "sources sync",
    ):
        assert typed(*words.split()).code == 0, words
    for words in ("preferences set run_1 --autonomy guided", "gate bypass remove byp_1"):
        assert "terminal" not in typed(*words.split()).err, words


def test_an_agent_may_look(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(app, tmp_path)
    monkeypatch.setenv("CLAUDECODE", "1")

    listing = "approvals list, gaps list, keys list, preferences show, gate log, driver status"
    for words in (*listing.split(", "), "worktrees list"):
        assert typed(*words.split()).code == 0, words
        assert verb(*words.split()) == "reads", words


def test_reading_notes_is_known_to_read_and_nothing_else_about_them_is() -> None:
    reading = {("note", verb) for verb in ["read", "search", "context", "recent", "graph", "check"]}
    found = {path: verb(*path) for path in PATHS if path[0] in ("note", "migrate")}

    assert {path for path, kind in found.items() if kind == "reads"} == reading
    assert set(found.values()) == {"reads", "unknown"}
    assert verb("session", "publish") == verb("session", "handoff") == "unknown"


def test_an_agent_changes_the_mode_only_as_the_policy_lets_it(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typed("init").code == typed("session", "start").code == 0
    monkeypatch.setenv("CLAUDECODE", "1")

    assert typed("mode", "planning").code == 0
    refused = typed("mode", "coding", "--task", "T-1")
    assert (refused.code, "The user can type `/mode coding`" in refused.err) == (1, True)
    assert "Switching the gate off wants a person" in typed("mode", "disabled").err
    assert "task -" in typed("mode").out, "nothing was changed"
    monkeypatch.delenv("CLAUDECODE")
    assert typed("mode", "coding").code == 0
    monkeypatch.setenv("CLAUDECODE", "1")
    assert typed("mode", "planning").code == 0
    assert typed("mode", "coding").code == 0, "the user has let it before"
    monkeypatch.delenv("CLAUDECODE")
    assert typed("mode", "planning").code == 0
    monkeypatch.setenv("CLAUDECODE", "1")
    assert typed("mode", "coding").code == 1, "the user has gone back"
    monkeypatch.delenv("CLAUDECODE")
    assert typed("mode", "disabled").code == 0
