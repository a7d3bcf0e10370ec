"""Paths that nobody writes: however a call names them, and whatever falls with their directory."""

from typing import Any, Literal

import pytest

from interlock.agents.hosts.host import JsonPart, OwnFile
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.core.gate import paths
from interlock.core.gate.decide import GateDecision, decide
from interlock.core.gate.state import GateRow, Policy
from interlock.hooks import fast
from tests.core.gate.host_calls import tool_call

Scope = Literal["user", "project"]
HOME = "/home/me/.local/share/interlock"
CODING = GateRow("ses_1", "coding", is_started=True, task="T")
LINKS = {
    "/work/p/link": "/work/p/.mcp.json",
    "/work/p/dir/settings.json": "/work/p/.claude/settings.json",
    "/work/p/hidden": "/work/p/.interlock",
    "/work/p/sub/x": f"{HOME}/gate.db",
}


def said(tool: str, given: Any, policy: Policy | None = None, cwd: str = "/work/p") -> GateDecision:
    call = tool_call(tool, given, cwd)
    real_path = {**LINKS}.get
    policy = policy or Policy(protected=("deploy/prod.toml",))
    return decide(CODING, policy, call, home=HOME, real_path=lambda path: real_path(path, path))


def start_of(given: object) -> str:
    return str(given)[:60]


def shell(command: str, cwd: str = "/work/p") -> GateDecision:
    return said("Bash", {"command": command}, cwd=cwd)


# Which paths a program writes is in the tables of `test_shell`.
DENIED = (
    *("touch .mcp.json", "echo x > .git/hooks/pre-commit", "vim .mcp.json", "rm deploy/prod.toml"),
    *("cd .git && touch hooks/a", "bash -c 'cd .claude; rm settings.json'", "rm /tmp/x/.mcp.json"),
    # What a shell fills in.
    *("cp x .interloc?/config.toml", "echo a > .i*/config.toml", "cp x .g[i]t/hooks/pre-commit"),
    *("cp x '.interl'oc?/config.toml", "rm {a,.mcp.json}"),
    *("cd ~/.local/share; cp x inter*/trusted.json", "cp x /home/me/.local/share/in*/trusted.json"),
    *('> "$PWD/.claude/settings.json"', "> $x/.mcp.json", "touch .claude/$x"),
    *("rm $HOME/.claude/settings.json", 'rm -r "$INTERLOCK_HOME"', "rm ${INTERLOCK_HOME}/gate.db"),
    # With the directory.
    *("rm -rf .interlock", "rm -rf /work/p/.git", "rm -rf $PWD/.git", "rm -r ~/.claude"),
    *("rm -rf deploy", "mv .claude x", "mv settings.json .claude/", "cp -r a/. .claude"),
    *("cp /tmp/config.toml .interlock", 'cp "$x" .interlock/', "git restore .mcp.json"),
    *("git checkout HEAD -- .interlock", "git clean -fdx .claude", "find .interlock -delete"),
    *("git -C .. checkout p/.mcp.json", "find .claude -type f | xargs -I{} rm .claude/{}"),
    *(f"sqlite3 {HOME}/gate.db 'DELETE FROM gate'", f"rm -r {HOME}", f"mv {HOME} x"),
    f"chmod 777 {HOME}/gate.db",
    # Where links lead.
    *("echo x > link", "cp a dir/settings.json", "rm -rf hidden", "cd sub && rm x"),
    # What nobody looks through.
    *(f"touch {'a/' * 3000}", f"touch .{'*x' * 200}/settings.json"),
)
ALLOWED = (
    *("git add .interlock/config.toml", "git commit -m 'Change .mcp.json'", "rm -rf build", "rm *"),
    *("cp .mcp.json backup/", "cp x .interlock/", "mkdir -p .claude/commands", "git add .*"),
    *("rm .claude/commands/x.md", "mv a b", "git clean -fdx", "rm -f .git/index.lock"),
    *("git stash -u", "git checkout main", "git checkout -- .", "git rm -r src"),
    *("rm -f .g*ignore.bak", "rm -rf template/.git", 'rm -rf "$d/.git"', "cp -r .claude ../other/"),
    *("rm $x", 'cp "$x" build/', "touch $x/y", "cp -r a/ .", "rsync -a a/ b/", "rm -rf $TMPDIR/*"),
    *("find . -name '*.pyc' -delete", "find . -delete", "find .git -name '*.lock' -delete"),
    *("sed -i 's/x/.mcp.json/' README.md", "grep -o .mcp.json README.md > x"),
    *("python3 check.py .mcp.json", "chmod 755 .claude", "perl -Mstrict -ne print .mcp.json"),
    *("cd .claude && ls && cd .. && touch settings.json", "git -C sub checkout -b .claude"),
    *("make > log 2>&1", "touch deploy/test.toml"),
    f"cat > docs/x.md <<'E'\n{'.claude/settings.json */ ' * 1000}\nE",
)


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize("command", DENIED, ids=start_of)
def test_no_command_writes_what_is_protected(command: str) -> None:
    decision = shell(command)

    assert decision.answer == "deny"
    assert decision.rule in ("path.protected", "user.only", "secret.read")


