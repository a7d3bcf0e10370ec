"""The fast hook against the full one: in every state, for every tool, whatever it says holds."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES
from interlock.app.gate import overrides
from interlock.core.gate.paths import ALWAYS_PROTECTED
from interlock.core.gate.secret_files import SECRETS
from interlock.core.gate.state import MODES, Mode
from interlock.core.gate.tools import OWN_PREFIXES, OWN_TOOLS
from interlock.hooks import fast
from interlock.hooks.hook_result import HookResult
from tests.effort import EFFORT
from tests.hooks.clients import TOOLS
from tests.hooks.scene import HOST, INPUTS, PLAIN_HOSTS, UNLISTED, Scene, inputs_of, tools_of

FULL_HOOK_PREFIXES = ("MCP:", "interlock-")
"""Prefixes of our tools in the hosts whose payloads only the full hook reads."""
MODE_INPUTS: tuple[dict[str, Any], ...] = (
    *({}, {"mode": "coding"}, {"Mode": " CODING"}, {"mode": "co-ding"}, {"mode": "c\u00adoding"}),
    *({"mode": "disabled"}, {"MODE": "Dis abled"}, {"mode": "planning"}, {"task": "the mode"}),
)
"""Inputs of our tool `session`, as generously as the server reads them."""


def inputs(kind: str, scene: Scene) -> Iterator[object]:
    yield inputs_of(scene.host.name).get(kind, {})
    if kind == "own":
        yield {"mode": "coding"}
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
        for key in ("filePath", "absolute_path", "target_file"):
            yield {key: "<PROJECT>/.mcp.json", "content": "x"}
        yield from (
            "*** Add File: .mcp.json",
            {"command": "*** Add File: .mcp.json"},
            {"filePath": "<PROJECT>/a", "patchText": "*** Add File: .mcp.json"},
            {"file_path": ".mcp.json"},
            {"file_path": ["<PROJECT>/a"]},
            {},
            [],
            None,
        )
    if kind == "shell":
        commands = ("interlock mode disabled", "touch .git/hooks/x", "rm -rf build", "make", "")
        yield from ({"command": command} for command in commands)
        for command in ("touch project/a", f"make -C {scene.project}", "ls project"):
            yield {"command": command}
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
    "a row of another host": lambda s: s.sql("UPDATE gate SET host = 'copilot'"),
    "a mode that is not known": lambda s: s.sql("UPDATE gate SET mode = 'yolo'"),
    "a mode that is no text": lambda s: s.sql("UPDATE gate SET mode = x'636f64696e67'"),
    "not started": lambda s: s.sql("UPDATE gate SET is_started = 0"),
    "started in no way that is known": lambda s: s.sql("UPDATE gate SET is_started = 'yes'"),
    "not simple": lambda s: s.sql("UPDATE gate SET is_simple = 0"),
    "a strict project": lambda s: s.asks('[project]\nprofile = "strict"\n'),
    "a project with rules of its own": lambda s: s.asks('[gate]\nprotected = ["a.py"]\n'),
    "a project that lists tools": lambda s: s.asks('[gate]\nreading_tools = ["Brandnew"]\n'),
    "the gate is off": lambda s: overrides.start_override(s.home),
    "the gate was off": lambda s: (s.home / overrides.OVERRIDE_FILE).write_text(
        '{"who": "", "untilMs": 1}'
    ),
    "the gate is off in no way that is known": lambda s: (
        s.home / overrides.OVERRIDE_FILE
    ).write_text("off"),
    "the config says more by now": lambda s: s.config.write_text('[gate]\nprotected = ["a.py"]\n'),
    "the config is broken by now": lambda s: s.config.write_text("[project\n"),
    "the config leads nowhere": lambda s: (s.config.unlink(), s.config.symlink_to("gone")),
    "the config is a directory": lambda s: (s.config.unlink(), s.config.mkdir()),
    "opted out": lambda s: s.config.unlink(),
    "above, bound to nothing": lambda s: (s.sql("DELETE FROM gate"), setattr(s, "cwd", s.base)),
    "above": lambda s: setattr(s, "cwd", s.base),
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


OF_EVERY_HOST = (
    *("all is well", "no row", "a row of another host", "not simple", "a strict project"),
    *("the gate is off", "opted out", "in another project", "above, bound to nothing"),
)
"""Conditions under which the tools of every host are tried; the rest has nothing to do with it."""
TRIED = [
    pytest.param(
        *(host, condition, mode),
        # The mode is read from the state, whoever asks: one that denies much, one that allows.
        marks=[]
        if mode == "coding"
        or (host, mode) == (HOST, "analysis")
        or (condition == "all is well" and (host == HOST or mode == "analysis"))
        else [pytest.mark.long],
    )
    for host in PLAIN_HOSTS
    for condition in (CONDITIONS if host == HOST else OF_EVERY_HOST)
    for mode in MODES
]


def tried_tools(scene: Scene, condition: str) -> list[str]:
    """Return every tool where all is well, and else one of each class: conditions treat it alike.

    `make long` tries every tool under every condition.
    """
    tools = tools_of(scene.host.name)
    if condition == "all is well" or EFFORT == "long":
        return [*tools]
    return [*{scene.kind(tool): tool for tool in reversed(tools)}.values()]


@pytest.mark.slow
@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize(("host_scene", "condition", "mode"), TRIED, indirect=["host_scene"])
def test_what_the_fast_hook_allows_the_full_one_allows(
    host_scene: Scene, condition: str, mode: Mode
) -> None:
    host_scene.goes_to(mode)
    CONDITIONS[condition](host_scene)

    for tool in tried_tools(host_scene, condition):
        for given in inputs(host_scene.kind(tool), host_scene):
            host_scene.agrees(host_scene.payload(tool, given))


@pytest.mark.invariant("fast-allows-less")
def test_a_change_of_mode_is_decided_by_the_full_hook(host_scene: Scene) -> None:
    """It may be asked about, and a subagent may not widen the mode at all."""
    for mode in MODES:
        host_scene.goes_to(mode)
        for given, prefix in product(MODE_INPUTS, OWN_PREFIXES):
            for agent in ("", "agent-1"):
                host_scene.agrees(host_scene.payload(f"{prefix}session", given, agent_id=agent))


NARROW = {"own", "read", "search", "web", "ask", "agent"}
WIDE = NARROW | {"edit", "shell", "mcp", "other"}


@pytest.mark.parametrize(
    ("mode", "fast_kinds"),
    [("analysis", NARROW), ("planning", NARROW), ("coding", WIDE), ("disabled", WIDE)],
)
def test_where_all_is_well_the_fast_hook_is_enough(
    host_scene: Scene, mode: Mode, fast_kinds: set[str]
) -> None:
    host_scene.goes_to(mode)
    given, is_codex = inputs_of(host_scene.host.name), host_scene.host.name == "codex"

    for tool in filter(None, tools_of(host_scene.host.name)):
        if tool.startswith(FULL_HOOK_PREFIXES):
            continue
        kind = host_scene.kind(tool)
        # Codex names the edited files within a patch, which only the full hook reads.
        is_patch = is_codex and kind == "edit" and mode == "coding"
        # The prompt of a subagent is kept by the full hook.
        is_full = is_patch or host_scene.host.reports(tool) == "subagent"
        is_fast = host_scene.agrees(host_scene.payload(tool, given.get(kind)))
        assert is_fast == (kind in fast_kinds and not is_full), tool


def test_reading_needs_no_state(host_scene: Scene) -> None:
    (host_scene.home / "gate.db").unlink()

    read, web = (host_scene.host.tools[kind].split()[0] for kind in ("read", "web"))
    for tool in (read, TOOLS[host_scene.host.name]["own"][0]):
        assert host_scene.agrees(host_scene.payload(tool))
    assert not host_scene.is_fast(host_scene.payload(web))


@pytest.mark.parametrize("is_bound", [False, True])
def test_outside_of_projects_a_hook_is_silent_unless_the_conversation_is_bound(
    host_scene: Scene, tmp_path: Path, *, is_bound: bool
) -> None:
    host_scene.cwd = tmp_path
    before = sorted(host_scene.home.rglob("*"))
    name, edit = "host-1" if is_bound else "host-2", inputs_of(host_scene.host.name)["edit"]

    tool = host_scene.host.tools["edit"].split()[0]
    inside = host_scene.payload(tool, edit, session_id=name)
    if host_scene.host.name == "codex":  # its patch names a file relative to the directory
        inside = inside.replace(b"File: ", f"File: {host_scene.project}/".encode())
    content = inside.replace(str(host_scene.project).encode(), str(tmp_path).encode())

    for event in fast.EVENTS:
        # The files of a patch are for the full hook to read.
        is_patch = event == "pre-tool" and host_scene.host.name == "codex"
        is_fast = host_scene.is_fast(content, event)  # pyright: ignore[reportArgumentType]
        assert is_fast == (not is_bound and not is_patch)
    assert (host_scene.full(content) == HookResult()) != is_bound
    assert is_bound or sorted(host_scene.home.rglob("*")) == before
    assert not host_scene.is_fast(inside)
    assert host_scene.full(inside) != HookResult(), "the project of the edited file has opted in"


def test_a_link_that_leads_to_a_protected_file_is_for_the_full_hook(scene: Scene) -> None:
    scene.goes_to("coding")
    (scene.project / ".claude").mkdir()
    (scene.project / "a.py").symlink_to(".claude/settings.json")
    (scene.project / "folder").symlink_to(".claude")

    for name in ("a.py", "folder/settings.json"):
        content = scene.payload("Write", {"file_path": f"<PROJECT>/{name}"})
        assert not scene.is_fast(content)
        assert b'"deny"' in scene.full(content).out


def test_a_config_that_was_changed_counts_when_the_gate_was_told(scene: Scene) -> None:
    scene.goes_to("coding")
    write = scene.payload("Write", INPUTS["edit"])
    assert scene.agrees(write)

    scene.config.write_text(f"# more\n{scene.config.read_text()}")

    assert not scene.is_fast(write)
    scene.goes_to("planning")
    scene.goes_to("coding")
    assert scene.agrees(write)


def test_what_only_sounds_like_a_secret_is_not_handed_over(scene: Scene) -> None:
    scene.goes_to("coding")
    alike = ("<PROJECT>/secrets.py", "/work/client-secret/x", "<PROJECT>/docs/keyring.md")

    for tool in ("Read", "Grep", "mcp__files__read", "Brandnew"):
        for path in alike:
            given = {"path": path, "pattern": "secret: .*[a-z]"}
            assert scene.agrees(scene.payload(tool, given)), tool


def test_the_tables_are_those_of_the_core(host_scene: Scene) -> None:
    assert fast.SECRETS == SECRETS
    assert tuple(fast.OWN_TOOLS.split()) == OWN_TOOLS
    assert {*fast.OWN_PREFIXES.split(), *FULL_HOOK_PREFIXES} == set(OWN_PREFIXES)
    for tool in tools_of(host_scene.host.name):
        found = fast.class_of(host_scene.host, tool)
        if tool.startswith(FULL_HOOK_PREFIXES):
            assert found in ("mcp", "other")
        else:
            assert found == host_scene.kind(tool), tool
    for end in ALWAYS_PROTECTED:
        first = end.split("/")[0]
        assert any(first.startswith(marker) for marker in fast.MARKERS.split()), end


def test_hosts_with_other_payloads_are_for_the_full_hook(scene: Scene) -> None:
    scene.goes_to("disabled")

    for host in set(NAMES) - set(PLAIN_HOSTS):
        for tool, event in product((*tools_of(host), *UNLISTED), fast.EVENTS):
            assert not fast.run(host, event, str(scene.home), scene.payload(tool)), host


def test_a_host_that_nobody_knows_is_for_the_full_hook(scene: Scene) -> None:
    scene.goes_to("disabled")

    for host in ("", "claude", "Claude-Code", "vim", "../codex", "codex.HOST"):
        assert not fast.run(host, "pre-tool", str(scene.home), scene.payload("Read")), host
