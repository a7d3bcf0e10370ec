"""The fast hook against the full one: in every state, for every tool, whatever it says holds."""

import ast
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts import claude_code_shell
from interlock.app.context import App
from interlock.app.gate import tool_calls
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.paths import ALWAYS_PROTECTED
from interlock.core.gate.secret_files import SECRETS
from interlock.core.gate.state import MODES, Mode
from interlock.core.gate.tools import HOSTS, OWN_TOOLS, TOOL_CLASSES, Host, class_of
from interlock.core.protocol.gated_session import Conversation
from interlock.hooks import fast, gate_state
from interlock.hooks.full_hook import HookEvent, HookResult, run_hook
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import take_departures
from tests.sessions import begin_recorded

HOST: Host = "claude-code"
UNLISTED = (
    *("mcp__interlock__session", "mcp__plugin_interlock_interlock__session", "mcp_interlock_x"),
    *(
        "interlock_session",
        "MCP:interlock session",
        "mcp__other__thing",
        "mcp_other",
        "MCP:other x",
    ),
    *("Brandnew", "bash", "read", "Read ", "READ", "mcp", "interlock", "", "Über", "apply_patch"),
)
TOOLS = (*TOOL_CLASSES[HOST], *UNLISTED)
INPUTS: dict[str, dict[str, Any]] = {
    "edit": {"file_path": "<PROJECT>/a.py", "content": "x"},
    "shell": {"command": "ls src"},
}


class Scene:
    """A project, and a conversation that is bound to a session in it."""

    def __init__(self, app: App, home: Path, base: Path) -> None:
        self.app, self.home, self.base = app, home, base
        self.project = base / "project"
        self.project.mkdir()
        self.cwd: Path | str = self.project
        opt_in(self.project, "standard")
        self.config = self.project / ".interlock" / "config.toml"
        self.session = begin_recorded(app, self.project, Conversation(HOST, "host-1")).session

    def goes_to(self, mode: Mode) -> None:
        gated_sessions.change_mode(self.app, self.session, mode, by="user", task="T-1")

    def payload(self, tool: str, given: object = None, **more: object) -> bytes:
        text = json.dumps(given).replace("<PROJECT>", str(self.project))
        fields = {"session_id": "host-1", "cwd": str(self.cwd), "tool_name": tool, **more}
        return json.dumps({**fields, "tool_input": json.loads(text)}).encode()

    def is_fast(self, content: bytes, event: HookEvent = "pre-tool", host: Host = HOST) -> bool:
        """Whether the fast hook does without the full one."""
        try:
            return fast.run(host, event, str(self.home), content)
        except Exception:  # noqa: BLE001 (as `fast.main` takes it)
            return False

    def agrees(self, content: bytes) -> bool:
        """Whether the fast hook was enough; what it allows, the full one allows in silence."""
        is_fast = self.is_fast(content)
        if is_fast:
            assert run_hook(HOST, "pre-tool", self.home, content) == HookResult(), content[:500]
        return is_fast

    def sql(self, statement: str) -> None:
        with sqlite3.connect(self.home / "gate.db") as db:
            db.executescript(statement)
        db.close()

    def asks(self, text: str) -> None:
        """The config says so now, and the gate was told."""
        self.config.write_text(text)
        gated_sessions.change_status(self.app, self.session, "paused", "")
        gated_sessions.change_status(self.app, self.session, "active", "")


@pytest.fixture
def scene(app: App, home: Path, tmp_path: Path) -> Scene:
    return Scene(app, home, tmp_path)


