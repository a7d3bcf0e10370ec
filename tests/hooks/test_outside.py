"""Conversations that began outside of a project: what they may change in it, and what they may not.

Where a call names no project, nobody may notice the hook, whatever the call is.
"""

import json
import os
import posix
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.gate import tool_calls
from interlock.core.gate.tool_call import parse_tool_call
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookResult
from interlock.sandbox import named_projects
from tests.hooks.clients import read_decision
from tests.hooks.recordings import recorded
from tests.hooks.scene import Scene
from tests.hooks.test_fast_process import fast_command, outcome
from tests.hooks.test_fast_text import SPELLINGS
from tests.hooks.test_governed_calls import confine

CHANGES = [
    *(
        "cd project && rm -rf src",
        "cd -- project; touch a",
        "cd -P project\nmake",
        "pushd project; make",
    ),
    *("(cd project && make)", "cd .. && touch <NAME>/project/a", "cd other && touch ../project/a"),
    *("cd project; cd src; touch a", "cd $HOME/project && make", 'cd "${HOME}/project" && make'),
    *(
        "cd ~/project && make",
        "echo x > project/a",
        "echo x | tee project/a",
        "touch <BASE>/project/a",
    ),
    *("touch pro'ject'/a", "touch pro\\ject/a", 'touch "project/a"', "touch project/new/folder/a"),
    *("touch ~/project/a", 'touch "$HOME/project/a"', "touch ${HOME}/project/a", "touch link/a"),
    *("touch $PWD/project/a", "touch $(pwd)/project/a", "touch {project,other}/a"),
    *("rm -r 'my project'", "rm -r my\\ project", "touch 'my project/a'"),
    *("rm -rf project", "rm -rf *", "rm -rf proj*", "rm -rf pro?ect", "sed -i s/a/b/ proj*/a"),
    *("mv project x", "cp a project", "rsync a project/", "ln -s x project/y", "dd of=project/a"),
    *("git -C project commit -m x", "git --work-tree project checkout .", "git -Cproject commit"),
    *("git --work-tree=project checkout .", "GIT_WORK_TREE=project git checkout ."),
    *("git clone x project/y", "git worktree add project/y", "git archive HEAD -o project/x.tar"),
    *("make -C project", "make -Cproject", "npm --prefix=project i", "npm --prefix project i"),
    *("env -C project touch a", "timeout 5 make -C project", "sudo -u x make -C project"),
    *("tar xf x -C project", "tar xf x --directory project", "tar xf x --directory=project"),
    *("tar czf project/x.tgz other", "unzip x -d project", "curl -o project/a x", "black project"),
    *("sh project/run.sh", "./project/run.sh", "docker run -v ./project:/x image"),
    *(
        "bash -c 'cd project && make'",
        "python3 -c \"open('project/a', 'w')\"",
        "xargs touch project/a",
    ),
    *("find project -delete", "find project -name x | xargs rm", "find project -exec rm {} +"),
    *("d=project; rm -rf $d/src", "P=project; cd $P && make", "for f in project/*; do rm $f; done"),
    *(
        "for ((i=0; i<3; i++)); do touch project/$i; done",
        "cat > project/a <<E\n" + "x $y\n" * 20_000,
    ),
]
"""Commands that change, or may change, something in a project."""
LEAVES = [
    *("", "make", "npm i", "git add -A", "touch a", "mkdir project2", "rm -rf other", "rm *.log"),
    *("ls project", "cat project/a", "cd project && ls && git status", "git -C project log"),
    *("(cd project && git log); touch a", "echo $(cd project && ls); touch a", "wc -l * > out"),
    *("tar c -C project . > x.tar", "tar czf x.tgz project", "tar -czf /tmp/x.tgz -C project ."),
    *(
        "git -C project archive HEAD",
        "git -C project archive HEAD -o ../x",
        "git -C project log > x",
    ),
    *("git -C project archive HEAD | tar x -C other", "cp -r project /tmp/x", "scp project/a h:"),
    *("rsync -a project/ /tmp/x", "grep -r x project > out", "cat project/a | tee other/x"),
    *("git commit -m 'fix project/a'", "echo 'see project/a' >> notes", "diff project other > x"),
    *("cat > notes <<E\nproject/a\nE\n", "x=$(cat y); touch $x", "rm -rf $TMPDIR/x", "touch ü"),
    *("[ -f x ] && touch y", "for f in *; do echo $f; done", "python3 -c 'print(1)'", "'unclosed"),
    *(f"touch {'a' * 300}", f"touch {'b/' * 3000}", "touch a\0b", "touch /root/x /proc/1/root/x"),
    *("echo x > /dev/stderr", "touch /proc/self/fd/1", "cat /proc/self/cwd/x; touch [ a[ ]*b["),
    *(
        "touch closed/x",
        "touch loop/x",
        "touch ~nobody/x",
        "cat > x <<E\n" + "int *p = a[i];\n" * 9_000,
    ),
]
"""Commands that change nothing there, whatever words they have."""