@pytest.mark.parametrize("command", ALLOWED, ids=start_of)
def test_everyday_commands_go_on(command: str) -> None:
    decision = said("Bash", {"command": command}, Policy())

    assert decision.answer == "allow", decision.reason


@pytest.mark.parametrize(
    ("cwd", "command", "is_denied"),
    [
        ("/work/p/sub", "rm -rf ../.git", True),
        ("/work/p/sub", "rm -rf .git", True),
        ("/work/p/.claude", "cp /tmp/settings.json .", True),
        ("/work/p/.claude", "rm settings.json", True),
        ("/work/p/.claude/commands", "rm -rf .", False),
        ("/work/p/.git/hooks", "touch x", True),
        ("/work/p/.git/hooks/a/b", "touch c", True),
        ("/", "rm -rf work/p/.git", False),
        ("/home/me/work/p", "rm -rf ~/work/p/.interlock", True),
        ("/home/me/work/p", "rm -rf ~/work/q/.interlock", False),
        ("/home/me/.local/share", "rm $x", False),
        ("/home/me/.local/share", "rm interlock/$x", True),
        ("/home/me/.local/share", "rm inter*/x", True),
        (f"/{'a/' * 3000}", "touch x", True),
        (f"/{'a' * 100}", f"touch {' '.join(map(str, range(9999)))}", True),
    ],
    ids=start_of,
)
def test_a_directory_counts_around_where_the_agent_works(
    cwd: str, command: str, *, is_denied: bool
) -> None:
    assert (shell(command, cwd).answer == "deny") == is_denied


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": ".mcp.json", "content": ""}),
        ("Write", {"file_path": "/work/p/link"}),
        ("Write", {"file_path": "a" * 5000}),
        ("MultiEdit", {"file_path": "a", "edits": [{"file_path": ".mcp.json", "old_string": "a"}]}),
        ("MultiEdit", {"edits": [{"change": {"path": ".claude/settings.json"}}]}),
        ("NotebookEdit", {"notebook_path": ".claude/settings.json", "new_source": ""}),
        ("Edit", {"somewhere": ".mcp.json"}),
        ("Edit", {"files": ["a", ".git/hooks/pre-commit"]}),
        ("mcp__files__write", {"path": ".mcp.json", "text": "x"}),
        ("mcp__files__move", {"from": {"name": "/work/p/.interlock"}, "to": "x"}),
        ("mcp__files__write", {"uri": "file:///work/p/.claude/settings.json"}),
        ("mcp__files__write", {"path": f"{HOME}/gate.db"}),
        ("mcp__files__write", {"path": "deploy/prod.toml"}),
        ("Brandnew", [".codex/config.toml"]),
        ("PowerShell", {"command": "Set-Content -Path '.mcp.json' -Value x"}),
        ("PowerShell", {"command": "Remove-Item -Recurse .\\.interlock"}),
    ],
    ids=start_of,
)
def test_no_tool_writes_what_is_protected(tool: str, given: Any) -> None:
    decision = said(tool, given)

    assert (decision.answer, decision.rule) == ("deny", "path.protected")


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": ".mcp.json"}),
        ("Edit", {"file_path": "a.md", "old_string": ".mcp.json", "new_string": ".claude.json"}),
        ("mcp__files__write", {"path": "a.md", "text": f"See .mcp.json\n{'x' * 9000}"}),
        ("mcp__web__fetch", {"url": "https://example.com/a/.mcp.json"}),
        ("mcp__files__write", {"text": "Look at .claude/settings.json, please"}),
        ("mcp__files__read", {"path": ".mcp.json"}),
        ("WebFetch", {"url": ".mcp.json"}),
        ("PowerShell", {"command": "Get-ChildItem src | Select-String x"}),
    ],
)
def test_other_calls_go_on(tool: str, given: Any) -> None:
    assert said(tool, given, Policy(reading_tools=("mcp__files__read",))).answer == "allow"


