"""The doctor of every host: nothing is wrong after an install, and each fault has its name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.agents.hosts import codex
from interlock.agents.hosts.host import JsonPart, OwnFile, TomlPart
from interlock.agents.hosts.registry import NAMES
from interlock.app.clock import SystemClock
from interlock.app.hosts.install import Scope
from tests.app.hosts.doctor_scene import VERSIONS, Scene
from tests.app.hosts.installs import PLACES, SCOPES, write

in_places = pytest.mark.parametrize("place", PLACES, ids="-".join)


@pytest.fixture
def place() -> tuple[str, Scope]:
    return "claude-code", "user"


@pytest.fixture
def scene(place: tuple[str, Scope], home: Path, tmp_path: Path) -> Scene:
    made = Scene(home, tmp_path, *place)
    if made.host.name == "gemini":
        trust_folder(made.root)
    return made


def trust_folder(folder: Path, rule: str = "TRUST_FOLDER") -> Path:
    return write(Path.home() / ".gemini" / "trustedFolders.json", f'{{"{folder}": "{rule}"}}')


@in_places
def test_after_an_install_nothing_is_wrong_and_a_denial_is_proved(scene: Scene) -> None:
    before = sorted(scene.root.rglob("*"))

    checks = scene.checks()

    assert [(check.name, check.what) for check in checks if not check.is_ok] == []
    whose = "yours" if scene.scope == "user" else "the project's"
    title, count = scene.host.title, len(scene.host.events)
    facts = {check.name: check.what for check in checks}
    assert facts["hooks"] == f"{count} hooks in files of {title}, {whose}"
    assert facts["program"] == f"`{scene.launcher}` starts interlock 0"
    (version,) = [word for word in VERSIONS[scene.host.name].split() if word[0].isdigit()]
    untried = "" if scene.host.is_tried else " (from its documentation, not tried)"
    assert facts["client"] == f"{title} {version}: {scene.host.enforcement}{untried}"
    assert facts["server"] == "The MCP server starts and has 2 tools"
    assert facts["block"] == "A write of an unknown session was denied"
    assert facts["pass"] == "A read passed"
    assert sorted(scene.root.rglob("*")) == before


def hooks_gone(scene: Scene) -> None:
    """Whatever holds our hooks holds none of them any more."""
    first = scene.files()[0] if scene.host.name != "gemini" else hook_file_of_gemini(scene)
    if first in scene.files(OwnFile):
        first.unlink()
    else:
        scene.change(first, lambda found: found.pop("hooks"))


def hook_file_of_gemini(scene: Scene) -> Path:
    return next(path for path in scene.files() if path.name in ("hooks.json", "settings.json"))


def server_gone(scene: Scene) -> None:
    for path in scene.files(JsonPart):
        scene.change(path, lambda found: [found.pop(key, 0) for key in ("mcpServers", "servers")])
        scene.change(path, lambda found: found.pop("mcp", 0))
    for path in scene.files(TomlPart):
        path.write_text("")
    for path in scene.files(OwnFile):
        if path.name == "gemini-extension.json":
            scene.change(path, lambda found: found.pop("mcpServers"))


def let_all_pass(scene: Scene) -> None:
    scene.answers(scene.stand_in.replace(f"echo '{scene.denial}'", ":"))


def deny_all(scene: Scene) -> None:
    scene.answers(scene.stand_in.replace('case "$(cat)"', "echo no >&2; exit 2; case x"))


FAULTS: dict[str, tuple[Callable[[Scene], object], str]] = {
    "hooks are gone": (hooks_gone, "hooks integrity"),
    "the launcher is gone": (
        lambda scene: scene.launcher.unlink(),
        "hooks program server {pass} integrity",
    ),
    "the interpreter is gone": (lambda s: s.interpreter.unlink(), "program server"),
    "the gate lets all pass": (let_all_pass, "block"),
    "the gate denies all": (deny_all, "pass"),
    "the server is gone": (server_gone, "server"),
}
MORE = {"the server is gone": {"hooks", "integrity"}}
"""What else may be reported, because some hosts have all of ours in one file."""
REPAIRED = ("hooks are gone", "the launcher is gone", "the server is gone")
"""Faults that the next install repairs."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@in_places
def test_a_fault_is_found_and_comes_with_what_to_do(scene: Scene, fault: str) -> None:
    seed, wanted = FAULTS[fault]
    seed(scene)

    problems = [check for check in scene.checks() if not check.is_ok]

    # Without any launcher the user's hooks deny all, and a project's let all pass.
    wanted = wanted.format(**{"pass": "pass" if scene.scope == "user" else "block"})
    names = {check.name for check in problems} - MORE.get(fault, set())
    assert names == set(wanted.split())
    assert all(check.what and check.hint for check in problems)
    if fault in REPAIRED:
        scene.install(at_ms=SystemClock().now_ms())
        assert scene.problems() == {}


