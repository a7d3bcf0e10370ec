"""The fast hook as a client starts it: the same answers, and a denial where all else fails."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from interlock.agents.hosts.launcher import STANDALONE, Program, launcher_text
from interlock.app.gate.opt_in import opt_in
from interlock.core.gate.state import Mode
from interlock.hooks import fast
from interlock.hooks.hook_result import HookEvent, HookResult
from interlock.workspace.machine import spool
from tests.hooks.scene import INPUTS, NOTED, Scene, inputs_of

HOOKS = Path(fast.__file__).parent
FLAGS = ("-P",)  # with which the tests find Interlock, by a variable


def fast_command(
    scene: Scene,
    event: HookEvent = "pre-tool",
    *,
    hooks: Path = HOOKS,
    flags: Sequence[str] = FLAGS,
) -> list[str]:
    start = [sys.executable, "-I", "-S", str(hooks / "start.py"), "hook"]
    return [*start, scene.host.name, event, str(scene.home), *flags]


def full_command(scene: Scene, event: HookEvent = "pre-tool") -> list[str]:
    words = ["-m", "interlock", "hook", "--host", scene.host.name, "--event", event]
    return [sys.executable, *FLAGS, *words, "--home", str(scene.home)]


def outcome(command: Sequence[str], content: bytes, cwd: Path | None = None) -> HookResult:
    done = subprocess.run(command, input=content, capture_output=True, check=False, cwd=cwd)
    return HookResult(done.returncode, done.stdout, done.stderr.decode())


CALLS: dict[str, Callable[[Scene], bytes]] = {
    "a read": lambda s: s.payload("Read"),
    "an edit": lambda s: s.payload("Write", INPUTS["edit"], tool_use_id="toolu_1"),
    "a large edit": lambda s: s.payload("Write", {**INPUTS["edit"], "content": "ü" * 10**6}),
    "a protected edit": lambda s: s.payload("Write", {"file_path": "<PROJECT>/.mcp.json"}),
    "a command": lambda s: s.payload("Bash", {"command": "ls"}),
    "a command that is the user's": lambda s: s.payload("Bash", {"command": "interlock trust"}),
    "a tool that nobody knows": lambda s: s.payload("mcp__other__x"),
    "nothing": lambda _: b"",
    "no JSON": lambda _: b'{"cwd": ',
    "no UTF-8": lambda s: s.payload("Write").replace(b"Write", b"Write\xff"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["analysis", "coding"])
@pytest.mark.parametrize("call", CALLS)
def test_it_answers_as_the_full_hook(scene: Scene, mode: Mode, call: str) -> None:
    scene.goes_to(mode)
    content = CALLS[call](scene)

    full = scene.full(content)
    printed = full._replace(err=f"{full.err}\n" if full.err else "")
    assert outcome(fast_command(scene), content) == printed


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["analysis", "coding"])
def test_it_answers_as_the_full_hook_in_every_host(host_scene: Scene, mode: Mode) -> None:
    host_scene.goes_to(mode)
    for kind, given in inputs_of(host_scene.host.name).items():
        tool = host_scene.host.tools[kind].split()[0]
        content = host_scene.payload(tool, given, agent_id="agent-1")

        told = outcome(fast_command(host_scene), content)

        assert told == host_scene.full(content)
        assert bool(told.out) == (kind == "edit" and mode == "analysis")


def test_a_writer_that_holds_the_state_for_long_means_what_it_means_to_the_full_hook(
    scene: Scene,
) -> None:
    scene.goes_to("coding")
    content = scene.payload("Write", INPUTS["edit"])
    db = sqlite3.connect(scene.home / "gate.db", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")

    held = outcome(fast_command(scene), content)

    assert held == outcome(full_command(scene), content)
    decision = json.loads(held.out)["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"
    assert "database is locked" in decision["permissionDecisionReason"]
    assert outcome(fast_command(scene), scene.payload("Read")) == HookResult()
    db.execute("ROLLBACK")
    db.close()
    assert outcome(fast_command(scene), content) == HookResult()


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The fast hook at a place where it can be harmed."""
    package = tmp_path / "copied" / "interlock"
    for name in ("hooks/start.py", *STANDALONE):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOOKS.parent / name, package / name)
    return package / "hooks"


