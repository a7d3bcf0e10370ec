"""However a path is spelled and wherever links lead: secrets stay unread, rules stay unwritten."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.core.gate.secret_files import SECRETS
from interlock.core.gate.state import Mode
from interlock.sandbox.real_path import real_path
from tests.effort import scale
from tests.hooks.scene import Scene
from tests.unprivileged import nobody


def link(scene: Scene, target: Path | str, name: str = "link") -> Path:
    """A symbolic link in the project."""
    path = scene.project / name
    path.symlink_to(target)
    return path


def chain(scene: Scene, target: Path) -> str:
    link(scene, os.path.relpath(target, scene.project), "first")
    return str(link(scene, "first", "second"))


def dots_after_link(scene: Scene, target: Path) -> str:
    """By the text it is a file of the project; the system follows the link first."""
    (target.parent / "inner").mkdir(exist_ok=True)
    return f"{link(scene, target.parent / 'inner')}/../{target.name}"


def dots_before_link(scene: Scene, target: Path) -> str:
    """The system finds nothing there; a client that removes `..` from the text opens the link."""
    (scene.base / "elsewhere" / "inner").mkdir(parents=True)
    link(scene, scene.base / "elsewhere" / "inner", "away")
    return f"{link(scene, target).parent}/away/../link"


def hard_link(scene: Scene, target: Path) -> str:
    os.link(target, scene.project / "hard")
    return str(scene.project / "hard")


def linked_elsewhere(scene: Scene, target: Path) -> str:
    folder = scene.base / "temporary"
    folder.mkdir()
    (folder / "link").symlink_to(target)
    return str(folder / "link")


SPELLINGS: dict[str, Callable[[Scene, Path], str]] = {
    "plain": lambda _, target: str(target),
    "root of the process": lambda _, target: f"/proc/self/root{target}",
    "root of the thread": lambda _, target: f"/proc/thread-self/root{target}",
    "root of another task": lambda _, target: f"/proc/self/task/{os.getppid()}/root{target}",
    "root of another process": lambda _, target: f"/proc/{os.getppid()}/root{target}",
    "root twice": lambda _, target: f"/proc/self/root/proc/self/root{target}",
    "link": lambda scene, target: str(link(scene, target)),
    "relative link": lambda scene, target: str(link(scene, os.path.relpath(target, scene.project))),
    "link to the directory": lambda scene, target: f"{link(scene, target.parent)}/{target.name}",
    "link to the directory above": lambda scene, target: (
        f"{link(scene, target.parents[1])}/{target.parent.name}/{target.name}"
    ),
    "link to the root": lambda scene, target: f"{link(scene, '/proc/self/root')}{target}",
    "chain of links": chain,
    "link elsewhere": linked_elsewhere,
    "from the working directory": lambda scene, target: link(scene, target).name,
    "dots after a link": dots_after_link,
    "dots before a link": dots_before_link,
    "hard link": hard_link,
    "slashes": lambda scene, target: f"//{scene.project}//.//{link(scene, target).name}/",
    "blanks around": lambda scene, target: f" {link(scene, target)} ",
    "URL": lambda _, target: target.as_uri(),
    "URL of the host": lambda scene, target: f"file://localhost{link(scene, target)}",
    "URL with escapes": lambda scene, target: (
        f"FILE://{quote(str(link(scene, target))).replace('k', '%6b')}"
    ),
    "from home": lambda _, target: f"~/{os.path.relpath(target, Path.home())}",
}
READ_FORMS: dict[str, Callable[[str], dict[str, object]]] = {
    "file_path": lambda path: {"file_path": path},
    "paths": lambda path: {"paths": ["a.py", path]},
    "path and pattern": lambda path: {"pattern": ".", "path": path},
    "dir_path": lambda path: {"dir_path": path},
    "unknown": lambda path: {"x": [{"y": path}]},
}


def answer(scene: Scene, tool: str, given: object) -> str:
    """The decision of the full hook; the fast one must not allow what is denied."""
    content = scene.payload(tool, given)
    text = scene.full(content).out.decode()
    assert not (scene.is_fast(content) and text), content
    return "deny" if '"deny"' in text else text or "allow"


@pytest.fixture
def kept(scene: Scene) -> Scene:
    """A scene in which every secret and protected file exists."""
    for name in (*SECRETS, "config.toml"):
        (scene.home / name).write_text("x")
    for end in (".mcp.json", ".git/hooks/pre-commit", ".claude/settings.json"):
        (scene.project / end).parent.mkdir(parents=True, exist_ok=True)
        (scene.project / end).write_text("x")
    (Path.home() / ".claude").mkdir(exist_ok=True)
    (Path.home() / ".claude/settings.json").write_text("{}")
    return scene


@pytest.mark.invariant("secrets-stay-unread")
@pytest.mark.parametrize("mode", [pytest.param("planning", marks=pytest.mark.long), "coding"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_reads_a_secret(kept: Scene, mode: Mode, spelling: str) -> None:
    kept.goes_to(mode)
    path = SPELLINGS[spelling](kept, kept.home / "secret")

    for tool in ("Read", "NotebookRead", "Grep", "Glob", "LS", "ReadMcpResourceTool", "mcp__f__r"):
        for form in READ_FORMS.values():
            if "of another" in spelling and "y" in str(form(path)):
                continue  # a text that is not surely a path may be prose
            assert answer(kept, tool, form(path)) == "deny", (tool, form(path))
    if "URL" not in spelling and " " not in path:
        assert answer(kept, "Bash", {"command": f"cat {path}"}) == "deny"
        assert answer(kept, "Bash", {"command": f"wc -c <{path}"}) == "deny"


WRITTEN: dict[str, Callable[[Scene], Path]] = {
    "state of the gate": lambda scene: scene.home / "gate.db",
    "config of the user": lambda scene: scene.home / "config.toml",
    "config of the project": lambda scene: scene.config,
    "hook of git": lambda scene: scene.project / ".git/hooks/pre-commit",
    "servers": lambda scene: scene.project / ".mcp.json",
    "hooks of the client": lambda _: Path.home() / ".claude/settings.json",
}
WRITE_FORMS: dict[str, Callable[[str], dict[str, object]]] = {
    "Write": lambda path: {"file_path": path, "content": "x"},
    "Edit": lambda path: {"file_path": path, "old_string": "a", "new_string": "b"},
    "MultiEdit": lambda path: {"edits": [{"file_path": path}]},
    "NotebookEdit": lambda path: {"notebook_path": path, "new_source": "x"},
    "mcp__files__write": lambda path: {"path": path, "text": "x"},
    "Brandnew": lambda path: {"uri": path},
}


SPELLED_TARGETS = [
    pytest.param(
        *(spelling, target),
        # How a path is spelled does not depend on the file: every spelling of one, two of each.
        marks=[] if target == "servers" or spelling in ("plain", "link") else [pytest.mark.long],
    )
    for spelling in SPELLINGS
    for target in WRITTEN
]


@pytest.mark.slow
@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize(("spelling", "target"), SPELLED_TARGETS)
def test_no_spelling_writes_a_protected_file(kept: Scene, target: str, spelling: str) -> None:
    kept.goes_to("coding")
    path = SPELLINGS[spelling](kept, WRITTEN[target](kept))

    for tool, form in WRITE_FORMS.items():
        assert answer(kept, tool, form(path)) == "deny", (tool, path)
    if "URL" not in spelling and " " not in path:
        for command in (
            f"echo x > {path}",
            f"cp a {path}",
            f"cd sub; tee {path}",
            f"dd of={path}",
        ):
            assert answer(kept, "Bash", {"command": command}) == "deny", command


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize(
    "command",
    [
        *("cd sub && echo x > rules", "cd sub; cd inner; tee rules", "git -C sub checkout rules"),
        *(
            "cp a.py/rules sub",
            "mv rules sub",
            "echo x > 'my rules'",
            'tee "my rules"',
            "sort -oown a",
        ),
    ],
)
def test_no_command_writes_through_a_link_in_another_directory(kept: Scene, command: str) -> None:
    kept.goes_to("coding")
    (kept.project / "sub/inner").mkdir(parents=True)
    for name in ("sub/rules", "sub/inner/rules", "my rules", "own"):
        link(kept, kept.project / ".mcp.json", name)

    assert answer(kept, "Bash", {"command": command}) == "deny"


@pytest.mark.parametrize("form", ["", "  "])
def test_every_path_of_a_patch_counts(kept: Scene, form: str) -> None:
    kept.goes_to("coding")
    link(kept, ".mcp.json")
    patch = f"*** Begin Patch\n*** Update File: a.py\n{form}*** Move to: link\n*** End Patch"

    assert answer(kept, "Write", {"input": patch}) == "deny"
    assert answer(kept, "Write", {"input": patch.replace(": link", ": b.py")}) == "allow"


UNKNOWN: dict[str, Callable[[Scene], str]] = {
    "directory of the process": lambda _: "/proc/self/cwd/a.py",
    "directory of the thread": lambda _: "/proc/thread-self/cwd/a.py",
    "link to that": lambda scene: f"{link(scene, '/proc/self/cwd')}/a.py",
    "open file": lambda _: "/dev/fd/0",
    "open file of the process": lambda _: "/proc/self/fd/0",
    "input": lambda _: "/dev/stdin",
    "root of another process": lambda scene: f"/proc/{os.getppid()}/root{scene.project}/a.py",
    "environment": lambda _: "/proc/self/environ",
    "memory": lambda _: "/proc/1/mem",
    "loop": lambda scene: str(link(scene, "link")),
    "too many links": lambda scene: str(
        [link(scene, f"l{number}", f"l{number + 1}") for number in range(50)][-1]
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_where_nobody_can_tell_the_rule_applies(kept: Scene, name: str) -> None:
    kept.goes_to("coding")
    path = UNKNOWN[name](kept)

    for tool in ("Read", "Grep", "Write", "mcp__files__write"):
        done = kept.full(kept.payload(tool, {"path": path}))
        reason = json.loads(done.out)["hookSpecificOutput"]["permissionDecisionReason"]
        assert "may lead to" in reason
        assert "without links" in reason
        assert not kept.is_fast(kept.payload(tool, {"path": path}))


def test_a_directory_that_may_not_be_entered_hides_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    with nobody(), pytest.raises(PermissionError):
        real_path(f"{tmp_path}/closed/link")


EVERYDAY: dict[str, Callable[[Scene], tuple[str, object]]] = {
    "file": lambda _: ("Read", {"file_path": "<PROJECT>/a.py"}),
    "processor": lambda _: ("Read", {"file_path": "/proc/cpuinfo"}),
    "status": lambda _: ("Read", {"file_path": "/proc/self/status"}),
    "link to another file": lambda s: ("Read", {"file_path": str(link(s, "a.py"))}),
    "link out": lambda s: ("Read", {"file_path": f"{link(s, '/usr')}/bin/env"}),
    "dead link": lambda s: ("Read", {"file_path": str(link(s, "gone"))}),
    "pattern with a path": lambda _: ("Grep", {"pattern": "/proc/self/cwd", "path": "<PROJECT>"}),
    "pattern with a device": lambda _: ("Grep", {"pattern": "/dev/stdin", "path": "<PROJECT>"}),
    "prose": lambda _: ("TodoWrite", {"todos": [{"content": "x" * 3000}, {"content": "a\0b"}]}),
    "protected file is read": lambda _: ("Read", {"file_path": "<PROJECT>/.mcp.json"}),
    "linked project": lambda s: ("Write", {"file_path": f"{linked_elsewhere(s, s.project)}/a.py"}),
    "link in the project": lambda s: ("Write", {"file_path": str(link(s, "src/a.py"))}),
    "package": lambda s: ("Bash", {"command": f"node {link(s, '../lib/cli.js', 'cli')} a"}),
    "name in brackets": lambda _: ("Write", {"file_path": "<PROJECT>/app/[id]/*.tsx"}),
    "device": lambda _: ("Bash", {"command": "make 2>/dev/null | tee /dev/stderr"}),
    "what only root enters": lambda _: ("Bash", {"command": "sudo cat /root/x"}),
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_calls_go_on(kept: Scene, name: str) -> None:
    kept.goes_to("coding")

    assert answer(kept, *EVERYDAY[name](kept)) == "allow"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_data_home_behind_a_link_is_kept_by_both_of_its_names(
    kept: Scene, *, is_link: bool
) -> None:
    real, named = kept.home, kept.base / "data"
    named.symlink_to(real)
    kept.home = named
    kept.goes_to("coding")
    folder = named if is_link else real

    assert answer(kept, "Read", {"file_path": f"{folder}/secret"}) == "deny"
    assert answer(kept, "Grep", {"pattern": ".", "path": str(folder)}) == "deny"
    assert answer(kept, "Write", {"file_path": f"{folder}/gate.db"}) == "deny"
    own = folder / "worktrees" / "ses_1"
    own.mkdir(parents=True)
    kept.cwd = own
    assert answer(kept, "Write", {"file_path": f"{own}/a.py"}) == "allow"


def test_a_link_in_place_of_the_clients_own_directory_opens_nothing(
    kept: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kept.base / "config"
    config.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(kept.base / "linked"))
    (kept.base / "linked").symlink_to(config)
    plan = {"file_path": f"{config}/plans/a.md"}
    assert answer(kept, "Write", plan) == "allow", "the directory around may be a link"

    (config / "plans").symlink_to(kept.project)

    assert answer(kept, "Write", plan) == "deny"


@pytest.mark.parametrize("mode", ["planning", "coding"])
def test_names_count_from_the_directory_that_a_call_gives(scene: Scene, mode: Mode) -> None:
    scene.goes_to(mode)
    (scene.home / "secret").write_text("x")
    folder = os.path.relpath(scene.home, scene.project)
    above, name = os.path.split(folder)

    for key in ("workdir", "working_directory", "dir_path", "directory", "cwd"):
        for where in (folder, str(scene.home), str(link(scene, scene.home, f"{mode}-{key}"))):
            assert answer(scene, "Bash", {"command": "cat secret", key: where}) == "deny", key
            write = {"command": "echo x > config.toml", key: where}
            assert answer(scene, "Bash", write) != "allow", key
    for pattern in ("s*", "*", "secre?", "[s]ecret"):
        read = f"cat {mode}-cwd/{pattern}"
        assert answer(scene, "Bash", {"command": read}) == "deny", read
    assert answer(scene, "Bash", {"command": f"rm {mode}-cwd/*"}) != "allow"
    for fields in (
        {"path": above, "glob": f"{name}/secret"},
        {"base": above, "x": f"{name}/secret"},
    ):
        assert answer(scene, "Grep", {"pattern": ".", **fields}) == "deny"
    assert answer(scene, "Bash", {"command": "cat a.py", "workdir": "."}) == "allow"


def test_every_host_keeps_the_secret(host_scene: Scene) -> None:
    (host_scene.home / "secret").write_text("x")
    link(host_scene, host_scene.home / "secret")
    tool = host_scene.host.tools["read"].split()[0]

    for key, path in (
        ("file_path", "<PROJECT>/link"),
        ("absolute_path", f"/proc/self/root{host_scene.home}/secret"),
        ("filePath", "/dev/fd/0"),
    ):
        content = host_scene.payload(tool, {key: path})
        assert not host_scene.is_fast(content)
        assert host_scene.host.is_denial(json.loads(host_scene.full(content).out)), path
    assert host_scene.agrees(host_scene.payload(tool, {"file_path": "/proc/cpuinfo"}))


PARTS = st.sampled_from(
    [
        *("away", "home", "key", "hard", "rules", "sub", "loop", "..", ".", "", "a.py", "secret"),
        *("proc", "self", "root", "cwd", "fd", "0", ".mcp.json", "project", "<HOME>", "<BASE>"),
    ]
)


@pytest.fixture
def linked(kept: Scene) -> Scene:
    """A scene whose project is full of links."""
    kept.goes_to("coding")
    (kept.project / "sub").mkdir()
    os.link(kept.home / "keyring", kept.project / "hard")
    for name, target in {
        "away": kept.base,
        "home": kept.home,
        "key": kept.home / "secret",
        "rules": ".mcp.json",
        "sub/rules": "../rules",
        "sub/away": "/proc/self/root",
        "loop": "loop",
    }.items():
        link(kept, target, name)
    return kept


@pytest.mark.slow
@pytest.mark.invariant("fast-allows-less")
@settings(
    max_examples=scale(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(PARTS, min_size=1, max_size=6),
    st.sampled_from(["", "/", "/proc/self/root/", "./", " ", "~/"]),
    st.sampled_from(["Read", "Grep", "mcp__f__x", "Write", "touch {}", "cd sub && cp a.py {}"]),
)
def test_no_path_passes_that_the_full_hook_denies(
    linked: Scene, parts: list[str], start: str, tool: str
) -> None:
    path = (start + "/".join(parts)).replace("<HOME>", str(linked.home))
    path = path.replace("<BASE>", str(linked.base))
    if "{}" in tool:
        linked.agrees(linked.payload("Bash", {"command": tool.format(path)}))
    else:
        linked.agrees(linked.payload(tool, {"file_path": path}))