@pytest.mark.parametrize("host", NAMES)
def test_two_scopes_are_told_and_are_no_problem(host: str, home: Path, tmp_path: Path) -> None:
    scene = Scene(home, tmp_path, host)
    trust_folder(scene.root)
    scene.install(at_ms=1, scope="project")

    checks = scene.checks()

    told = {check.name: check.what for check in checks}
    assert told["twice"] == "Installed for you and in the project: the project's stay silent"
    assert [(check.name, check.what) for check in checks if not check.is_ok] == []


@in_places
def test_only_a_project_install_needs_its_client_to_start_at_the_top(scene: Scene) -> None:
    below = scene.root / "src"
    below.mkdir()

    problems = scene.problems(below)

    if scene.scope == "user":
        assert problems == {}
    else:
        what = f"Only the project's files name Interlock, and this is not `{scene.root}`"
        assert problems == {"start": what}


SWITCHED_OFF: dict[str, tuple[str, str, str]] = {
    "claude-code": (".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks"),
    "claude-code server": (
        ".claude/settings.local.json",
        '{"disabledMcpjsonServers": ["interlock"]}',
        "disabledMcpjsonServers",
    ),
    "codex": (".codex/config.toml", "[features]\nhooks = false\n", "hooks = false"),
    "gemini": (
        ".gemini/settings.json",
        '{"hooksConfig": {"enabled": false}}',
        "hooksConfig.enabled",
    ),
    "gemini by name": (
        ".gemini/settings.json",
        '{"hooksConfig": {"disabled": ["interlock"]}}',
        "hooksConfig.disabled",
    ),
}


@pytest.mark.parametrize("case", SWITCHED_OFF)
def test_hooks_that_the_settings_switch_off_are_found(
    case: str, home: Path, tmp_path: Path
) -> None:
    scene = Scene(home, tmp_path, case.partition(" ")[0])
    trust_folder(scene.root)
    name, text, word = SWITCHED_OFF[case]
    path = write(scene.root / name, text)

    problems = scene.problems()

    assert set(problems) == {"settings"}
    assert problems["settings"].startswith(f"`{path}` ")
    assert word in problems["settings"]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("trust", ["untrusted", "modified", "trusted", "managed"])
def test_codex_is_asked_whether_it_trusts_our_hooks(
    trust: str, scope: Scope, home: Path, tmp_path: Path
) -> None:
    scene = Scene(home, tmp_path, "codex", scope)
    scene.has_client(VERSIONS["codex"], trust)

    problems = [check for check in scene.checks() if not check.is_ok]

    if trust in ("trusted", "managed"):
        assert problems == []
    else:
        (check,) = problems
        assert (check.name, check.what) == (
            "trust",
            "Codex does not trust 9 of 9 hooks, and skips them",
        )
        assert check.hint == codex.HOST.after_install[0]


@pytest.mark.parametrize("answer", ["", "{", "[]", '{"id": 1}', '{"id": 1, "error": {"code": 1}}'])
def test_a_codex_that_does_not_tell_is_no_problem(answer: str, home: Path, tmp_path: Path) -> None:
    scene = Scene(home, tmp_path, "codex")
    scene.client.with_name("hooks.jsonl").write_text(answer)

    assert scene.problems() == {}


TRUSTED: dict[str, tuple[str, str, bool]] = {
    "the folder": ("", "TRUST_FOLDER", True),
    "a folder above": ("..", "TRUST_FOLDER", True),
    "by a file beside it": ("../other", "TRUST_PARENT", True),
    "not at all": ("", "DO_NOT_TRUST", False),
    "another one": ("../other", "TRUST_FOLDER", False),
    "one with a longer name": ("../project-2", "TRUST_FOLDER", False),
    "one below": ("src", "TRUST_FOLDER", False),
}


@pytest.mark.parametrize("name", TRUSTED)
def test_gemini_must_trust_the_folder(name: str, home: Path, tmp_path: Path) -> None:
    scene = Scene(home, tmp_path, "gemini")
    what = f"Gemini CLI does not trust `{scene.root}`, so it starts no MCP server there"
    assert scene.problems() == {"trust": what}, "nobody has said anything"
    folder, rule, is_trusted = TRUSTED[name]

    trust_folder((scene.root / folder).resolve(), rule)

    assert scene.problems() == ({} if is_trusted else {"trust": what})


def test_a_plugin_of_opencode_that_is_not_ours_is_no_gate(home: Path, tmp_path: Path) -> None:
    """Somebody's file of the same name, which an install leaves alone."""
    scene = Scene(home, tmp_path, "opencode")
    plugin = next(path for path in scene.files(OwnFile) if path.suffix == ".js")
    plugin.unlink()
    (home / "installed.json").unlink()
    write(plugin, "export const Theirs = async () => ({})\n")

    assert "hooks" in scene.problems()
