"""The clients that run in a project: those whose hooks are heard, and those whose are not."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.agents.hosts.registry import NAMES
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.app.gate import gate_journal
from interlock.app.hosts.proofs import PROBE_SESSION_PREFIX
from interlock.workspace.machine import clients, processes
from interlock.workspace.machine.processes import Process
from tests.app.hosts.doctor_scene import Scene
from tests.app.hosts.installs import write
from tests.scenes import started

CONFIG = '[mcp]\ntoolsets = ["workflow"]\n'


@pytest.fixture
def scene(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Scene:
    made = Scene(home, tmp_path, getattr(request, "param", "claude-code"))
    write(Path.home() / ".gemini" / "trustedFolders.json", f'{{"{made.root}": "TRUST_FOLDER"}}')
    return made


each_host = pytest.mark.parametrize("scene", NAMES, indirect=True)


@contextmanager
def running(words: list[str], directory: Path) -> Generator[Process]:
    """A process that waits, with what it starts, until this ends."""
    process = subprocess.Popen(words, cwd=directory, stdin=subprocess.PIPE, start_new_session=True)
    try:
        (found,) = processes.running_processes([process.pid])
        yield found
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def client_in(directory: Path, program: str, base: Path) -> Generator[Process]:
    """A client, as far as its name tells: a `sleep` that is called so."""
    copy = base / "clients" / program
    copy.parent.mkdir(exist_ok=True)
    shutil.copy("/bin/sleep", copy)
    with running([str(copy), "60"], directory) as process:
        yield process


def remember(scene: Scene, process: Process, *, at_ms: int) -> None:
    clients.remember(scene.home, process, scene.host.name, "talk", now_ms=at_ms)


@each_host
def test_a_client_that_runs_here_and_whose_hooks_are_not_heard_is_found(
    scene: Scene, tmp_path: Path
) -> None:
    assert scene.problems() == {}
    below = scene.root / "src"
    below.mkdir()

    with client_in(below, scene.host.program, tmp_path) as process:
        (check,) = [check for check in scene.checks() if not check.is_ok]
        what = (
            f"{scene.host.title} runs here (process {process.pid}), but none of its hooks reported"
        )
        assert (check.name, check.what) == ("silent", what)
        assert check.hint.startswith("Restart it, then check again.")
        remember(scene, process, at_ms=SystemClock().now_ms())
        assert scene.problems() == {}


def test_a_client_that_runs_elsewhere_is_none_of_our_business(scene: Scene, tmp_path: Path) -> None:
    beside = tmp_path / "project-2"
    beside.mkdir()

    with (
        client_in(beside, "claude", tmp_path),
        client_in(scene.root, "codex", tmp_path),
        client_in(scene.root, "claude-like", tmp_path),
    ):
        assert scene.problems() == {}


SCRIPTS = {
    "claude-code": "@anthropic-ai/claude-code/cli.js",
    "codex": "@openai/codex/bin/codex.js",
    "gemini": "@google/gemini-cli/bundle/index.js",
    "opencode": "opencode-ai/bin/run",
    "copilot": "@github/copilot/index.js",
}


@pytest.mark.parametrize("scene", SCRIPTS, indirect=True)
def test_a_client_that_is_a_script_is_found_too(scene: Scene, tmp_path: Path) -> None:
    script = write(tmp_path / "lib" / SCRIPTS[scene.host.name], "read line\n")

    with running(["/bin/sh", str(script)], scene.root):
        assert set(scene.problems()) == {"silent"}


def test_what_a_known_client_starts_is_no_client_that_is_silent(
    scene: Scene, tmp_path: Path
) -> None:
    """Some begin with a process that starts the real one, and others are many."""
    script = write(tmp_path / "claude", f"#!/bin/sh\n{tmp_path}/clients/claude 60\n")
    script.chmod(0o755)

    with client_in(tmp_path, "claude", tmp_path), running([str(script)], scene.root) as outer:
        inner = child_of(outer.pid)
        assert {check.name for check in scene.checks() if not check.is_ok} == {"silent"}
        for known in (outer, inner):
            remember(scene, known, at_ms=SystemClock().now_ms())
            assert scene.problems() == {}
            clients.forget(scene.home, scene.host.name, "talk")


def child_of(parent: int) -> Process:
    for _ in range(1_000):
        time.sleep(0.01)
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if found := processes.running_processes(map(int, children)):
            return found[0]
    raise AssertionError("it has started nothing")


TOOLSETS: dict[str, tuple[str, int, bool]] = {
    "changed since": (CONFIG, 60_000, True),
    "changed before": (CONFIG, -60_000, False),
    "names none": ("[preferences]\n", 60_000, False),
    "cannot be used": ("[mcp", 60_000, False),
}


@pytest.mark.parametrize("name", TOOLSETS)
def test_toolsets_that_were_chosen_after_the_client_began_need_a_new_one(
    name: str, scene: Scene, tmp_path: Path
) -> None:
    text, later_ms, is_told = TOOLSETS[name]
    config = write(scene.home / "config.toml", text)

    with client_in(scene.root, "claude", tmp_path) as process:
        remember(scene, process, at_ms=round(config.stat().st_mtime * 1_000) - later_ms)
        found = [check for check in scene.checks() if check.name == "toolsets"]

    what = f"`{config}` was changed after Claude Code began (process {process.pid})"
    hint = "Restart it to get the toolsets that it names."
    assert [(check.what, check.hint) for check in found] == ([(what, hint)] if is_told else [])


HEARD: dict[str, Callable[[Scene], None]] = {
    "a client that began": lambda scene: remember(
        scene, Process(1, "then", "client"), at_ms=SystemClock().now_ms()
    ),
    "a call that was denied": lambda scene: gate_journal.journal_event(
        scene.home, scene.host.name, "pre-tool", "talk", tool="Write"
    ),
    "a command that was run": lambda scene: gate_journal.journal_event(
        scene.home, scene.host.name, "post-tool", "talk", tool="Bash", outcome="success"
    ),
}
NOT_HEARD: dict[str, Callable[[Scene], None]] = {
    "a probe of ours": lambda scene: gate_journal.journal_event(
        scene.home, scene.host.name, "pre-tool", f"{PROBE_SESSION_PREFIX}1", tool="Write"
    ),
    "a command of another client": lambda scene: gate_journal.journal_event(
        scene.home, "emacs", "post-tool", "talk", tool="Bash", outcome="success"
    ),
    "a client that began long ago": lambda scene: remember(
        scene, Process(1, "then", "client"), at_ms=1
    ),
}


@pytest.mark.parametrize(
    ("scene", "sign"),
    [
        *((name, "a call that was denied") for name in NAMES),
        *(("claude-code", sign) for sign in HEARD if sign != "a call that was denied"),
    ],
    indirect=["scene"],
)
def test_work_without_a_word_from_the_hooks_is_found(scene: Scene, sign: str) -> None:
    app = open_app(scene.home)
    started(app, scene.root)
    app.close()
    for seed in NOT_HEARD.values():
        seed(scene)
    title = scene.host.title
    what = f"1 session ran here, but no hook of {title} reported"
    assert scene.problems() == {"heard": what}

    HEARD[sign](scene)

    assert scene.problems() == {}


@each_host
def test_what_the_user_must_do_for_the_hooks_is_in_the_hint(scene: Scene) -> None:
    """A Codex that was not asked about them says nothing, for example."""
    app = open_app(scene.home)
    started(app, scene.root)
    app.close()

    (check,) = [check for check in scene.checks() if check.name == "heard"]

    wanted = scene.host.after_install
    assert check.hint.startswith(f"Restart {scene.host.title}.")
    assert check.hint.endswith(wanted[0] if wanted else f"Restart {scene.host.title}.")


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("2.1.324 (Claude Code)", "2.1.324: a hook that takes too long lets the tool call pass"),
        ("2.1.325 (Claude Code)", ""),
        ("2.2.0 (Claude Code)", ""),
        ("3", ""),
        ("unknown", ""),
        ("", ""),
    ],
)
def test_an_older_claude_code_is_told_to_be_updated(
    version: str, wanted: str, scene: Scene
) -> None:
    scene.has_client(version)

    problems = scene.problems()

    assert problems == ({"client": f"Claude Code {wanted}"} if wanted else {})


def test_a_client_that_is_not_on_the_path_is_not_asked(scene: Scene) -> None:
    scene.client.unlink()

    assert "client" not in [check.name for check in scene.checks()]
    assert scene.problems() == {}