@pytest.fixture
def outside(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A scene whose calls come from the directory above the project, which is the user's home."""
    scene.cwd = scene.base
    monkeypatch.setenv("HOME", str(scene.base))
    monkeypatch.setitem(posix.environ, b"HOME", os.fsencode(scene.base))
    for name in ("other", "closed", "project/src", "my project/.interlock"):
        (scene.base / name).mkdir(parents=True)
    (scene.base / "my project" / ".interlock" / "config.toml").touch()
    (scene.base / "link").symlink_to("project")
    (scene.base / "loop").symlink_to("loop")
    (scene.base / "closed").chmod(0)
    yield scene
    (scene.base / "closed").chmod(0o700)


def payload(scene: Scene, tool: str, given: object, **more: object) -> bytes:
    return scene.payload(tool, given, **{"session_id": "of nobody", **more})


def bash(scene: Scene, command: str, **more: object) -> bytes:
    text = command.replace("<BASE>", str(scene.base)).replace("<NAME>", scene.base.name)
    return payload(scene, "Bash", {"command": text, **more})


@pytest.mark.invariant("fast-allows-less")
def test_no_command_changes_anything_in_a_project(outside: Scene) -> None:
    for command in CHANGES:
        content = bash(outside, command)
        assert b"Start the client in `" in outside.full(content).out, command[:80]
        assert not outside.is_fast(content), command[:80]


@pytest.mark.invariant("fast-allows-less")
def test_every_other_command_passes(outside: Scene) -> None:
    for command in LEAVES:
        content = bash(outside, command)
        assert outside.full(content) == HookResult(), command[:80]
        outside.agrees(content)


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("command", ["cd project; touch a", "make -C ~/project"])
def test_no_respelling_passes_the_fast_hook_alone(outside: Scene, command: str) -> None:
    for piece, place in product(SPELLINGS, range(len(command) + 1)):
        outside.agrees(bash(outside, command[:place] + piece + command[place:]))


def test_the_hook_answers_so_as_a_client_starts_it(outside: Scene) -> None:
    for command in ("cd project && make", "touch $HOME/project/a", "git -Cproject commit"):
        done = outcome(fast_command(outside), bash(outside, command))
        assert (done.code, b'"ask"' in done.out) == (0, True), command
    for command in (f"touch {'a' * 300} /dev/stderr /proc/1/root/x a\0b", "ls project > x"):
        assert outcome(fast_command(outside), bash(outside, command)) == HookResult(), command


def test_no_home_directory_blocks_a_command(
    outside: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bash(outside, "touch ~/x $HOME/y")

    for home in (b"\xff\xfe", b"", b"relative", b"/gone", b"/" + b"x" * 5000):
        monkeypatch.setitem(posix.environ, b"HOME", home)
        assert outside.agrees(content)
        monkeypatch.setenv("HOME", os.fsdecode(home))
        assert outcome(fast_command(outside), content) == HookResult()


def test_where_no_project_is_named_the_fast_hook_is_enough(outside: Scene) -> None:
    for command in ("make -j4 && ./run *.py", "git commit -m 'a b' && echo $X | tee x", "cd /; ls"):
        assert outside.agrees(bash(outside, command)), command
    for tool in ("mcp__files__write", "Brandnew"):
        given = {"path": f"{outside.base}/other/a", "text": "see project/a", "n": [1]}
        assert outside.agrees(payload(outside, tool, given)), tool
        given["text"] = f"{outside.project}/a is good"
        assert outside.full(payload(outside, tool, given)) == HookResult()


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__files__write", {"path": "<PROJECT>/a"}),
        ("mcp__files__write", {"path": "project/a"}),
        ("mcp__files__move", {"x": [{"y": " ~/project/a"}]}),
        ("mcp__files__write", {"uri": "file://<PROJECT>/a%20b"}),
        ("mcp__git__commit", {"repo_path": "<PROJECT>"}),
        ("mcp__files__write", {"path": "<PROJECT>/app/[id]/a"}),
        ("Brandnew", {"target": "link/a"}),
    ],
)
def test_a_tool_of_others_changes_nothing_in_a_project(
    outside: Scene, tool: str, given: dict[str, Any]
) -> None:
    content = payload(outside, tool, given)

    assert b'"ask"' in outside.full(content).out
    assert not outside.is_fast(content)
    outside.config.write_text(f'[gate]\nreading_tools = ["{tool}"]\n')
    assert b"if the user ran `interlock trust`" in outside.full(content).out


@pytest.mark.parametrize("folder", ["project", "<BASE>/project", "~/project"])
@pytest.mark.parametrize("key", ["workdir", "cwd", "directory"])
def test_a_command_runs_where_its_tool_is_told_to(outside: Scene, key: str, folder: str) -> None:
    folder = folder.replace("<BASE>", str(outside.base))

    assert b'"ask"' in outside.full(bash(outside, "make", **{key: folder})).out
    assert not outside.is_fast(bash(outside, "make", **{key: folder}))
    assert outside.full(bash(outside, "make", **{key: "other"})) == HookResult()
    assert outside.full(bash(outside, "ls", **{key: folder})) == HookResult()


