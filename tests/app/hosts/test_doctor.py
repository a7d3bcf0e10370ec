"""The doctor finds each fault that is seeded, and nothing where there is none."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.claude_code_shell import SHELL_VARIABLE
from interlock.agents.hosts.host import LAUNCHER, matcher_groups
from interlock.agents.hosts.launcher import STANDALONE, Program
from interlock.agents.hosts.own_entries import home_in
from interlock.app.clock import SystemClock
from interlock.app.context import open_app
from interlock.app.gate import overrides
from interlock.app.hosts import clients, doctor, proofs
from interlock.app.hosts import install as installing
from interlock.app.hosts.install import InstallReport, install, uninstall, write_plugin
from interlock.app.hosts.proofs import Check
from interlock.workspace.machine import install_manifest
from tests.app.hosts.doctor_scene import Scene
from tests.scenes import started


@pytest.fixture
def scene(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(doctor, "landlock_abi", lambda: 7)
    return Scene(home, tmp_path)


def test_where_nothing_is_wrong_everything_is_checked(scene: Scene) -> None:
    before = sorted(scene.root.rglob("*"))

    checks = scene.checks()

    assert [(check.name, check.what, check.hint) for check in checks] == [
        ("project", f"`{scene.root}` has opted in (profile standard)", ""),
        ("settings", f"`{scene.settings}` can be read", ""),
        ("hooks", "10 hooks in files of Claude Code, yours", ""),
        ("program", f"`{scene.launcher}` starts interlock 0", ""),
        ("sandbox", "In analysis and planning commands cannot write (Landlock 7)", ""),
        ("client", f"Claude Code 2.1.325: {claude_code.HOST.enforcement}", ""),
        ("server", "The MCP server starts and has 2 tools", ""),
        ("gate", "The gate is on", ""),
        ("block", "A write of an unknown session was denied", ""),
        ("pass", "A read passed", ""),
        ("heard", "No session ran here in the last day", ""),
    ]
    assert sorted(scene.root.rglob("*")) == before


def test_exit_code_2_with_a_reason_denies_too(scene: Scene) -> None:
    scene.answers(scene.stand_in.replace(f"echo '{scene.denial}'", "echo no >&2; exit 2"))

    assert scene.problems() == {}


def without(*path: str | int) -> Callable[[Any], object]:
    def change(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        del found[path[-1]]

    return change


FAULTS: dict[str, tuple[Callable[[Scene], object], str]] = {
    "not opted in": (lambda s: (s.root / ".interlock" / "config.toml").unlink(), "project"),
    "config broken": (
        lambda s: (s.root / ".interlock" / "config.toml").write_text("profile ="),
        "project",
    ),
    "settings are not JSON": (lambda s: s.settings.write_text("{"), "settings hooks integrity"),
    "the gate fails open": (
        lambda s: s.change(s.settings, without("hooks", "PreToolUse", 0, "hooks", 0, "onFailure")),
        "hooks integrity",
    ),
    "the interpreter cannot be run": (lambda s: s.interpreter.chmod(0o644), "program server"),
    "another data home": (
        lambda s: s.settings.write_text(s.settings.read_text().replace(str(s.home), f"{s.home}x")),
        "hooks program home pass integrity",
    ),
    "no shell of ours": (
        lambda s: s.change(s.settings, without("env")),
        "hooks sandbox integrity",
    ),
    "our shell is gone": (
        lambda s: s.launcher.with_name(f"{LAUNCHER}-bash").unlink(),
        "hooks sandbox integrity",
    ),
    "servers are not JSON": (lambda s: s.servers.write_text("["), "hooks server"),
    "a server without a command": (
        lambda s: s.change(s.servers, without("mcpServers", "interlock", "command")),
        "hooks server",
    ),
    "a server that says nothing": (
        lambda s: s.answers(s.stand_in.replace("*mcp)", "*mcp) exit 1;;\n*none)")),
        "server",
    ),
    "a server that cannot be called": (
        lambda s: s.answers(s.stand_in.replace("*mcp)", "*mcp) trap 'exit 1' EXIT;")),
        "server",
    ),
    "a gate that only asks": (
        lambda s: s.answers(s.stand_in.replace('"deny"', '"ask"')),
        "block",
    ),
    "a gate that talks": (
        lambda s: s.answers(s.stand_in.replace(s.denial, "denied, I think")),
        "block",
    ),
    "a gate that denies in silence": (
        lambda s: s.answers(s.stand_in.replace(f"echo '{s.denial}'", "exit 2")),
        "block",
    ),
    "a gate that was switched off": (lambda s: overrides.start_override(s.home), "gate"),
    "a gate that was switched off in no way that is known": (
        lambda s: (s.home / overrides.OVERRIDE_FILE).write_text("off"),
        "gate",
    ),
    "a config that nobody has trusted": (
        lambda s: (s.root / ".interlock" / "config.toml").write_text(
            '[project]\nprofile = "light"\n'
        ),
        "config",
    ),
    "notes that are not ours": (
        lambda s: (s.home / install_manifest.FILE).write_text("{}"),
        "hooks heard",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_comes_with_what_to_do(scene: Scene, fault: str) -> None:
    seed, wanted = FAULTS[fault]
    seed(scene)

    problems = [check for check in scene.checks() if not check.is_ok]

    assert {check.name for check in problems} == set(wanted.split())
    assert all(check.what and check.hint for check in problems)


@pytest.mark.slow
def test_a_hook_or_a_server_that_hangs_is_not_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "HOOK_SECONDS", 0.2)
    monkeypatch.setattr(proofs, "HOOK_SECONDS", 0.2)
    monkeypatch.setattr(proofs, "SERVER_SECONDS", 0.2)
    scene.answers("#!/bin/sh\nsleep 60 & wait\n")

    problems = scene.problems()

    assert problems["block"] == "The hook before tool calls has not answered within 0.2 s"
    assert problems["server"].endswith("has not answered within 0.2 s")


def test_a_gate_that_is_off_explains_why_nothing_was_denied(scene: Scene) -> None:
    overrides.start_override(scene.home)
    scene.answers(scene.stand_in.replace(f"echo '{scene.denial}'", ":"))

    problems = scene.problems()

    assert problems["block"].endswith("because the gate is off")
    assert "for 60 more minutes" in problems["gate"]


def test_a_gate_that_comes_from_two_files_is_proved_twice(scene: Scene) -> None:
    scene.write_project_settings(
        json.dumps({"hooks": matcher_groups(scene.host, f"{scene.home}/../elsewhere", "user")})
    )

    checks = scene.checks()

    assert [check.is_ok for check in checks if check.name == "block"] == [True, True]
    assert [check.is_ok for check in checks if check.name == "pass"] == [True, False]
    assert [check.what for check in checks if check.name == "program" and not check.is_ok] == [
        f"The hooks name `{scene.home}/../elsewhere/launch`, which is not there"
    ]


@pytest.mark.parametrize("whose", ["user", "project"])
def test_a_shell_that_is_not_ours_is_told_and_is_no_problem(scene: Scene, whose: str) -> None:
    theirs = {SHELL_VARIABLE: "/opt/bin/zsh"}
    if whose == "user":
        scene.change(scene.settings, lambda found: found.update(env=theirs))
    else:
        scene.write_project_settings(json.dumps({"env": theirs}))
    what = "The settings name a shell (`/opt/bin/zsh`), so the gate asks before a command that"

    assert [check for check in scene.checks() if check.name == "sandbox"] == [
        Check("sandbox", f"{what} may write")
    ]


def test_a_machine_that_cannot_confine_is_told_and_is_no_problem(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "landlock_abi", lambda: 0)

    (check,) = [check for check in scene.checks() if check.name == "sandbox"]

    assert check.is_ok
    assert check.what.startswith("This machine cannot confine commands")


def test_a_server_that_only_this_project_has_in_the_users_file_counts(scene: Scene) -> None:
    entry = json.loads(scene.servers.read_text())["mcpServers"]
    scene.servers.unlink()
    found = {"projects": {str(scene.root): {"mcpServers": entry}}}
    (Path.home() / ".claude.json").write_text(json.dumps(found))

    assert "server" not in scene.problems()


def test_a_plugin_alone_is_proved_as_the_settings_are(scene: Scene) -> None:
    assert isinstance(uninstall(scene.home, scene.host, "user", Path.home()), InstallReport)
    assert isinstance(write_plugin(scene.program), InstallReport)

    checks = scene.checks()

    assert [check.what for check in checks if not check.is_ok] == []
    assert "A write of an unknown session was denied" in [check.what for check in checks]


def test_work_from_before_the_install_needs_no_hooks(scene: Scene, tmp_path: Path) -> None:
    app = open_app(scene.home)
    started(app, scene.root)
    started(app, tmp_path)
    app.close()
    scene.program = msgspec.structs.replace(scene.program, flags=("-P",))
    scene.install(at_ms=SystemClock().now_ms() + 1)

    assert scene.problems() == {}


@pytest.mark.sqlite
def test_a_store_that_cannot_be_read_is_told(scene: Scene) -> None:
    (scene.home / "interlock.db").write_bytes(b"not a database, " * 100)

    assert set(scene.problems()) == {"heard"}


def test_an_install_compiles_whatever_the_variables_say(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "STANDALONE", STANDALONE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    sources = [tmp_path / "site" / name for name in STANDALONE]
    for source in sources:
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("x = 1\n")
    program = Program(sys.executable, ("-P",), str(home), str(tmp_path / "site"))

    done = install(home, claude_code.HOST, "user", tmp_path, program, at_ms=1)

    assert isinstance(done, InstallReport)
    assert done.notes == ()
    for source in sources:
        assert list((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"))
    sources[-1].write_text("x =\n")
    done = install(home, claude_code.HOST, "user", tmp_path, program, at_ms=1)
    assert isinstance(done, InstallReport)
    assert "cannot be compiled now" in done.notes[0]


_CALL = '[ -r "$L" ] && exec /bin/sh "$L" hook'
_SHARED = 'd=$PWD; exec /bin/sh "$d/.interlock/launch" hook'


@pytest.mark.parametrize(
    ("command", "is_own", "home"),
    [
        (f"L='/h/launch'; {_CALL} claude-code stop; exit 0", True, "/h"),
        (f"L='/my h/launch'; {_CALL} claude-code pre-tool; exit 2", True, "/my h"),
        (f"L='/O'\\''Brien/launch'; {_CALL} claude-code stop; exit 0", True, "/O'Brien"),
        (f"L=/h/launch; {_CALL} claude-code stop; exit 0", True, ""),  # as it once was
        (f"export INTERLOCK_SHARED=1; L='/h/launch'; {_CALL} claude-code stop", True, "/h"),
        (f"{_SHARED} claude-code stop; exit 0", True, ""),
        (f"L='/h/launch'; {_CALL} codex stop; exit 0", False, "/h"),
        (f"L='/h/launch'; {_CALL} claude-codex stop; exit 0", False, "/h"),
        ("/bin/sh /h/launch hook claude-code stop", False, ""),
        ('/bin/sh "/h/launcher" hook claude-code stop', False, ""),
        ("python -m interlock hook --host claude-code --event stop", False, ""),
        ("", False, ""),
    ],
)
def test_only_what_starts_our_launcher_is_ours(command: str, is_own: object, home: str) -> None:
    assert claude_code.HOST.is_own_command(command) == is_own
    assert home_in(command) == home