def inputs(kind: str, scene: Scene) -> Iterator[object]:
    yield INPUTS.get(kind, {})
    if kind in ("read", "search", "mcp", "other"):
        for name in SECRETS:
            path = f"{scene.home}/{name}"
            yield from ({"file_path": path}, {"x": [{"y": path.upper()}]}, path, [path])
            yield {"path": f"{scene.home.parent}", "glob": f"{scene.home.name}/{name}"}
        yield from ({"path": str(scene.home)}, {"path": f"{scene.home}/x/.."}, {"path": "."})
        yield from ({"path": f"../{scene.home.name}"}, {"path": "secret"}, {"path": ""})
    if kind == "edit":
        for end in (
            *ALWAYS_PROTECTED,
            str(scene.home / "gate.db"),
            "../.mcp.json",
            "a/../.MCP.json",
        ):
            yield {"file_path": str(scene.project / end)}
        yield {"path": "<PROJECT>/a", "notebook_path": "<PROJECT>/.mcp.json"}
        yield {"file_path": "<PROJECT>/a", "files": ["<PROJECT>/.mcp.json"]}
        yield {"file_path": "<PROJECT>/a", "input": "*** Add File: .mcp.json"}
        yield from (
            "*** Add File: .mcp.json",
            {"command": "*** Add File: .mcp.json"},
            {"file_path": ".mcp.json"},
            {"file_path": ["<PROJECT>/a"]},
            {},
            [],
            None,
        )
    if kind == "shell":
        commands = ("interlock mode disabled", "touch .git/hooks/x", "rm -rf build", "make", "")
        yield from ({"command": command} for command in commands)
        yield {"cmd": "interlock mode disabled"}
        yield {"command": ["interlock", "mode", "disabled"], "script": "ls"}


CONDITIONS: dict[str, Callable[[Scene], object]] = {
    "all is well": lambda _: None,
    "no gate.db": lambda s: (s.home / "gate.db").unlink(),
    "gate.db is corrupt": lambda s: (s.home / "gate.db").write_bytes(b"no database" * 500),
    "gate.db is cut off": lambda s: (s.home / "gate.db").write_bytes(
        (s.home / "gate.db").read_bytes()[:5000]
    ),
    "gate.db is empty": lambda s: (s.home / "gate.db").write_bytes(b""),
    "gate.db is a directory": lambda s: (
        (s.home / "gate.db").unlink(),
        (s.home / "gate.db").mkdir(),
    ),
    "gate.db is of another time": lambda s: s.sql("ALTER TABLE gate DROP COLUMN watched"),
    "no row": lambda s: s.sql("DELETE FROM gate"),
    "a row of another host": lambda s: s.sql("UPDATE gate SET host = 'codex'"),
    "a mode that is not known": lambda s: s.sql("UPDATE gate SET mode = 'yolo'"),
    "a mode that is no text": lambda s: s.sql("UPDATE gate SET mode = x'636f64696e67'"),
    "not started": lambda s: s.sql("UPDATE gate SET is_started = 0"),
    "started in no way that is known": lambda s: s.sql("UPDATE gate SET is_started = 'yes'"),
    "not simple": lambda s: s.sql("UPDATE gate SET is_simple = 0"),
    "a strict project": lambda s: s.asks('[project]\nprofile = "strict"\n'),
    "a project with rules of its own": lambda s: s.asks('[gate]\nprotected = ["a.py"]\n'),
    "a project that lists tools": lambda s: s.asks('[gate]\nreading_tools = ["Brandnew"]\n'),
    "the gate is off": lambda s: tool_calls.start_override(s.home),
    "the gate was off": lambda s: (s.home / tool_calls.OVERRIDE_FILE).write_text(
        '{"who": "", "untilMs": 1}'
    ),
    "the gate is off in no way that is known": lambda s: (
        s.home / tool_calls.OVERRIDE_FILE
    ).write_text("off"),
    "the config says more by now": lambda s: s.config.write_text('[gate]\nprotected = ["a.py"]\n'),
    "the config is broken by now": lambda s: s.config.write_text("[project\n"),
    "the config leads nowhere": lambda s: (s.config.unlink(), s.config.symlink_to("gone")),
    "the config is a directory": lambda s: (s.config.unlink(), s.config.mkdir()),
    "opted out": lambda s: s.config.unlink(),
    "in another project": lambda s: elsewhere(s, '[project]\nprofile = "strict"\n'),
    "in a project that is broken": lambda s: elsewhere(s, "[project\n"),
    "in a directory below": lambda s: below(s, "a/b c/ü"),
    "in a directory with the longest of names": lambda s: setattr(s, "cwd", longest(s.project)),
    "in one of the hosts": lambda s: below(s, ".claude/worktrees/x"),
    "in the data home": lambda s: setattr(s, "cwd", s.home),
    "through a link": lambda s: (below(s, "a"), (s.base / "l").symlink_to(s.cwd), at(s, "l")),
    "through a link out": lambda s: ((s.project / "l").symlink_to(s.base), at(s, "project/l")),
    "nowhere": lambda s: setattr(s, "cwd", s.project / "gone"),
    "at the root": lambda s: setattr(s, "cwd", Path("/")),
    "in no directory": lambda s: setattr(s, "cwd", Path()),
}