def test_the_sandbox_of_the_client_does_not_confine_it(
    outside: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shell looks where it runs, and finds no project around."""
    confine(outside, monkeypatch)

    for more in ({}, {"cwd": str(outside.project)}):
        assert b'"ask"' in outside.full(bash(outside, "touch <BASE>/project/a", **more)).out


@pytest.mark.parametrize(
    ("tool", "text", "is_denied"),
    [
        *(("Bash", f"touch ../other/{name}", name == "kept.py") for name in ("kept.py", "a.py")),
        *(("mcp__x__y", f"../other/{name}", name == "kept.py") for name in ("kept.py", "a.py")),
        ("Bash", "cd ../other && touch kept.py", True),
        *(("Bash", "cp ../other/kept.py .", False), ("Bash", "touch kept.py", False)),
    ],
)
def test_a_bound_conversation_is_under_the_policy_of_the_other_project(
    scene: Scene, tool: str, text: str, *, is_denied: bool
) -> None:
    scene.goes_to("coding")
    config = scene.base / "other" / ".interlock" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[gate]\nprotected = ["kept.py"]\n')
    content = scene.payload(tool, {"command" if tool == "Bash" else "path": text})

    assert (b'"deny"' in scene.full(content).out) == is_denied
    assert scene.agrees(content) == ("other" not in text)


def test_a_confined_command_passes_whatever_it_names(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.goes_to("analysis")
    config = scene.base / "other" / ".interlock" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[project]\nprofile = "strict"\n')
    confine(scene, monkeypatch)

    assert scene.agrees(scene.payload("Bash", {"command": "make -C ../other"}))


RECORDED = {
    "claude-PreToolUse-Bash": ("bash-forbidden.txt", "project/a"),
    "claude-PreToolUse-Write": ("FORBIDDEN.txt", "project/a"),
    "codex-PreToolUse-Bash": ("env | sort", "touch project/a"),
    "codex-PreToolUse-apply_patch": ("File: nat.txt", "File: project/nat.txt"),
    "gemini-BeforeTool-run_shell_command-ok": ("echo fine", "touch project/a"),
    "gemini-BeforeTool-write_file": ("a.txt", "project/a.txt"),
    "opencode-pre-tool-bash": ("env | sort", "touch project/a"),
    "opencode-pre-tool-write": ("new.txt", "project/new.txt"),
    "cursor-preToolUse": ("npm install", "npm --prefix project install"),
    "cursor-preToolUse-Write": ("a.txt", "project/a.txt"),
    "copilot-preToolUse": ("npm test", "npm --prefix project test"),
    "copilot-preToolUse-string-args": ("npm test", "npm --prefix project test"),
    "copilot-PreToolUse-vscode": ("npm test", "npm --prefix project test"),
    "copilot-PreToolUse-vscode-edit": ("a.txt", "project/a.txt"),
    "gemini-BeforeTool-mcp_tiny_plain": ('"x"', '"./project/a"'),
    "claude-PreToolUse-mcp_tiny_issue_token": ("real client", "./project/a"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_calls_of_every_client_are_judged_from_outside(outside: Scene, name: str) -> None:
    before, after = RECORDED[name]
    start = name.partition("-")[0]
    host = host_named("claude-code" if start == "claude" else start)
    text = json.dumps(recorded(name, outside.base))
    assert before in text

    passed, denied = (
        run_hook(host, "pre-tool", outside.home, content.encode())
        for content in (text, text.replace(before, after))
    )

    assert passed == HookResult()
    assert read_decision(host.name, json.loads(denied.out)).answer in ("ask", "deny")
    assert "Start the client in" in denied.out.decode()


def test_every_client_is_tried() -> None:
    assert {name.partition("-")[0].replace("claude", "claude-code") for name in RECORDED} == {
        *NAMES
    }


@pytest.mark.parametrize(
    "text",
    ids=["a here-document", "patterns", "directories"],
    argvalues=[
        "cat > x <<E\n" + "".join(f"w{n} x/{n} /y/{n} -z{n}\n" for n in range(40_000)),
        " ".join(f"*{n}" for n in range(5_000)),
        " ".join(f"d{n % 40}" for n in range(20_000)),
    ],
)
def test_the_look_at_a_long_text_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    count = 0

    def count_calls(call: Any) -> Any:
        def counting(*given: Any) -> Any:
            nonlocal count
            count += 1
            return call(*given)

        return counting

    for number in range(40):
        (tmp_path / f"d{number}").mkdir()
    for name in ("lstat", "readlink", "listdir"):
        monkeypatch.setattr(posix, name, count_calls(getattr(posix, name)))

    words = named_projects.words_in(text, str(tmp_path))
    assert set(named_projects.named_projects(words, str(tmp_path))) == {named_projects.MORE}
    assert count < 12 * named_projects.LOOKUPS_MAX
    call = parse_tool_call("codex", "shell", "Bash", {"command": text}, str(tmp_path))
    assert tool_calls.projects_changed_by(call) == []
    assert count < 60 * named_projects.LOOKUPS_MAX