def test_the_longest_path_is_still_looked_at() -> None:
    path = f"{'a/' * (paths.PATH_MAX // 2 - 5)}.mcp.json"

    assert len(path) <= paths.PATH_MAX
    assert paths.protection_of(path, "/work", HOME) == ".mcp.json"
    assert paths.protection_of(path.replace(".mcp", "amcp"), "/work", HOME) is None


OWN_WORKTREE = f"{HOME}/worktrees/ses_1"


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Write", {"file_path": f"{OWN_WORKTREE}/src/a.py"}, "allow"),
        ("Bash", {"command": "echo x > a.txt && rm -r src"}, "allow"),
        ("Write", {"file_path": f"{OWN_WORKTREE}/.mcp.json"}, "deny"),
        ("Write", {"file_path": f"{HOME}/worktrees/ses_2/a.py"}, "deny"),
        ("Write", {"file_path": f"{OWN_WORKTREE}/../../gate.db"}, "deny"),
        ("Bash", {"command": "rm -r ../ses_*"}, "deny"),
        ("Bash", {"command": "rm -r .."}, "deny"),
    ],
)
def test_unattended_work_writes_its_own_worktree_and_nothing_else_beside_it(
    tool: str, given: Any, answer: str
) -> None:
    assert said(tool, given, cwd=OWN_WORKTREE).answer == answer


def test_nobody_else_writes_the_worktree_of_unattended_work() -> None:
    assert said("Write", {"file_path": f"{OWN_WORKTREE}/src/a.py"}).answer == "deny"


def hook_files(host: str, scope: Scope) -> list[str]:
    """The files of an install that make the host run our hooks, in the project or the home."""
    root = "/work/p" if scope == "project" else "/home/me"
    parts = host_named(host).parts(scope, root, HOME, {})
    return [
        part.path
        for part in parts
        if (isinstance(part, JsonPart) and "hooks" in part.addition)
        or (isinstance(part, OwnFile) and part.is_watched)
    ]


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", NAMES)
def test_the_files_that_make_a_host_run_our_hooks_are_protected(host: str, scope: Scope) -> None:
    files = hook_files(host, scope)
    assert files

    for path in files:
        for tool, given in (
            ("Write", {"file_path": path, "content": "x"}),
            ("Bash", {"command": f"rm {path}"}),
            ("Bash", {"command": f"echo x > {path.removeprefix('/work/p/')}"}),
        ):
            assert said(tool, given).rule == "path.protected", (tool, given)
        assert not fast.is_free_edit({"file_path": path}, HOME), path
        assert not fast.is_free_command(f"rm {path}", "/work/p", HOME), path
