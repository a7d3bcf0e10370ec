"""Whatever others have written, no command lets it control or deceive the terminal."""

import io
import json
import sys
import unicodedata
from pathlib import Path

import click
import pytest

from interlock.app.context import App
from interlock.app.gate import bypasses
from interlock.cli.commands import interlock
from tests.cli.conftest import Said, Terminal
from tests.cli.note_files import put
from tests.cli.test_user_only import PATHS
from tests.hooks.desk import Desk
from tests.server.stage import Stage

FAKE = "ses_fake  all is well"
HOSTILE = f"Tidy up\n{FAKE}\r\x1b[2J\x9b2K\x7f\u202egnp\u2066\u200e\u061c\u2028\xad\u200b\U000e0041"
FOLDER = "pro\x1b[2J\u202eject\n" + FAKE
UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
PLAYS_NOTHING_FOREIGN = {("demo",), ("sandbox", "run")}
PRINTS_A_DOCUMENT = {("note", "read"), ("session", "handoff")}
STEP = {
    "id": "look",
    "title": HOSTILE,
    "prompt": HOSTILE,
    "requireConfirmation": {"kind": "human_approval", "question": HOSTILE},
}
WORKFLOW = {
    "id": "hostile",
    "name": HOSTILE,
    "description": HOSTILE,
    "about": HOSTILE,
    "version": "1.0.0",
    "steps": [STEP, {"id": "end", "title": HOSTILE, "prompt": HOSTILE}],
}
SHOWN = """approvals list/gaps list/gate bypass list/gate explain/gate log/gate test/init/install
mode/note read/run list/run notes/run show/session export/session get-state/session list
session events/session publish/session show/session start/trust/uninstall/workflow diff
workflow graph/workflow list/workflow preview/workflow show/workflow validate"""
"""The commands in whose output the hostile text is; others show nothing foreign, or words of it."""