def elsewhere(scene: Scene, text: str) -> None:
    scene.cwd = other = scene.base / "other"
    (other / ".interlock").mkdir(parents=True)
    (other / ".interlock" / "config.toml").write_text(text)


def below(scene: Scene, name: str) -> None:
    scene.cwd = folder = scene.project / name
    folder.mkdir(parents=True)


def longest(project: Path) -> str:
    """A name as long as a path can be, so that with the name of the config it is too long."""
    room = 4095 - len(f"{project}{'/..' * len(project.parts)}")
    return f"{project}{'/.' * (room // 2)}"


def at(scene: Scene, name: str) -> None:
    scene.cwd = scene.base / name


@pytest.mark.slow
@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_the_fast_hook_allows_the_full_one_allows(
    scene: Scene, condition: str, mode: Mode
) -> None:
    scene.goes_to(mode)
    CONDITIONS[condition](scene)

    for tool in TOOLS:
        for given in inputs(class_of(HOST, tool), scene):
            scene.agrees(scene.payload(tool, given))


FAST: dict[Mode, set[str]] = {
    "analysis": {"own", "read", "search", "web", "ask", "agent"},
    "planning": {"own", "read", "search", "web", "ask", "agent"},
    "coding": {"own", "read", "search", "web", "ask", "agent", "edit", "shell", "mcp", "other"},
    "disabled": {"own", "read", "search", "web", "ask", "agent", "edit", "shell", "mcp", "other"},
}


@pytest.mark.parametrize("mode", MODES)
def test_where_all_is_well_the_fast_hook_is_enough(scene: Scene, mode: Mode) -> None:
    scene.goes_to(mode)

    for tool in (name for name in TOOLS if name):
        kind = class_of(HOST, tool)
        assert scene.agrees(scene.payload(tool, INPUTS.get(kind))) == (kind in FAST[mode]), tool


def test_reading_needs_no_state(scene: Scene) -> None:
    (scene.home / "gate.db").unlink()

    for tool in ("Read", "Grep", "mcp__interlock__session"):
        assert scene.agrees(scene.payload(tool))
    assert not scene.is_fast(scene.payload("WebFetch"))


@pytest.mark.parametrize("is_bound", [False, True])
def test_where_nobody_opted_in_a_hook_is_silent_unless_the_conversation_is_bound(
    scene: Scene, tmp_path: Path, *, is_bound: bool
) -> None:
    scene.cwd = tmp_path
    before = sorted(scene.home.rglob("*"))
    name = "host-1" if is_bound else "host-2"

    content = scene.payload("Write", INPUTS["edit"], session_id=name)

    for event in fast.EVENTS:
        assert scene.is_fast(content, event) != is_bound  # pyright: ignore[reportArgumentType]
    assert (run_hook(HOST, "pre-tool", scene.home, content) == HookResult()) != is_bound
    assert is_bound or sorted(scene.home.rglob("*")) == before


def test_a_link_that_leads_to_a_protected_file_is_for_the_full_hook(scene: Scene) -> None:
    scene.goes_to("coding")
    (scene.project / ".claude").mkdir()
    (scene.project / "a.py").symlink_to(".claude/settings.json")
    (scene.project / "folder").symlink_to(".claude")

    for name in ("a.py", "folder/settings.json"):
        content = scene.payload("Write", {"file_path": f"<PROJECT>/{name}"})
        assert not scene.is_fast(content)
        assert b'"deny"' in run_hook(HOST, "pre-tool", scene.home, content).out


def test_a_config_that_was_changed_counts_when_the_gate_was_told(scene: Scene) -> None:
    scene.goes_to("coding")
    write = scene.payload("Write", INPUTS["edit"])
    assert scene.agrees(write)

    scene.config.write_text(f"# more\n{scene.config.read_text()}")

    assert not scene.is_fast(write)
    scene.goes_to("planning")
    scene.goes_to("coding")
    assert scene.agrees(write)


