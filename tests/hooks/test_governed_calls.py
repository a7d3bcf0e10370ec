"""Which gate governs a call: who makes it comes before where, and where it leads counts too."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.claude_code import HOST
from interlock.agents.hosts.claude_code_shell import shell_script
from interlock.agents.hosts.launcher import Program
from interlock.app.clock import SystemClock
from interlock.app.gate import trust
from interlock.app.gate.trust import trust_checkout
from interlock.app.hosts.install import InstallReport, install, repair
from interlock.core.gate.state import Mode
from interlock.hooks import fast
from interlock.hooks.hook_result import HookResult
from tests.hooks.scene import Scene

Answer = str | None


def answer(scene: Scene, tool: str, given: dict[str, Any], **more: object) -> Answer:
    """The decision of the full hook, None if it lets the call pass; the fast one allows no more."""
    content = scene.payload(tool, given, **more)
    done = scene.full(content)
    decision: dict[str, str] = json.loads(done.out)["hookSpecificOutput"] if done.out else {}
    assert done.code == 0
    if scene.is_fast(content):
        assert not decision
    return decision.get("permissionDecision")


WRITE = {"file_path": "<PROJECT>/a.py", "content": "x"}


@pytest.mark.parametrize("cwd", ["/", "/tmp", "<ELSEWHERE>"])
@pytest.mark.parametrize(
    ("mode", "tool", "given", "expected"),
    [
        ("analysis", "Write", WRITE, "deny"),
        ("analysis", "Bash", {"command": "touch <PROJECT>/a"}, "ask"),
        ("planning", "Bash", {"command": "touch <PROJECT>/a"}, "ask"),
        ("analysis", "Write", {"file_path": "/srv/outside.txt"}, "deny"),
        ("coding", "Write", WRITE, None),
    ],
)
def test_a_bound_conversation_keeps_its_gate_wherever_it_is(
    scene: Scene, mode: Mode, tool: str, given: dict[str, Any], *, cwd: str, expected: Answer
) -> None:
    scene.goes_to(mode)
    elsewhere = scene.base / "elsewhere"
    elsewhere.mkdir()
    scene.cwd = cwd.replace("<ELSEWHERE>", str(elsewhere))

    assert answer(scene, tool, given) == expected


@pytest.mark.parametrize("cwd", ["<BASE>", "/"])
@pytest.mark.parametrize(
    ("given", "is_denied"),
    [
        ({"file_path": "<PROJECT>/new/a.py", "content": "x"}, True),
        ({"file_path": " <PROJECT>/a.py", "content": "x"}, True),
        ({"file_path": "<BASE>/link/a.py", "content": "x"}, True),
        ({"file_path": "<BASE>/new/../project/a.py", "content": "x"}, True),
        ({"file_path": "~/project/a.py", "content": "x"}, True),
        ({"path": "<BASE>/a.py", "file": "<PROJECT>/a.py"}, True),
        ({"file_path": "<BASE>/a.py", "content": "<PROJECT>/a.py"}, False),
        ({"file_path": f"<BASE>/{'a' * 300}", "content": "x"}, False),
        ({"file_path": "/dev/stderr", "content": "x"}, False),
        ({"file_path": "a\0/b", "content": "x"}, False),
        ({}, False),
    ],
)
def test_a_conversation_that_began_elsewhere_edits_nothing_in_a_project(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    *,
    is_denied: bool,
    cwd: str,
) -> None:
    scene.goes_to("coding")  # in another conversation
    monkeypatch.setenv("HOME", str(scene.base))
    (scene.base / "link").symlink_to(scene.project)
    scene.cwd = Path(cwd.replace("<BASE>", str(scene.base)))
    given = {name: text.replace("<BASE>", str(scene.base)) for name, text in given.items()}

    content = scene.payload("Write", given, session_id="of nobody")
    done = scene.full(content)

    assert (b'"deny"' in done.out) == is_denied, done
    assert is_denied or done == HookResult()
    if is_denied:
        assert not scene.is_fast(content)
        assert f"Start the client in `{scene.project}`" in done.out.decode()


@pytest.mark.parametrize("place", ["other", "project/inner"])
def test_a_file_in_a_stricter_project_is_under_its_policy_too(scene: Scene, place: str) -> None:
    scene.goes_to("coding")
    other = scene.base / place
    (other / ".interlock").mkdir(parents=True)
    (other / ".interlock" / "config.toml").write_text('[gate]\nprotected = ["kept.py"]\n')
    (scene.project / "link.py").symlink_to(other / "kept.py")
    (scene.project / "link").symlink_to(other)

    assert answer(scene, "Write", {"file_path": str(other / "free.py")}) is None
    assert answer(scene, "Write", {"file_path": str(other / "kept.py")}) == "deny"
    for name in ("link.py", "link/kept.py"):
        assert answer(scene, "Write", {"file_path": f"<PROJECT>/{name}"}) == "deny"


@pytest.mark.parametrize("key", ["workspacePath", "workspace", "workspace_path"])
def test_notes_of_another_project_are_files_like_any(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    other, tool = scene.base / "other", "mcp__interlock__write_note"
    other.mkdir()
    (scene.project / "link").symlink_to(scene.base)
    monkeypatch.chdir(scene.project)  # the server's own directory is another
    note = {"title": "T", "content": "x"}

    assert answer(scene, tool, note) is None
    assert answer(scene, tool, {**note, key: "<PROJECT>"}) is None
    for place in (str(other), "/proc/self/cwd", "<PROJECT>/link"):
        assert answer(scene, tool, {**note, key: place}) == "deny", place
    assert answer(scene, "mcp__interlock__read_note", {**note, key: str(other)}) is None
    scene.goes_to("coding")
    assert answer(scene, tool, {**note, key: str(other)}) is None


CONFINED = {"AI_AGENT": "claude-code_2-1-325_harness"}


def confine(scene: Scene, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    """The hooks are run by a client that gives its commands to our shell."""
    script = Path(shell_script(str(scene.home), "bash"))
    if not script.exists():
        script.touch()
    os.utime(script, (0, 0))  # before the client began
    own = {"CLAUDE_CODE_SHELL": str(script), "CLAUDE_PID": str(os.getpid())}
    for name, value in {**CONFINED, **own, **more}.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(fast.posix.environ, name.encode(), os.fsencode(value))


@pytest.mark.parametrize(
    ("mode", "tool", "more", "expected"),
    [
        ("analysis", "Bash", {}, None),
        ("planning", "Bash", {}, None),
        ("planning", "PowerShell", {}, "ask"),
        ("planning", "Bash", {"CLAUDE_CODE_SHELL": "/bin/bash"}, "ask"),
        ("planning", "Bash", {"CLAUDE_CODE_SHELL": ""}, "ask"),
        ("planning", "Bash", {"AI_AGENT": ""}, "ask"),
        ("planning", "Bash", {"CLAUDE_PID": "0"}, "ask"),
    ],
)
def test_a_command_that_will_be_confined_passes_at_once(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode,
    tool: str,
    *,
    more: dict[str, str],
    expected: Answer,
) -> None:
    scene.goes_to(mode)
    confine(scene, monkeypatch, **more)
    given = {"command": "make install && echo x > a.txt"}

    assert answer(scene, tool, given) == expected
    assert scene.is_fast(scene.payload(tool, given)) == (expected is None)
    if expected is None:
        assert answer(scene, tool, {"command": "interlock trust"}) == "deny"
        scene.asks('[project]\nprofile = "strict"\n')
        assert answer(scene, tool, given) == ("deny" if mode == "analysis" else None)


MAKE = {"command": "make install"}


def test_a_command_passes_only_if_the_shell_will_really_confine_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell goes by the row of the conversation; the hook may know more, and be stricter."""
    confine(scene, monkeypatch)

    assert answer(scene, "Bash", MAKE, session_id="unbound") is None
    assert answer(scene, "Bash", MAKE, permission_mode="plan") is None
    scene.goes_to("coding")
    assert answer(scene, "Bash", MAKE, permission_mode="plan") == "ask"
    trust_checkout(scene.home, scene.project, at_ms=SystemClock().now_ms())
    scene.config.write_text("[project]\n")
    assert answer(scene, "Bash", MAKE) == "deny", "the shell would take it for coding"
    scene.goes_to("analysis")
    assert answer(scene, "Bash", MAKE) is None
    scene.config.unlink()
    assert answer(scene, "Bash", MAKE) is None
    assert answer(scene, "Bash", MAKE, session_id="unbound") == "deny", "the shell sees no project"


