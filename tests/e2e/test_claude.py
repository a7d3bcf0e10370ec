"""Claude Code itself, headless and without network, with our hooks and our server."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.person import run_as_person
from tests.server.server_process import Server

HERE = Path(__file__).parent
FETCHED = HERE / "node_modules" / "@anthropic-ai"
# The package of this machine brings the program; the one for all only looks for it.
CLAUDE = next(FETCHED.glob("claude-code-*/claude"), None)
SECONDS_MAX = 120
# Claude Code hands the structure of an answer to the model, not its text.
TOKEN = {"from": "result", "re": '"continueToken":"(ct1[a-z0-9]+)"'}

OFFLINE = dict.fromkeys(
    (
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    ),
    "1",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CLAUDE is None,
        reason="NOT TESTED: Claude Code, which `make e2e-claude` fetches from npm, is not here",
    ),
]


def hand_in(notes: str) -> dict[str, Any]:
    return {
        "extract": {"token": TOKEN},
        "blocks": [
            {
                "tool": "*continue_workflow",
                "input": {"continueToken": "${token}", "output": {"notesMarkdown": notes}},
            }
        ],
    }


START: dict[str, Any] = {
    "tool": "*start_workflow",
    "input": {"workflowId": "hello", "goal": "See it work"},
}
WORKFLOW = [
    START,
    hand_in("A project with one file."),
    hand_in("A README. I left out a licence on purpose."),
    hand_in("`ls` shows it."),
]


class Desk:
    """A project, a data home and a model that plays a script."""

    def __init__(self, base: Path) -> None:
        self.project, self.home, self.base = base / "project", base / "interlock", base
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.project / "seen.txt").write_text("here\n")

    def environment(self, **more: str) -> dict[str, str]:
        kept = ("PYTHONPATH", "LANG")
        programs = Path(sys.executable).parent
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.base / "user"),
            "TERM": "dumb",
            "INTERLOCK_HOME": str(self.home),
            **more,
        }

    def with_runs(self) -> list[dict[str, Any]]:
        """The sessions in which there is a workflow."""
        listed = json.loads(self.interlock("session", "list", "--json"))
        return [row for row in listed if row["run"]]

    def interlock(self, *words: str) -> str:
        command = (sys.executable, "-m", "interlock", *words)
        done = run_as_person(command, cwd=self.project, environment=self.environment())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def model(self, *turns: object) -> Generator[tuple[str, Path]]:
        """A model that plays `turns`: its address, and the log of what it was asked."""
        script, log, port = (self.base / name for name in ("script.json", "log.jsonl", "port"))
        script.write_text(json.dumps({"turns": [*turns, "All done."]}))
        for old in (log, port):
            old.unlink(missing_ok=True)
        model = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "scripted_model"),
                f"--script={script}",
                f"--log={log}",
                f"--port-file={port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not port.exists() or not port.read_text():
                assert model.poll() is None, "the model did not start"
            yield f"http://127.0.0.1:{port.read_text().strip()}", log
        finally:
            model.kill()
            model.wait()

    def claude(
        self,
        *turns: object,
        prompt: str = "go",
        allowed: str = "Write,Bash,Read,mcp__interlock",
        directory: str = ".",
    ) -> list[dict[str, Any]]:
        """Let the client play `turns`; what it asked the model, request by request."""
        with self.model(*turns) as (address, log):
            done = subprocess.run(
                [str(CLAUDE), "-p", prompt, "--output-format=json", f"--allowedTools={allowed}"],
                cwd=self.project / directory,
                env=self.environment(
                    ANTHROPIC_API_KEY="dummy", ANTHROPIC_BASE_URL=address, **OFFLINE
                ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        requests = [json.loads(line) for line in log.read_text().splitlines()]
        assert not any(request.get("script_error") for request in requests), requests[-1]
        return requests


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path)
    found.interlock("init")
    found.interlock("install", "claude-code")
    return found


def test_a_denied_edit_does_not_happen_and_a_workflow_runs_to_its_end(desk: Desk) -> None:
    path = str(desk.project / "FORBIDDEN.txt")
    requests = desk.claude(
        {"tool": "Write", "input": {"file_path": path, "content": "x"}},
        {"tool": "Bash", "input": {"command": f"echo x > {path}", "description": "try"}},
        *WORKFLOW,
    )

    assert not Path(path).exists()
    bodies = [json.dumps(request["body"]) for request in requests]
    assert any("Mode: analysis" in body for body in bodies), "what session start told arrived"
    assert any("nothing is edited" in body for body in bodies), "so did the reason"
    assert any("this ran read-only" in body for body in bodies), "the command ran in the sandbox"
    (listed,) = desk.with_runs()
    assert (listed["workflow"], listed["status"]) == ("hello", "complete")
    denied = json.loads(desk.interlock("gate", "log", "--json"))
    assert [line["tool"] for line in denied] == ["Write"]


def test_without_the_hooks_the_edit_happens(desk: Desk) -> None:
    desk.interlock("uninstall", "claude-code")
    path = str(desk.project / "allowed.txt")

    desk.claude({"tool": "Write", "input": {"file_path": path, "content": "x"}})

    assert Path(path).exists(), "it was the hook that denied it"


def test_where_interlock_is_gone_a_project_that_has_not_opted_in_is_left_alone(desk: Desk) -> None:
    shutil.rmtree(desk.home)
    shutil.rmtree(desk.project / ".interlock")
    edited, made = desk.project / "edited.txt", desk.project / "made.txt"

    desk.claude(
        {"tool": "Write", "input": {"file_path": str(edited), "content": "x"}},
        {"tool": "Bash", "input": {"command": f"echo x > {made}", "description": "make"}},
    )

    assert edited.exists()
    assert made.exists()


def test_in_coding_the_edit_happens(desk: Desk) -> None:
    config = desk.project / ".interlock" / "config.toml"
    config.write_text('[project]\nprofile = "light"\n')
    desk.interlock("trust")
    path = str(desk.project / "made.txt")

    desk.claude({"tool": "Write", "input": {"file_path": path, "content": "x"}})

    assert Path(path).exists()


def test_where_nobody_can_be_asked_no_agent_goes_on_to_coding(desk: Desk) -> None:
    path = str(desk.project / "FORBIDDEN.txt")
    write = {"tool": "Write", "input": {"file_path": path, "content": "x"}}
    commands = [
        {"tool": "Bash", "input": {"command": command, "description": "try"}}
        for command in ("interlock mode coding", "i=interlock; $i mode disabled --force")
    ]

    requests = desk.claude(
        {"tool": "*session", "input": {"mode": "coding", "task": "because I want to"}},
        *commands,
        write,
        prompt="/mode coding",
    )

    assert not Path(path).exists()
    assert not (desk.home / "gate-off").exists()
    bodies = [json.dumps(request["body"]) for request in requests]
    assert any("nobody attends this client" in body for body in bodies), "of the prompt"
    assert any("the user is asked before an agent" in body for body in bodies), "of the tool"


def test_each_conversation_works_in_its_own_session(desk: Desk) -> None:
    """The server and a command in the client's shell find the client that started them."""
    other = json.loads(desk.interlock("session", "start", "--json"))["sessionId"]
    desk.claude(
        START,
        {"tool": "Bash", "input": {"command": "interlock mode planning", "description": "plan"}},
    )
    (run,) = desk.with_runs()

    def state(session: str) -> dict[str, Any]:
        return json.loads(desk.interlock("session", "get-state", "--session", session))

    assert run["session"] != other
    mine = state(run["session"])
    assert [found["host"] for found in mine["hostSessions"]] == ["claude-code"]
    assert (mine["currentMode"], state(other)["currentMode"]) == ("planning", "analysis")