HARM: dict[str, Callable[[Path], object]] = {
    "it is gone": lambda hooks: (hooks / "fast.py").unlink(),
    "it cannot be compiled": lambda hooks: (hooks / "fast.py").write_text("def"),
    "it is empty": lambda hooks: (hooks / "fast.py").write_text(""),
    "it crashes": lambda hooks: (hooks / "fast.py").write_text("def main(*_): return 1 / 0"),
    "it ends Python": lambda hooks: (hooks / "fast.py").write_text("raise SystemExit(0)"),
    "it answers with nothing": lambda hooks: (hooks / "fast.py").write_text("def main(*_): ..."),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_crash_denies(scene: Scene, copied: Path, harm: str) -> None:
    HARM[harm](copied)
    content = scene.payload("Read")

    denied = outcome(fast_command(scene, hooks=copied), content)

    assert (denied.code, denied.out) == (2, b"")
    assert denied.err.startswith("The gate cannot say whether this may happen (")
    assert "interlock install claude-code" in denied.err
    for event in NOTED:
        told = outcome(fast_command(scene, event, hooks=copied), content)
        assert (told.code, told.out) == (0, b"")


def test_a_file_that_is_gone_denies(scene: Scene, copied: Path) -> None:
    (copied / "start.py").unlink()

    denied = outcome(fast_command(scene, hooks=copied), scene.payload("Read"))

    assert (denied.code, denied.out) == (2, b"")
    assert denied.err


def test_a_command_that_was_cut_off_denies(scene: Scene) -> None:
    assert outcome(fast_command(scene)[:6], scene.payload("Read")).code == 2


def test_a_full_hook_that_cannot_start_fails(scene: Scene) -> None:
    nowhere = fast_command(scene, flags=("-I", "-S"))  # so Python does not find Interlock

    denied = outcome(nowhere, scene.payload("Write"))

    assert (denied.code, denied.out) == (1, b""), "of which the launcher makes a denial"
    assert "No module named interlock" in denied.err
    assert outcome(nowhere, scene.payload("Read")) == HookResult()


def test_it_works_without_bytecode_and_with_that_of_another_python(
    scene: Scene, copied: Path
) -> None:
    command, content = fast_command(scene, hooks=copied), scene.payload("Read")
    assert not (copied / "__pycache__").exists()
    assert outcome(command, content) == HookResult()

    (bytecode,) = (copied / "__pycache__").glob("fast.*")
    whole = bytecode.read_bytes()
    for old in (b"", b"\0\0\r\n" + whole[4:], whole[:8] + bytes(8) + whole[16:]):
        bytecode.write_bytes(old)
        assert outcome(command, content) == HookResult()
        assert bytecode.read_bytes() == whole
    bytecode.write_bytes(whole[:20])
    assert outcome(command, content).code == 2


def test_what_lies_in_the_project_is_not_imported(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fast", "posix", "time", "_json", "_sqlite3", "functools", "sitecustomize"):
        (scene.project / f"{name}.py").write_text("raise SystemExit(7)")
    scene.goes_to("coding")
    monkeypatch.setenv("PYTHONPATH", f"{scene.project}{os.pathsep}{Path(fast.__file__).parents[2]}")
    monkeypatch.setenv("PYTHONSTARTUP", str(scene.project / "fast.py"))

    done = outcome(fast_command(scene), scene.payload("Write", INPUTS["edit"]), scene.project)

    assert done == HookResult()


WATCHED = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
before = set(sys.modules)
{prelude}
from interlock.hooks.fast import main
code = main(*sys.argv[1:])
print(*sorted(set(sys.modules) - before), file=sys.stderr)
sys.exit(code)
"""


def watched(
    scene: Scene, content: bytes, prelude: str = "", event: HookEvent = "pre-tool"
) -> HookResult:
    program = WATCHED.format(prelude=prelude)
    words = [sys.executable, "-I", "-S", "-c", program, str(HOOKS.parents[1]), scene.host.name]
    return outcome([*words, event, str(scene.home), *FLAGS], content)


def foreign_imports(done: HookResult) -> list[str]:
    """The modules of others that were imported; ours must be compiled by an install."""
    assert done.out == b""
    names = set(done.err.split())
    own = {name for name in names if name.startswith("interlock")}
    files = (f"interlock/{name}".removesuffix("/__init__.py") for name in STANDALONE)
    assert own <= {file.removesuffix(".py").replace("/", ".") for file in files}
    return sorted(names - own)


def test_no_more_is_imported_than_is_needed(host_scene: Scene) -> None:
    host_scene.goes_to("coding")
    tools, given = host_scene.host.tools, inputs_of(host_scene.host.name)
    read, edit, shell = (tools[kind].split()[0] for kind in ("read", "edit", "shell"))

    assert foreign_imports(watched(host_scene, host_scene.payload(read))) == ["_json"]
    run = watched(host_scene, host_scene.payload(shell, given["shell"]))
    assert foreign_imports(run) == ["_json", "_sqlite3"]
    command = host_scene.payload(shell, given["shell"], tool_response={"exit": 0})
    host_scene.full(command, "post-tool")
    noted = watched(host_scene, command, event="post-tool")
    assert foreign_imports(noted) == ["_json", "_sqlite3"]
    if host_scene.host.name != "codex":  # a patch is for the full hook
        written = watched(host_scene, host_scene.payload(edit, given["edit"]))
        assert foreign_imports(written) == ["_json", "_sqlite3"]


def test_where_there_is_no_memory_file_the_payload_goes_through_a_file_that_is_removed(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "temporary"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    content = scene.payload("Write", {**INPUTS["edit"], "content": "x" * 10**6})

    done = watched(scene, content, "import posix; del posix.memfd_create")

    assert done.out == outcome(full_command(scene), content).out
    assert b'"deny"' in done.out
    assert list(kept.iterdir()) == []


def test_lines_that_are_left_at_the_same_time_are_whole(scene: Scene) -> None:
    content = scene.payload("Write", INPUTS["edit"])
    scene.full(content, "post-tool")

    started = [
        subprocess.Popen(fast_command(scene, "post-tool"), stdin=subprocess.PIPE) for _ in range(12)
    ]
    for process in started:
        process.communicate(content)

    assert [process.returncode for process in started] == [0] * 12
    lines = list(spool.lines(scene.home))
    assert [(line.event, line.tool, line.host_session) for line in lines] == [
        ("post-tool", "Write", "host-1")
    ] * 13


SLOW = """
import sys, time
from interlock.app.gate import bound_conversations
from interlock.cli import commands, hook
from interlock.hooks import fast
fast.BUDGET_SECONDS = hook.BUDGET_SECONDS = 1
"""
SLOW_HOOKS = {
    "fast": "fast.run = lambda *_: time.sleep(60)\nfast.main('claude-code', 'pre-tool', '/none')",
    "full": "bound_conversations.governing_project = lambda *_: time.sleep(60)\n"
    "sys.exit(commands.run_cli(['hook', '--host=claude-code', '--event=pre-tool']))",
}


@pytest.mark.parametrize("name", SLOW_HOOKS)
def test_a_hook_that_takes_too_long_denies(name: str, home: Path, tmp_path: Path) -> None:
    """The budget is less than the client's patience, after which some would let the call pass."""
    opt_in(tmp_path, "standard")
    python = tmp_path / "python"
    code = shlex.quote(SLOW + SLOW_HOOKS[name])
    python.write_text(f"#!/bin/sh\nexec {sys.executable} -c {code}\n")
    python.chmod(0o755)
    launcher = tmp_path / "launch"
    launcher.write_text(launcher_text(Program(str(python), (), str(home))))

    denied = subprocess.run(
        ["/bin/sh", launcher, "hook", "claude-code", "pre-tool"],
        input=b"{}",
        capture_output=True,
        cwd=tmp_path,
        timeout=30,
        check=False,
    )

    assert denied.returncode == 2