class Scene:
    """A project by which somebody wants to deceive its user."""

    def __init__(self, app: App, home: Path, project: Path) -> None:
        project.mkdir()
        desk = Desk(home, project)
        # Without the last: TOML does not write a character outside the BMP as JSON does.
        desk.config(f"[gate]\nreading_tools = [{json.dumps(HOSTILE[:-1])}]\n")
        desk.begin()
        workflows = project / ".interlock" / "workflows"
        put(workflows, "hostile.json", json.dumps(WORKFLOW))
        put(workflows, "broken\x1b\u202e.json", json.dumps({HOSTILE: 1}))
        put(project, "HANDOFF.md", f"# Handoff\n\n## Decisions\n\n- {HOSTILE}\n")
        notes = project / ".interlock" / "notes"
        put(notes, "a.md", f"# A\n\n- [fact] {HOSTILE}\n- needs [[{HOSTILE}]]\n\nheron {HOSTILE}\n")
        put(notes, "b\x1b\u202e.md", HOSTILE)
        desk.tool("Bash", command=HOSTILE)
        stage = Stage(app, project)
        stage.call("session", task=HOSTILE, feature=HOSTILE, workspacePath=str(project))
        begun = stage.start("hostile", HOSTILE)
        gap = {"kind": "gap", "severity": "critical", "summary": HOSTILE}
        waiting = stage.go_on(begun, HOSTILE, artifacts=[gap])
        opened = bypasses.add(home, "shell.unknown", HOSTILE, root=project, days=None, at_ms=1)
        assert isinstance(opened, bypasses.Bypass)
        here = begun["introduction"]
        self.session, self.run, self.bypass = here["session"], here["run"], opened.id
        self.approval = waiting["approval"]["id"]
        self.payload = json.dumps(
            {
                "session_id": desk.session,
                "cwd": str(project),
                "tool_name": HOSTILE,
                "tool_input": {"file_path": f"{project}/.interlock/{HOSTILE}"},
            }
        )

    def arguments(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The commands that need some, with those that get furthest; what deletes comes last."""
        return {
            ("gate", "explain"): ("gate_",),
            ("install",): ("claude-code", "--dry-run", "--scope", "project"),
            ("uninstall",): ("claude-code", "--dry-run", "--scope", "project"),
            ("doctor",): ("claude-code",),
            ("trust",): ("--show",),
            ("mcp",): ("--print-config", "codex"),
            ("console",): ("--print", HOSTILE),
            ("up",): ("--port", HOSTILE),
            ("driver", "run"): (HOSTILE,),
            ("migrate", "handoff"): ("HANDOFF.md", "--dry-run"),
            ("note", "context"): ("a",),
            ("note", "read"): ("a",),
            ("note", "search"): ("heron",),
            ("note", "write"): (HOSTILE,),
            ("note", "edit"): ("a", "append", "--content", HOSTILE),
            ("note", "move"): ("a", HOSTILE),
            ("note", "delete"): ("a",),
            ("run", "notes"): (self.run,),
            ("run", "show"): (self.run,),
            ("run", "unblock"): (self.run,),
            ("session", "show"): (self.session,),
            ("session", "events"): (self.session,),
            ("session", "handoff"): (self.session,),
            ("session", "export"): (self.session, "-o", f"out\x1b\u202e{len(HOSTILE)}.json"),
            ("session", "import"): ("HANDOFF.md",),
            ("session", "verify-bundle"): ("HANDOFF.md",),
            ("sources", "add"): (HOSTILE,),
            ("store", "copy"): ("--to", f"{HOSTILE}/nowhere/"),
            ("workflow", "diff"): ("hello", "hostile"),
            ("workflow", "graph"): ("hostile",),
            ("workflow", "preview"): ("hostile",),
            ("workflow", "show"): ("hostile",),
            ("gaps", "resolve"): (self.session, "gap_1", HOSTILE),
            ("preferences", "set"): (self.run, "--autonomy", "guided"),
            ("approvals", "deny"): (self.approval, "--reason", HOSTILE),
            ("gate", "bypass", "remove"): (self.bypass,),
            ("run", "abandon"): (self.run, "--reason", HOSTILE),
            ("session", "end"): ("--force",),
            ("session", "delete"): (self.session, "--yes"),
        }


def test_no_command_lets_through_what_controls_or_deceives(
    app: App, home: Path, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / FOLDER
    scene = Scene(app, home, project)
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    arguments = scene.arguments()
    commands = [*(path for path in PATHS if path not in arguments), *arguments]
    shown: set[tuple[str, ...]] = set()

    for path in commands:
        if path in PLAYS_NOTHING_FOREIGN:
            continue
        calls = [(*path, *arguments.get(path, ())), (*path, HOSTILE), (*path, "--session", HOSTILE)]
        if _has_json(path):
            calls.insert(0, (*calls[0], "--json"))
        for call in calls:
            stdin = io.TextIOWrapper(io.BytesIO(scene.payload.encode()))
            monkeypatch.setattr(sys, "stdin", stdin)

            said = typed(*call)

            _check(said, call, path)
            if r"\u202e" in said.out and HOSTILE not in call:
                shown.add(path)

    assert {tuple(words.split()) for words in SHOWN.replace("\n", "/").split("/")} <= shown


def test_a_bug_and_its_report_are_as_harmless(
    typed: Terminal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Path:
        raise ValueError(HOSTILE)

    monkeypatch.setattr("interlock.cli.workflow.data_home", broken)

    said = typed("workflow", "list")

    (report,) = (home / "logs").glob("crash-*.txt")
    for text in (said.err, report.read_text()):
        assert r"\x1b[2J" in text
        assert _unseen(text) == set()


def test_what_a_hook_shows_the_user_is_as_harmless(home: Path, tmp_path: Path) -> None:
    project = tmp_path / FOLDER
    project.mkdir()
    desk = Desk(home, project)
    desk.config("no TOML")

    shown = (desk.begin()["systemMessage"], desk.tool("Write", file_path=str(project)).text)

    for text in shown:
        assert r"pro\x1b[2J\u202eject\nses_fake" in text
        assert _unseen(text) == set()


def test_a_document_goes_into_a_file_as_it_is(
    app: App, home: Path, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / FOLDER
    Scene(app, home, project)
    monkeypatch.chdir(project)

    said = typed("note", "read", "a")

    assert said.out.encode() == (project / ".interlock" / "notes" / "a.md").read_bytes()


def _has_json(path: tuple[str, ...]) -> bool:
    command: click.Command | None = interlock
    context = click.Context(interlock)
    for name in path:
        assert isinstance(command, click.Group)
        command = command.get_command(context, name)
    assert command is not None
    return any("--json" in parameter.opts for parameter in command.params)


def _check(said: Said, call: tuple[str, ...], path: tuple[str, ...]) -> None:
    text = said.out + said.err

    assert _unseen(text) == set(), call
    assert said.code in (0, 1, 2), (call, said.err)
    if "--json" in call and said.out:
        json.loads(said.out)
    elif path not in PRINTS_A_DOCUMENT:
        assert not any(line.startswith(FAKE) for line in text.splitlines()), call


def _unseen(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in UNSEEN_CATEGORIES} - {"\n"}
