"""Paths that other agents have reserved: an agent is warned before it writes them, or denied."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from interlock.agents.hosts.registry import host_named
from interlock.app.callers.session_record import StartedSession
from interlock.app.clock import SystemClock
from interlock.app.context import App
from interlock.app.coordination import holdings
from interlock.app.coordination.holdings import ReservedPaths, ReserveRequest
from interlock.app.coordination.participants import Participant
from interlock.app.coordination.project_desk import open_desk
from interlock.app.gate import gate_journal
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs import approvals
from interlock.core.protocol.gated_session import Conversation
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import HookResult
from interlock.store import gate_rows
from tests.hooks.clients import read_decision
from tests.hooks.recordings import recorded
from tests.hooks.scene import HOST, Scene
from tests.hooks.test_fast_process import fast_command, full_command, outcome
from tests.sessions import begin_recorded

SILENCE = HookResult()
ENFORCED = '[project]\nprofile = "standard"\n[coordination]\nenforce = true\n'
PATCH = "*** Begin Patch\n*** Update File: src/api/a.py\n@@\n-x\n+y\n*** End Patch\n"
EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "Write": ("Write", {"file_path": "<PROJECT>/src/api/a.py", "content": "x"}),
    "Edit": ("Edit", {"file_path": "<PROJECT>/src/api/a.py", "old_string": "x", "new_string": "y"}),
    "a relative path": ("Write", {"file_path": "src/web/../api/a.py", "content": "x"}),
    "a link": ("Write", {"file_path": "<PROJECT>/link/a.py", "content": "x"}),
    "a subagent": ("Write", {"file_path": "<PROJECT>/src/api/b.py", "content": "x"}),
    "a patch": ("Bash", {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}),
    "a patch as an argument": ("Bash", {"command": f"apply_patch '{PATCH}'"}),
    "a patch in a folder": (
        "Bash",
        {"command": f"cd src && apply_patch <<X\n{PATCH[:33]}{PATCH[37:]}X"},
    ),
    "a patch in another shell": ("Bash", {"command": f'bash -lc "apply_patch <<EOF\n{PATCH}EOF"'}),
}
COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "a redirection": ("Bash", {"command": "echo > src/api/a.py"}),
    "sed -i": ("Bash", {"command": "sed -i s/a/b/ src/api/a.py"}),
    "rm -r of the folder above": ("Bash", {"command": "rm -r src"}),
    "from another folder": ("Bash", {"command": "cd src && touch api/a.py"}),
    "a glob": ("Bash", {"command": "rm src/api/*.py"}),
    "the last of several": ("Bash", {"command": "touch a && touch src/api/a.py"}),
    "a command through a link": ("Bash", {"command": "touch link/a.py"}),
}
EDIT = EDITS["Write"]
FREE: dict[str, tuple[str, dict[str, Any]]] = {
    "a file beside": ("Write", {"file_path": "<PROJECT>/src/apis.py", "content": "x"}),
    "an excluded file": ("Write", {"file_path": "<PROJECT>/src/api/tests/a.py", "content": "x"}),
    "a file elsewhere": ("Write", {"file_path": "/tmp/src/api/a.py", "content": "x"}),
    "reading": ("Bash", {"command": "cat src/api/a.py"}),
    "another command": ("Bash", {"command": "touch docs/src/api"}),
}


@pytest.fixture(autouse=True)
def files(scene: Scene) -> None:
    (scene.project / "src" / "api").mkdir(parents=True)
    (scene.project / "link").symlink_to("src/api")
    scene.goes_to("coding")


def other_in(scene: Scene, project: Path | None = None, name: str = "host-2") -> StartedSession:
    """The session of another agent."""
    return begin_recorded(scene.app, project or scene.project, Conversation(HOST, name))


def reserve(
    scene: Scene, *paths: str, session: str = "", project: Path | None = None, **more: Any
) -> str:
    """Reserve paths for a session, another one if none is named. Returns whose they are."""
    desk = open_desk(scene.app, project or scene.project)
    who = Participant(session or other_in(scene, project).session)
    request = ReserveRequest(paths or ("src/api/**", "!src/api/tests"), **more)
    held = holdings.reserve_paths(scene.app, desk, who, request)
    assert isinstance(held, ReservedPaths), held
    return held.holder.base


def release(scene: Scene, session: str) -> None:
    outcome = holdings.release_paths(
        scene.app, open_desk(scene.app, scene.project), Participant(session), ()
    )
    assert isinstance(outcome, ReservedPaths)


def asked(scene: Scene, call: tuple[str, dict[str, Any]], **more: object) -> tuple[str, str]:
    """The answer to a call, and what is said; the fast hook says nothing where that is more."""
    content = scene.payload(*call, **more)
    is_fast = scene.is_fast(content)
    result = scene.full(content)
    assert result.code == 0, result.err
    assert not (is_fast and result.out), "the fast hook allows less"
    found: dict[str, str] = json.loads(result.out)["hookSpecificOutput"] if result.out else {}
    said = found.get("permissionDecisionReason") or found.get("additionalContext", "")
    return found.get("permissionDecision", "allow"), said


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("write", EDITS)
def test_the_first_edit_of_what_another_holds_is_denied_once_or_each_time_where_it_is_enforced(
    scene: Scene, write: str
) -> None:
    holder = reserve(scene, reason="the new API")
    scene.sql("UPDATE reservation SET content = json_set(content, '$.sinceMs', 1)")
    more = {"agent_id": "agent-1"} if write == "a subagent" else {}

    answer, said = asked(scene, EDITS[write], **more)

    assert answer == "deny"
    assert said.startswith(f"{holder} (session ")
    assert "has reserved `src/api/**` for “the new API” " in said
    assert " ago, for another 60 min, and this would write `src/api/" in said
    assert "make the same call again: it will pass" in said
    assert asked(scene, EDITS[write], **more) == ("allow", "")
    assert approvals.list_pending(scene.app) == []
    scene.asks(ENFORCED)
    for _ in range(2):
        answer, said = asked(scene, EDITS[write], **more)
        assert answer == "deny"
        assert "Work on other files, or ask the holder" in said
        assert "(path.reserved, gate_" in said
    lines = [(line.rule, line.answer) for line in gate_journal.journal_lines(scene.home)]
    assert lines == [("path.reserved", answer) for answer in ("deny", "allow", "deny", "deny")]


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("write", COMMANDS)
def test_a_command_that_may_write_what_another_holds_is_told_once_or_denied_where_it_is_enforced(
    scene: Scene, write: str
) -> None:
    holder = reserve(scene)

    answer, said = asked(scene, COMMANDS[write])

    assert answer == "allow"
    assert f": {holder} (session " in said
    assert ". Agree with the holder by `send_message`, or work on other files. (path" in said
    assert asked(scene, COMMANDS[write]) == ("allow", "")
    assert asked(scene, EDITS["Write"])[0] == "deny", "advice about a command is no warning"
    scene.asks(ENFORCED)
    for _ in range(2):
        assert asked(scene, COMMANDS[write])[0] == "deny"


PAYLOADS = {
    "claude-PreToolUse-Write": {"file_path": "<PROJECT>/src/api/a.py", "content": "x"},
    "codex-PreToolUse-apply_patch": {"command": PATCH},
    "codex-PreToolUse-Bash": {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"},
    "gemini-BeforeTool-write_file": {"file_path": "<PROJECT>/src/api/a.py", "content": "x"},
    "opencode-pre-tool-write": {"filePath": "<PROJECT>/src/api/a.py", "content": "x"},
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_client_is_warned_before_the_edit(app: App, scene: Scene, name: str) -> None:
    start = name.partition("-")[0]
    host = host_named("claude-code" if start == "claude" else start)
    mine = begin_recorded(app, scene.project, Conversation(host.name, "mine")).session
    gated_sessions.change_mode(app, mine, "coding", by="user", task="T-1")
    holder = reserve(scene)
    payload = recorded(name, scene.project, session_id="mine", cwd=str(scene.project))
    text = json.dumps({**payload, "tool_input": PAYLOADS[name]})
    content = text.replace("<PROJECT>", str(scene.project)).encode()

    first, again = (run_hook(host, "pre-tool", scene.home, content) for _ in range(2))

    decision = read_decision(host.name, json.loads(first.out))
    assert decision.answer == "deny"
    assert decision.reason.startswith(f"{holder} (session ")
    assert again == HookResult()


def test_a_call_over_several_files_is_denied_once_and_names_all_that_is_held(scene: Scene) -> None:
    first = reserve(scene, "src/api/**", "docs/a.md")
    second = reserve(scene, "src/web", session=other_in(scene, name="host-3").session)
    files = ("src/api/a.py", "src/api/b.py", "docs/a.md", "src/web/c.py", "free.py")
    adds = "".join(f"*** Add File: {file}\n+x\n" for file in files)
    command = f"apply_patch <<'EOF'\n*** Begin Patch\n{adds}*** End Patch\nEOF"
    patch = ("Bash", {"command": command})

    answer, said = asked(scene, patch)

    assert answer == "deny"
    assert said.count(f"{first} (session ") == 2
    assert f"{second} (session " in said
    assert "this would write `src/api/a.py`, `src/api/b.py`." in said
    assert all(f"`{path}`" in said for path in ("src/api/**", "docs/a.md", "src/web"))
    assert "free.py" not in said
    assert asked(scene, patch) == ("allow", "")
    for file in files:
        assert asked(scene, ("Write", {"file_path": file, "content": "x"})) == ("allow", "")


def test_a_new_holder_and_another_reservation_warn_again(scene: Scene) -> None:
    first = other_in(scene).session
    reserve(scene, session=first)
    assert asked(scene, EDIT)[0] == "deny"
    release(scene, first)
    reserve(scene, session=first)
    assert asked(scene, EDIT) == ("allow", ""), "it is the same holder"
    release(scene, first)

    second = reserve(scene, session=other_in(scene, name="host-3").session)

    answer, said = asked(scene, EDIT)
    assert (answer, said.startswith(f"{second} (session ")) == ("deny", True)
    reserve(scene, "docs", session=first)
    assert asked(scene, ("Write", {"file_path": "docs/a.md", "content": "x"}))[0] == "deny"


def test_another_session_is_warned_by_itself(scene: Scene) -> None:
    reserve(scene)
    assert asked(scene, EDIT)[0] == "deny"

    third = begin_recorded(scene.app, scene.project, Conversation(HOST, "host-3")).session
    gated_sessions.change_mode(scene.app, third, "coding", by="user", task="T-1")

    assert [asked(scene, EDIT, session_id="host-3")[0] for _ in range(2)] == ["deny", "allow"]


def test_a_warning_that_cannot_be_recorded_denies_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve(scene)
    monkeypatch.setattr(gate_rows, "BUSY_MS", 1)
    db: Any = apsw.Connection(str(scene.home / "gate.db"))
    with closing(db):
        db.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            answer, said = asked(scene, EDIT)
            assert answer == "allow"
            assert "has reserved `src/api/**`" in said
            assert "cannot be recorded, so the call was let through" in said
        db.execute("ROLLBACK")

    assert [asked(scene, EDIT)[0] for _ in range(2)] == ["deny", "allow"], "recorded again"


def test_where_the_user_made_the_rule_advisory_it_is_told_once(scene: Scene) -> None:
    (scene.home / "config.toml").write_text('[gate.rules]\n"path.reserved" = "advisory"\n')
    reserve(scene)

    answer, said = asked(scene, EDIT)

    assert (answer, "has reserved `src/api/**`" in said) == ("allow", True)
    assert "make the same call again" not in said
    assert asked(scene, EDIT) == ("allow", "")


def test_a_stricter_project_is_asked_after_the_warning_too(scene: Scene) -> None:
    other = scene.base / "other"
    opt_in(other, "standard")
    (other / ".interlock" / "config.toml").write_text('[gate]\nprotected = ["kept.py"]\n')
    reserve(scene)
    paths = ("src/api/a.py", "../other/kept.py")
    adds = "".join(f"*** Add File: {path}\n+x\n" for path in paths)
    command = f"apply_patch <<'EOF'\n*** Begin Patch\n{adds}*** End Patch\nEOF"
    patch = ("Bash", {"command": command})

    for _ in range(2):
        answer, said = asked(scene, patch)
        assert (answer, "path.protected" in said) == ("deny", True)


@pytest.mark.parametrize("free", FREE)
def test_what_is_not_reserved_is_free(scene: Scene, free: str) -> None:
    scene.asks(ENFORCED)
    reserve(scene)

    assert asked(scene, FREE[free]) == ("allow", "")


def wait_until_over(scene: Scene) -> None:
    reserve(scene)
    scene.sql(f"UPDATE reservation SET until_ms = {SystemClock().now_ms()}")


OBSTACLES: dict[str, Callable[[Scene], object]] = {
    "nothing": lambda _: None,
    "it is one's own": lambda s: reserve(s, session=s.session),
    "it is shared": lambda s: reserve(s, is_shared=True),
    "it has ended": wait_until_over,
    "it was released": lambda s: (reserve(s), release(s, other_in(s).session)),
    "the gate is off": lambda s: (reserve(s), s.goes_to("disabled")),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_these_are_no_obstacle(scene: Scene, obstacle: str) -> None:
    scene.asks(ENFORCED)
    OBSTACLES[obstacle](scene)

    assert asked(scene, EDIT) == ("allow", "")
    is_alone = scene.is_fast(scene.payload(*EDIT))
    assert is_alone == (obstacle != "it is shared"), "the fast hook answers alone again"


def test_what_was_reserved_before_anybody_was_under_the_gate_counts(scene: Scene) -> None:
    other = other_in(scene).session
    scene.sql("DELETE FROM gate")
    reserve(scene, session=other)

    other_in(scene, name="host-3")
    begin_recorded(scene.app, scene.project, Conversation(HOST, "host-1"))

    assert "has reserved `src/api/**`" in asked(scene, EDIT)[1]


@pytest.fixture
def worktree(scene: Scene) -> Path:
    """Another worktree of the same repository."""
    git = ["git", "-C", str(scene.project), "-c", "user.name=A", "-c", "user.email=a@b.invalid"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    other = scene.base / "worktree"
    subprocess.run([*git, "worktree", "add", "-q", str(other)], check=True)
    opt_in(other, "standard")
    scene.app.coordination.projects.clear()
    scene.asks(ENFORCED)
    return other


def test_another_worktree_is_warned_of_once_and_never_enforced(
    scene: Scene, worktree: Path
) -> None:
    reserve(scene, project=worktree)

    answer, said = asked(scene, EDIT)

    assert answer == "deny"
    assert f"in another worktree ({worktree})" in said
    assert "`src/api/a.py`; the changes will meet at the merge. Nothing" in said
    assert asked(scene, EDIT) == ("allow", "")


def test_who_is_elsewhere_does_not_hide_who_is_here(scene: Scene, worktree: Path) -> None:
    reserve(scene, "src/**", project=worktree)
    here = other_in(scene, name="host-3").session
    scene.asks('[project]\nprofile = "standard"\n')
    holder = reserve(scene, session=here, proceeds=True)
    scene.asks(ENFORCED)

    answer, said = asked(scene, EDIT)

    assert answer == "deny"
    assert said.startswith(f"{holder} (session ")


def test_a_project_below_the_top_of_its_repository_counts_from_there(scene: Scene) -> None:
    subprocess.run(["git", "init", "-q", str(scene.base)], check=True)
    scene.app.coordination.projects.clear()
    scene.asks(ENFORCED)
    reserve(scene, "project/src/api")

    assert asked(scene, EDIT)[0] == "deny"


@pytest.mark.slow
def test_the_hooks_as_processes_say_the_same(scene: Scene) -> None:
    scene.asks(ENFORCED)
    other = other_in(scene).session
    reserve(scene, session=other)
    scene.sql("UPDATE reservation SET content = json_set(content, '$.sinceMs', 1)")
    content = scene.payload(*EDIT, tool_use_id="toolu_1")

    first = outcome(fast_command(scene), content)

    assert all(part in first.out for part in (b'"deny"', b"has reserved `src/api/**`"))
    assert outcome(fast_command(scene), content) == outcome(full_command(scene), content)
    release(scene, other)
    assert outcome([*fast_command(scene)[:-1], "--no-such-flag"], content) == SILENCE, "alone"


def test_a_subagent_is_told_of_them_when_it_starts(scene: Scene) -> None:
    holder = reserve(scene, "src/api/**", "docs")
    payload = {"session_id": "host-1", "cwd": os.fspath(scene.cwd), "agent_id": "agent-1"}

    result = scene.full(json.dumps({**payload, "agent_type": "x"}).encode(), "subagent-start")

    said = json.loads(result.out)["hookSpecificOutput"]["additionalContext"]
    assert "Others have reserved these paths; leave them alone:\n" in said
    assert f"\n- src/api/**: {holder} (session " in said
    assert "\n- docs: " in said