def test_an_older_client_is_found_above_the_shells_that_run_the_hook(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    confine(scene, monkeypatch, CLAUDE_PID="")
    code = "import os; from interlock.agents.hosts.claude_code_shell import is_confined as i; "
    code += f"print(i(os.environ, 'Bash', {str(scene.home)!r}))"
    hook = shlex.join(["sh", "-c", shlex.join([sys.executable, "-c", code]) + "; true"])
    script = Path(shell_script(str(scene.home), "bash"))

    def is_confined() -> str:
        client = [sys.executable, "-c", f"import os; os.system({hook!r})"]
        return subprocess.run(client, capture_output=True, text=True, check=True).stdout.strip()

    assert is_confined() == "True"
    later = SystemClock().now_ms() / 1000 + 60
    os.utime(script, (later, later))
    assert is_confined() == "False"


CHANGES: dict[str, Callable[[Scene], object]] = {
    "is gone": lambda s: s.config.unlink(),
    "was changed since": lambda s: s.config.write_text("[project]\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_config_that_somebody_else_changed_leaves_only_reading(scene: Scene, change: str) -> None:
    trust_checkout(scene.home, scene.project, at_ms=SystemClock().now_ms())
    scene.goes_to("coding")
    assert answer(scene, "Write", WRITE) is None

    CHANGES[change](scene)

    content = scene.payload("Write", WRITE)
    assert not scene.is_fast(content)
    denied = scene.full(content).out.decode()
    assert change in denied
    assert "interlock doctor" in denied
    assert answer(scene, "Read", {"file_path": "<PROJECT>/a.py"}) is None
    if change != "is gone":
        trust_checkout(scene.home, scene.project, at_ms=SystemClock().now_ms())
        assert answer(scene, "Write", WRITE) is None


def test_a_new_conversation_where_the_config_is_gone_is_told_and_reads_only(scene: Scene) -> None:
    trust_checkout(scene.home, scene.project, at_ms=SystemClock().now_ms())
    scene.config.unlink()

    content = scene.payload("", session_id="host-2", source="startup")
    told = json.loads(scene.full(content, "session-start").out)

    assert "config.toml` is gone" in told["systemMessage"]
    assert "config.toml` is gone" in told["hookSpecificOutput"]["additionalContext"]
    assert answer(scene, "Write", WRITE, session_id="host-2") == "deny"
    trust.revoke(scene.home, scene.project)
    content = scene.payload("", session_id="host-3", source="startup")
    assert scene.full(content, "session-start").out == b"", "it is meant so"
    assert answer(scene, "Write", WRITE, session_id="host-3") is None


def test_a_worktree_without_the_config_of_its_project_says_so(scene: Scene) -> None:
    worktree, git = scene.base / "worktree", ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "one"],
        ["worktree", "add", "-q", str(worktree)],
    ):
        subprocess.run([*git, *words], cwd=scene.project, check=True)

    def told(directory: Path) -> bytes:
        content = {"session_id": "host-2", "cwd": str(directory), "source": "startup"}
        return scene.full(json.dumps(content).encode(), "session-start").out

    assert b"this worktree of it has not" in told(worktree)
    assert told(scene.base) == b""
    shutil.copytree(scene.project / ".interlock", worktree / ".interlock")
    assert b"Mode: analysis" in told(worktree)


class Installation:
    """The files that an install for the user has written."""

    def __init__(self, home: Path) -> None:
        self.launcher, self.shell = home / "launch", home / "launch-bash"
        self.settings = Path.home() / ".claude" / "settings.json"

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        values = json.loads(self.settings.read_text())
        change(values)
        self.settings.write_text(json.dumps(values))


def gate_hook(settings: dict[str, Any]) -> dict[str, Any]:
    return settings["hooks"]["PreToolUse"][0]


DAMAGES: dict[str, Callable[[Installation], object]] = {
    "launcher gone": lambda i: i.launcher.unlink(),
    "launcher changed": lambda i: i.launcher.write_text("exit 0\n"),
    "shell gone": lambda i: i.shell.unlink(),
    "shell changed": lambda i: i.shell.write_text('#!/bin/sh\nexec /bin/bash "$@"\n'),
    "settings gone": lambda i: i.settings.unlink(),
    "settings unreadable": lambda i: i.settings.write_text("{"),
    "settings a directory": lambda i: (i.settings.unlink(), i.settings.mkdir()),
    "no hooks": lambda i: i.edit(lambda s: s.pop("hooks")),
    "one hook gone": lambda i: i.edit(lambda s: s["hooks"].pop("SessionStart")),
    "for one tool only": lambda i: i.edit(lambda s: gate_hook(s).update(matcher="Read")),
    "not waited for": lambda i: i.edit(lambda s: gate_hook(s)["hooks"][0].update({"async": True})),
    "no time": lambda i: i.edit(lambda s: gate_hook(s)["hooks"][0].update(timeout=0)),
    "for another event": lambda i: i.edit(
        lambda s: s["hooks"].update(Notification=s["hooks"].pop("PreToolUse"))
    ),
    "shell not to be run": lambda i: i.shell.chmod(0o600),
    "no shell of ours": lambda i: i.edit(lambda s: s.pop("env")),
}


@pytest.fixture
def installation(home: Path) -> Installation:
    program = Program(sys.executable, ("-I",), str(home), shell="/bin/bash")
    assert isinstance(install(home, HOST, "user", Path.home(), program, at_ms=1), InstallReport)
    return Installation(home)


@pytest.mark.invariant("guards-are-watched")
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_makes_the_gate_work_was_changed_by_somebody_else(
    installation: Installation, scene: Scene, damage: str
) -> None:
    scene.goes_to("coding")
    content = scene.payload("Write", WRITE)
    assert scene.is_fast(content)

    DAMAGES[damage](installation)

    assert not scene.is_fast(content)
    denied = scene.full(content).out.decode()
    assert "interlock doctor` shows what is different" in denied
    scene.goes_to("coding")
    assert not scene.is_fast(content), "also if the session is told of it anew"
    if damage == "settings a directory":
        installation.settings.rmdir()
    program = Program(sys.executable, ("-I",), str(scene.home), shell="/bin/bash")
    if damage == "settings unreadable":
        installation.settings.unlink()
    assert repair(scene.home, scene.project, program, at_ms=2)
    assert answer(scene, "Write", WRITE) is None
    assert scene.is_fast(content), "the files were looked at"


def test_what_others_change_in_the_clients_settings_costs_one_slow_call(
    installation: Installation, scene: Scene
) -> None:
    scene.goes_to("coding")
    installation.edit(lambda s: s.update(permissions={"allow": ["Bash(ls:*)"]}))
    content = scene.payload("Write", WRITE)

    assert not scene.is_fast(content)
    assert answer(scene, "Write", WRITE) is None
    assert scene.is_fast(content)