@pytest.mark.parametrize("tool", ["Read", "Grep", "mcp__files__read", "Brandnew"])
def test_what_names_a_secret_is_for_the_full_hook_and_nothing_else_is(
    scene: Scene, tool: str
) -> None:
    scene.goes_to("coding")

    for given in ({"path": f"{scene.home}/secret"}, {"path": str(scene.home)}, {"x": "keyring"}):
        assert not scene.is_fast(scene.payload(tool, given))
    for path in ("<PROJECT>/secrets.py", "/work/client-secret/x", "<PROJECT>/docs/keyring.md"):
        assert scene.agrees(scene.payload(tool, {"path": path, "pattern": "secret: .*[a-z]"}))


def test_the_tables_are_those_of_the_core() -> None:
    assert fast.SECRETS == SECRETS
    assert tuple(fast.OWN_TOOLS.split()) == OWN_TOOLS
    for host, table in fast.TOOLS.items():
        known = {name: kind for kind, names in table.items() for name in names.split()}
        assert known == TOOL_CLASSES[HOSTS[[str(name) for name in HOSTS].index(host)]]
    assert list(fast.TOOLS) == [HOST], "another host may send another payload: look at it first"
    for tool in TOOLS:
        assert fast.class_of(HOST, tool) == class_of(HOST, tool)
    for end in ALWAYS_PROTECTED:
        first = end.split("/")[0]
        assert any(first.startswith(marker) for marker in fast.MARKERS.split()), end


@pytest.mark.parametrize("host", [host for host in HOSTS if host != HOST])
def test_other_hosts_are_for_the_full_hook(scene: Scene, host: Host) -> None:
    scene.goes_to("disabled")

    for tool in (*TOOL_CLASSES[host], *UNLISTED):
        assert not scene.is_fast(scene.payload(tool), host=host)


NOTED: tuple[HookEvent, ...] = ("post-tool", "post-compact", "session-end")


@pytest.mark.parametrize("event", NOTED)
@pytest.mark.parametrize("fields", [{}, {"session_id": ""}, {"session_id": 'ü"\\\n\0 \U0001f600'}])
def test_a_line_is_left_as_the_full_hook_would(
    scene: Scene, event: HookEvent, fields: dict[str, str]
) -> None:
    content = scene.payload("Write", INPUTS["edit"], **fields).replace(b"\\ud83d\\ude00", b"!")
    assert not scene.is_fast(content, event), "the full hook makes the file"
    assert run_hook(HOST, event, scene.home, content) == HookResult()

    assert scene.is_fast(content, event)

    full, ours = spool.lines(scene.home) if event != "session-end" else take_departures(scene.home)
    assert ours.id == f"{event}-{ours.at_ms}"
    assert 0 <= ours.at_ms - full.at_ms < 60_000
    assert ours == msgspec.structs.replace(full, id=ours.id, at_ms=ours.at_ms)


def test_a_spool_that_is_full_is_for_the_full_hook(scene: Scene) -> None:
    content = scene.payload("Write")
    run_hook(HOST, "post-tool", scene.home, content)
    path = scene.home / "spool" / "gate.jsonl"
    with path.open("ab") as file:
        file.truncate(spool.BYTES_MAX + 1)

    assert not scene.is_fast(content, "post-tool")
    assert path.stat().st_size == spool.BYTES_MAX + 1
    run_hook(HOST, "post-tool", scene.home, content)
    assert not path.exists(), "it was moved away"
    assert fast.SPOOL_BYTES_MAX == spool.BYTES_MAX


def test_what_runs_before_a_tool_call_imports_only_what_python_brings_compiled() -> None:
    imported: set[str] = set()
    for module in (fast, gate_state, claude_code_shell):
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    typing_alone = {"signal", "collections.abc", "typing"}
    ours = {"interlock.agents.hosts", "interlock.hooks"}
    compiled = {"posix", "sys", "time", "_json", "_sqlite3", "_signal"}
    assert imported == compiled | ours | typing_alone
