"""Claude Code's hooks over recorded payloads: what each is answered, in every state."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.agents.hosts.claude_code import HOST
from interlock.app.admin.access import load_secret, publish_agent_bearer
from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.gate import gate_journal, overrides
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.gate.state import MODES, Mode
from interlock.core.protocol.gated_session import Conversation, SessionNotAttended
from interlock.hooks.full_hook import run_hook
from interlock.hooks.hook_result import BLOCKING_EXIT_CODE, EVENTS, HookEvent, HookResult
from tests.effort import scale
from tests.hooks import recordings
from tests.sessions import begin_recorded

NATIVE_EVENTS: dict[str, HookEvent] = {
    HOST.native_event(event): event for event in EVENTS if HOST.native_event(event)
}
Hook = Callable[..., HookResult]


def recorded(name: str, project: Path, **changes: Any) -> dict[str, Any]:
    return recordings.recorded(f"claude-{name}", project, session_id="host-1", **changes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    opt_in(tmp_path, "standard")
    return tmp_path


@pytest.fixture
def hook(home: Path) -> Hook:
    def sent(payload: dict[str, Any]) -> HookResult:
        event = NATIVE_EVENTS[payload["hook_event_name"]]
        return run_hook(HOST, event, home, json.dumps(payload).encode())

    return sent


def answer(outcome: HookResult) -> str:
    """allow, deny or ask."""
    assert outcome.code == 0, outcome.err
    if not outcome.out:
        return "allow"
    return json.loads(outcome.out)["hookSpecificOutput"]["permissionDecision"]


def tool(name: str, project: Path, **tool_input: Any) -> dict[str, Any]:
    return recorded("PreToolUse-Write", project, tool_name=name, tool_input=tool_input)


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "read": ("Read", {"file_path": "a"}),
    "search": ("Grep", {"pattern": "a"}),
    "web": ("WebFetch", {"url": "https://nowhere.invalid"}),
    "edit": ("Write", {"file_path": "a", "content": "x"}),
    "shell that reads": ("Bash", {"command": "ls"}),
    "shell that may write": ("Bash", {"command": "make"}),
    "agent": ("Agent", {"prompt": "look"}),
    "mcp": ("mcp__other__thing", {}),
    "own": ("mcp__interlock__session", {}),
    "other": ("Brandnew", {}),
}
ALLOWED: dict[str, set[str]] = {
    "analysis": {"read", "search", "web", "agent", "own", "shell that reads"},
    "planning": {"read", "search", "web", "agent", "own", "shell that reads"},
    "coding": set(CALLS),
    "disabled": set(CALLS),
}
ASKED: dict[str, set[str]] = {
    "analysis": {"mcp", "other", "shell that may write"},
    "planning": {"mcp", "other", "shell that may write"},
}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("mode", MODES)
def test_the_mode_decides_about_every_class_of_tool(
    app: App, hook: Hook, project: Path, mode: Mode, kind: str
) -> None:
    session = begin_recorded(app, project, Conversation("claude-code", "host-1")).session
    gated_sessions.change_mode(app, session, mode, by="user", task="T-1")
    name, given_ = CALLS[kind]

    found = answer(hook(tool(name, project, **given_)))

    expected = "allow" if kind in ALLOWED[mode] else "deny"
    assert found == ("ask" if kind in ASKED.get(mode, ()) else expected)


def unbound(home: Path) -> None:
    """The conversation was never bound to a session."""


def corrupt(home: Path) -> None:
    (home / "gate.db").write_bytes(b"this is no database" * 100)


def unknown_mode(home: Path) -> None:
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(home / "gate.db") as db:
        db.execute("UPDATE gate SET mode = 'yolo'")


def directory(home: Path) -> None:
    (home / "gate.db").unlink()
    (home / "gate.db").mkdir()


def missing(home: Path) -> None:
    (home / "gate.db").unlink()


@pytest.mark.invariant("gate-fails-closed")
@pytest.mark.parametrize("harm", [corrupt, unknown_mode, directory, missing])
def test_whatever_keeps_the_state_from_being_known_denies_all_but_reading(
    app: App, hook: Hook, home: Path, project: Path, harm: Callable[[Path], None]
) -> None:
    session = begin_recorded(app, project, Conversation("claude-code", "host-1")).session
    gated_sessions.change_mode(app, session, "coding", by="user")
    harm(home)

    for kind, (name, given_) in CALLS.items():
        expected = "allow" if kind in ("read", "search", "web", "own") else "deny"
        assert answer(hook(tool(name, project, **given_))) == expected, kind


def test_a_denial_names_the_way_out_and_is_kept(hook: Hook, home: Path, project: Path) -> None:
    outcome = hook(tool("Write", project, file_path="a"))

    reason = json.loads(outcome.out)["hookSpecificOutput"]["permissionDecisionReason"]
    assert "`/mode analysis`" in reason
    assert "interlock mode disabled --force" in reason
    (line,) = gate_journal.journal_lines(home)
    assert line.id in reason
    assert (line.rule, line.mode) == ("state.unknown", "unknown")


def test_the_user_can_always_switch_the_gate_off(hook: Hook, home: Path, project: Path) -> None:
    overrides.start_override(home)

    assert answer(hook(tool("Write", project, file_path="a"))) == "allow"


def test_where_nobody_opted_in_the_hook_is_silent(hook: Hook, tmp_path: Path) -> None:
    for name in ("PreToolUse-Write", "SessionStart-startup", "Stop", "UserPromptSubmit"):
        assert hook(recorded(name, tmp_path)) == HookResult()


def test_a_broken_project_config_denies(app: App, hook: Hook, project: Path) -> None:
    begin_recorded(app, project, Conversation("claude-code", "host-1"))
    (project / ".interlock" / "config.toml").write_text("[project\n")

    assert answer(hook(tool("Write", project, file_path="a"))) == "deny"
    assert answer(hook(tool("Read", project, file_path="a"))) == "allow"


def test_a_session_start_tells_where_the_session_stands(hook: Hook, project: Path) -> None:
    told = json.loads(hook(recorded("SessionStart-startup", project)).out)["hookSpecificOutput"]

    assert told["hookEventName"] == "SessionStart"
    assert "Mode: analysis" in told["additionalContext"]
    assert "Shell commands are not confined" in told["additionalContext"]
    assert not hook(recorded("SessionStart-resume", project)).out, "it knows all of that"
    compacted = json.loads(hook(recorded("SessionStart-compact", project)).out)
    assert compacted["hookSpecificOutput"] == told, "it knows nothing of that any more"


def test_what_the_user_types_changes_the_mode(app: App, hook: Hook, project: Path) -> None:
    session = begin_recorded(app, project, Conversation("claude-code", "host-1")).session

    told = hook(recorded("UserPromptSubmit", project, prompt="/mode coding --task T-9"))

    assert b"coding" in told.out
    state = session_record.state_of(app, session)
    assert not isinstance(state, SessionNotAttended)
    assert (state.current_mode, state.active_task) == ("coding", "T-9")
    quoted = "Please read this: /mode disabled"
    assert hook(recorded("UserPromptSubmit", project, prompt=quoted)).out == b""


@pytest.mark.parametrize("event", get_args(HookEvent))
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"\xff\xfe\x00", b'{"cwd": 7}', b'{"tool_name": ""}', b"0" * 10**6],
    ids=range(8),
)
def test_a_payload_that_makes_no_sense_is_denied_without_a_traceback(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, event: HookEvent, content: bytes
) -> None:
    monkeypatch.chdir(project)

    outcome = run_hook(HOST, event, home, content)

    assert outcome.out == b"" or event == "session-start"
    assert "Traceback" not in outcome.err
    assert outcome.code == (BLOCKING_EXIT_CODE if event == "pre-tool" else 0)


@settings(max_examples=scale(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes_before_a_tool_call_are_denied(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(project)

    assert run_hook(HOST, "pre-tool", home, content).code in (0, BLOCKING_EXIT_CODE)


@pytest.mark.invariant("agents-keep-their-rules")
@pytest.mark.parametrize(
    "command",
    [
        "interlock mode disabled",
        "interlock mode coding --task x && touch a",
        "interlock mode disabled --force",
        "interlock approvals grant apr_1",
        "bash -c 'interlock mode disabled'",
        "env X=1 interlock keys rotate",
        "echo x; interlock uninstall claude-code",
        "interlock mode $(echo disabled)",
        "echo hi > .interlock/config.toml",
        "tee .claude/settings.json < x",
        "cp x .git/hooks/pre-commit",
    ],
)
def test_an_agent_does_not_change_its_own_rules(
    app: App, hook: Hook, project: Path, command: str
) -> None:
    session = begin_recorded(app, project, Conversation("claude-code", "host-1")).session
    for mode in ("analysis", "planning", "coding"):
        gated_sessions.change_mode(app, session, mode, by="user", task="T")

        assert answer(hook(tool("Bash", project, command=command))) == "deny", mode


@pytest.mark.invariant("secrets-stay-unread")
def test_an_agent_reads_no_secret_of_the_server(
    app: App, hook: Hook, home: Path, project: Path, kept_in: str
) -> None:
    session = begin_recorded(app, project, Conversation("claude-code", "host-1")).session
    publish_agent_bearer(home, load_secret(home))
    for mode in ("analysis", "planning", "coding"):
        gated_sessions.change_mode(app, session, mode, by="user", task="T")
        for file in (home / "secret", home / "agent-secret", home / "keyring"):
            assert file.exists() or kept_in == "postgres"
            assert answer(hook(tool("Read", project, file_path=str(file)))) == "deny", mode
            assert answer(hook(tool("Bash", project, command=f"cat {file}"))) == "deny", mode
        assert answer(hook(tool("Grep", project, pattern=".", path=str(home)))) == "deny", mode

    gated_sessions.change_mode(app, session, "disabled", by="user")
    assert answer(hook(tool("Read", project, file_path=str(home / "secret")))) == "allow"


def test_an_agent_goes_where_the_policy_lets_it(app: App, hook: Hook, project: Path) -> None:
    begin_recorded(app, project, Conversation("claude-code", "host-1"))

    def said(command: str) -> str:
        return answer(hook(tool("Bash", project, command=command)))

    assert said("interlock mode planning") == "allow"
    assert said("interlock mode coding --task T-1") == "deny"
    assert said("interlock session get-state") == "allow"