def test_over_http_a_workflow_runs_to_its_end(desk: Desk) -> None:
    """With the line that `interlock mcp --print-config` prints, as a shell runs it."""
    desk.interlock("uninstall", "claude-code")
    with Server(desk.home):
        printed = desk.interlock("mcp", "--print-config", "claude-code", "--http")
        (line,) = [found for found in printed.splitlines() if found.startswith("claude mcp add")]
        subprocess.run(
            ["sh", "-c", line.replace("claude", shlex.quote(str(CLAUDE)), 1)],
            cwd=desk.project,
            env=desk.environment(),
            check=True,
            capture_output=True,
        )
        start = {**START["input"], "workspacePath": str(desk.project)}
        desk.claude({"tool": "*start_workflow", "input": start}, *WORKFLOW[1:])

    (listed,) = desk.with_runs()
    assert (listed["workflow"], listed["status"]) == ("hello", "complete")


def test_what_one_conversation_notes_the_next_one_is_told(desk: Desk) -> None:
    note = {
        "title": "Use SQLite",
        "type": "decision",
        "content": "- [decision] the kestrel is one file #storage",
    }
    desk.claude(START, {"tool": "*write_note", "input": note})
    requests = desk.claude(
        {"tool": "*search_notes", "input": {"query": "kestrel"}},
        {
            "tool": "*edit_note",
            "input": {"identifier": "Use SQLite", "operation": "append", "content": "Done."},
        },
    )

    path = desk.project / ".interlock" / "notes" / "decisions" / "ADR-001-use-sqlite.md"
    text = path.read_text()
    assert text.endswith("Done.\n"), "in analysis too: notes are not the project's code"
    (run,) = desk.with_runs()
    assert f"session: {run['session']}" in text
    bodies = [json.dumps(request["body"]) for request in requests]
    assert "Use SQLite [decisions/ADR-001-use-sqlite.md]" in bodies[0], "at the very start"
    assert any("the kestrel is one file" in body for body in bodies)
