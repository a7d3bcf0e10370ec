"""Our own processes in a directory that an agent has written: nothing of it runs or leads out.

Each entry of the table in ADR 11 is tried, as it is started in production, in a directory with
programs that log that they ran, links to files outside, and settings that name a listener.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from interlock.agents.clients.claude_code_headless import ClaudeCodeHeadless
from interlock.agents.clients.headless import ClientStart
from interlock.app.context import open_app
from interlock.app.gate.confined_commands import reach_of
from interlock.app.gate.trust import trust_checkout
from interlock.sandbox.confinement import ABI_MIN, landlock_abi
from interlock.workspace.files.markdown_lint import lint_texts
from interlock.workspace.git.changed_files import uncommitted_files
from interlock.workspace.git.checkout import check_out
from interlock.workspace.git.snapshots import SnapshotFailure, save_snapshot
from interlock.workspace.outside.deadline_http import DeadlineHttp, ServerDown
from tests.driver.stage import Stage, call, one_step
from tests.durable.test_notification import configure, park, run_jobs
from tests.hooks.agent_shell import Shell, text_of
from tests.sandbox.hostile_directory import Hostile, LaunchedServer, LaunchedUp, hostile_directory
from tests.server.http_agent import HttpClient
from tests.unattended_scene import order
from tests.workspace.git.test_hostile import age
from tests.workspace.git.test_state import run

ADR = Path(__file__).parents[2] / "docs" / "adr" / "0011-the-sandbox.md"
FAKE_BD = Path(__file__).parents[1] / "workspace" / "outside" / "fake_bd.py"


@pytest.fixture
def hostile(tmp_path: Path, home: Path) -> Iterator[Hostile]:
    with hostile_directory(tmp_path, home) as made:
        yield made


def _mcp_server(hostile: Hostile) -> None:
    client = LaunchedServer(hostile)
    client.initialize()
    calls: list[tuple[str, dict[str, object]]] = [
        ("list_workflows", {}),
        ("inspect_workflow", {"workflowId": "far"}),
        ("session", {"action": "start"}),
        ("start_workflow", {"workflowId": "line", "goal": "$(touch x)"}),
        ("start_workflow", {"workflowId": "far", "goal": "x"}),
        ("resume_session", {}),
        ("preflight", {"track": "x"}),
        ("work_items", {"action": "add", "title": "x"}),
    ]
    for tool, arguments in calls:
        client.call(tool, **arguments, workspacePath=str(hostile.root))
    client.close()


def _notes(hostile: Hostile) -> None:
    client = LaunchedServer(hostile)
    client.initialize()
    where = {"workspacePath": str(hostile.root)}
    for title in ("../../outside/new", "away/new", "link", "/etc/x", "away", "..", "a\0b"):
        client.call("write_note", title=title, content="x", **where)
        client.call("write_note", title="n", folder=title, content="x", **where)
        client.call("edit_note", name=title, operation="append", content="x", **where)
        client.call("move_note", name="n", to=title, **where)
        client.call("delete_note", name=title, **where)
    client.close()


def _logbook(hostile: Hostile) -> None:
    client = LaunchedServer(hostile)
    client.initialize()
    started = client.call("session", action="start", workspacePath=str(hostile.root))
    assert not started.get("isError"), started
    client.close()
    hostile.launch("session", "log", "--write")
    hostile.launch("session", "publish")


def _server(hostile: Hostile) -> None:
    with LaunchedUp(hostile.home, workspace=hostile.root) as server:
        client = HttpClient(server)
        client.initialize()
        where = {"workspacePath": str(hostile.root)}
        started = client.call("start_workflow", workflowId="line", goal="x", **where)
        assert not started.get("isError"), started
        client.call("preflight", track="x", **where)
        client.call("resume_session", **where)
        client.hang_up()


def _hooks(hostile: Hostile) -> None:
    payload = {
        "session_id": "../../outside/new",
        "transcript_path": str(hostile.outside / "file"),
        "cwd": str(hostile.root),
        "source": "startup",
        "prompt": "$(touch x)",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(hostile.root / ".agents" / "new"), "command": "git status"},
        "tool_use_id": "../x",
    }
    events = ("session-start", "prompt-submit", "pre-tool", "post-tool", "pre-compact", "stop")
    for event in (*events, "subagent-start", "subagent-stop", "session-end"):
        ran = hostile.launch("hook", "claude-code", event, given=json.dumps(payload))
        assert ran.returncode in (0, 2), ran.stderr


def _shell(hostile: Hostile) -> None:
    """The session is in another project; the command goes to the hostile directory."""
    base = hostile.base / "elsewhere"
    base.mkdir()
    shell = Shell(hostile.home, base)
    shell.begin("planning")
    for command in ("git status", "python3 -m json.tool", "./bd", "python3 -m interlock status"):
        shell.run(f"cd {hostile.root} && {command}; echo x >> .agents/file")
    shell.project = hostile.root
    commands = {"interlock status", "interlock work list", "interlock workflow validate"}
    reach = partial(reach_of, home=hostile.home, host="claude-code", conversation="host-1")
    assert {reach(text_of(command)) for command in commands} == {"outside"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command in commands:
        shell.run(command, PATH=path)
    for command in ("./interlock status", "PATH=. interlock status", "python3 -m interlock status"):
        assert reach(text_of(command)) == "inside"


def _jobs(hostile: Hostile) -> None:
    (hostile.root / ".agents").unlink()  # so that there is something to lint and to commit
    exclude = hostile.root / ".git" / "info" / "exclude"
    exclude.unlink()
    exclude.write_text("*\n")
    client = LaunchedServer(hostile)
    client.initialize()
    where = {"workspacePath": str(hostile.root)}
    client.call("session", action="start", **where)
    (logbook,) = (hostile.root / ".agents" / "sessions").iterdir()
    logbook.write_text(f"{logbook.read_text()}\n## Done\n\nThis was done. <!-- x -->\n")
    head = run(hostile.root, "rev-parse", "HEAD")
    ended = client.call("session", action="end", summary="Done.", **where)
    client.close()
    assert "not trusted" in ended["content"][0]["text"], ended
    assert run(hostile.root, "rev-parse", "HEAD") == head


def _notification(hostile: Hostile) -> None:
    given = hostile.base / "given"
    program = f"import sys; open({str(given)!r}, 'w').write(repr(sys.argv) + sys.stdin.read())"
    command = json.dumps([sys.executable, "-I", "-c", program])
    app = open_app(hostile.home)
    park(app, order(app, hostile.root, goal="$(touch x); `touch x`"))
    configure(app, f"command = {command}")
    run_jobs(app)
    app.close()
    assert given.read_text().startswith("['-c']{"), "the text is on its standard input alone"


def _driver(hostile: Hostile) -> None:
    place = hostile.base / "stage"
    place.mkdir()
    with Stage(place) as stage:
        stage.repository = hostile.root
        # Git in the sandbox cannot read what this names, and would do nothing at all.
        run(hostile.root, "config", "--unset", "include.path")
        turns = (
            call("Bash", command=f"git status; ./bd; echo x > {hostile.outside}/new"),
            call("Write", file_path="made", content="x\n"),
        )
        session = stage.order(script=one_step(*turns))
        stage.start_driver("-P", "-m", "interlock.driver")
        state = stage.wait_for(session, "done", "parked")
        assert state.outcome == "unverified", state.detail
        # The commit is made in the sandbox: there the programs run, and cannot write their log.
        assert "core.fsmonitor" in state.detail
        assert "Permission denied" in state.detail


def _client(hostile: Hostile) -> None:
    """What the real client makes of these words is tried with it (`tests/e2e`)."""
    start = ClientStart(hostile.home, hostile.root, "c", 9, ("Bash",))
    command = ClaudeCodeHeadless("/usr/bin/claude").command(start, {"NODE_OPTIONS": "x"})
    assert {"--restricted", "--strict-mcp-config"} <= {*command.words}
    assert "NODE_OPTIONS" not in command.environment


def _snapshots(hostile: Hostile) -> None:
    git, ref = hostile.root / ".git", "refs/interlock/taken-over/BlueLake-1"
    run(hostile.root, "config", "user.name", "x; touch x #")  # a line in the log of the ref
    unused = next(name for name in ["ab", "cd", "ef"] if not (git / "objects" / name).exists())
    links = {
        git / "logs" / ref: hostile.outside / "file",
        (git / ref).parent: hostile.outside,
        git / "objects" / unused: hostile.outside,
        git / "lfs" / "objects": hostile.outside,
    }
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        with pytest.raises(SnapshotFailure, match="is a link"):
            save_snapshot(hostile.root, "BlueLake-1")
        link.unlink()
    victim, real = hostile.base / "victim", hostile.root / "real"
    run(hostile.base, "clone", "-q", str(hostile.root / "inner"), str(victim))
    git.rename(real)
    git.write_text(f"gitdir: {victim}/.git\n")
    with pytest.raises(SnapshotFailure, match="does not know this worktree"):
        save_snapshot(hostile.root, "BlueLake-1")
    git.unlink()
    real.rename(git)
    assert save_snapshot(hostile.root, "BlueLake-1"), "without links it is saved"


def _lint(hostile: Hostile) -> None:
    os.chdir(hostile.root)
    (linted,) = lint_texts(["#  x\n<!-- pyml plugins.additional_paths=json.py -->\n"])
    assert linted.problems or linted.text


def _git(hostile: Hostile) -> None:
    """How the settings are tried: `tests/workspace/git/test_config_keys.py`."""
    os.chdir(hostile.root)
    os.environ["PATH"] = f".::{os.environ['PATH']}"
    age(hostile.root / "a.txt")
    assert uncommitted_files(hostile.root, seconds=60)


def _beads(hostile: Hostile) -> None:
    program = hostile.base / "bin" / "bd"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n{FAKE_BD.read_text()}")
    program.chmod(0o755)
    (hostile.home / "config.toml").write_text("[coordination]\nbeads = true\n")
    path = f"{program.parent}:{os.environ['PATH']}"
    added = hostile.launch("work", "add", "x", PATH=path)
    listed = hostile.launch("work", "list", PATH=path)
    assert added.returncode == 0, added.stderr
    assert "has not trusted this checkout" in listed.stderr
    hostile.assert_untouched()
    trust_checkout(hostile.home, hostile.root, at_ms=1)
    hostile.launch("work", "add", "y", PATH=path)
    assert "on_create" in hostile.trap.programs_run(), "the real one runs the hook, too"


def _http(hostile: Hostile) -> None:
    """A server that the user names cannot lead a request elsewhere."""

    class Redirect(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", hostile.address)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Redirect)
    Thread(target=server.handle_request, daemon=True).start()
    os.environ["HTTP_PROXY"] = os.environ["http_proxy"] = hostile.address
    http = DeadlineHttp(f"http://127.0.0.1:{server.server_port}", "", 5)
    with pytest.raises(ServerDown, match="redirects are not followed"):
        http.deliver(b"{}")
    http.close()
    server.server_close()


def _source(hostile: Hostile) -> None:
    draft = hostile.base / "draft"
    draft.mkdir()
    check_out(draft, f"file://{hostile.root}", ref=None, path=None)
    assert (draft / "tree" / "a.txt").exists()


def _workflow_files(hostile: Hostile) -> None:
    listed = hostile.launch("workflow", "validate")
    assert "far.json" in listed.stdout
    hostile.launch("workflow", "preview", "far")


def _guard(hostile: Hostile) -> None:
    run(hostile.root, "add", "-f", "b.bin")
    hostile.trap.programs_run()
    assert hostile.launch("guard", "check").returncode == 0


needs_sandbox = pytest.mark.skipif(
    landlock_abi() < ABI_MIN, reason="NOT TESTED: this machine has no Landlock"
)
ENTRIES: dict[str, Callable[[Hostile], None]] = {
    "Git calls": _git,
    "MCP server": _mcp_server,
    "Server and console": _server,
    "Hooks": _hooks,
    "Agent's shell": _shell,
    "Notes": _notes,
    "Logbook": _logbook,
    "Jobs of a session's end": _jobs,
    "Markdown lint": _lint,
    "Notifications": _notification,
    "Snapshots": _snapshots,
    "Commit guard": _guard,
    "Driver and its worktrees": _driver,
    "Agent client of the driver": _client,
    "Workflow files": _workflow_files,
    "Workflow sources": _source,
    "HTTP clients": _http,
    "Beads": _beads,
}
NEED_SANDBOX = ("Agent's shell", "Driver and its worktrees")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=needs_sandbox if x in NEED_SANDBOX else ()) for x in ENTRIES]
)
def test_nothing_of_a_hostile_directory_runs_or_leads_out(
    hostile: Hostile, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile.base)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    ENTRIES[name](hostile)
    hostile.assert_untouched()


def test_the_programs_of_the_hostile_directory_work(hostile: Hostile) -> None:
    """Otherwise nothing that is tried here means anything."""
    for module in ("json.tool", "interlock"):
        subprocess.run([sys.executable, "-m", module], cwd=hostile.root, check=False, input=b"{}")
        assert module.partition(".")[0] in hostile.trap.programs_run()
    run(hostile.root, "status")
    assert "filter.x.clean" in hostile.trap.programs_run()
    with socket.create_connection(("127.0.0.1", int(hostile.address.rpartition(":")[2]))) as client:
        client.recv(1)
    assert hostile.connections


def test_the_table_of_the_adr_has_the_same_entries() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \|", ADR.read_text(), re.MULTILINE)
    assert rows == list(ENTRIES)
