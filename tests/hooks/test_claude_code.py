"""Claude Code's calls through the full hook, in every mode and wherever the mode is not known."""

import json
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.gate import gate_journal
from interlock.core.gate.state import MODES, Mode
from interlock.hooks.hook_result import BLOCKING_EXIT_CODE, HookEvent, HookResult
from tests.effort import scale
from tests.hooks.scene import Scene
from tests.hooks.test_fast import CONDITIONS

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
BEFORE_CODING = {"edit": "deny", "mcp": "ask", "other": "ask", "shell that may write": "ask"}


def answers(scene: Scene) -> dict[str, str]:
    """The answers to the calls that are not allowed."""
    found: dict[str, str] = {}
    for kind, call in CALLS.items():
        done = scene.full(scene.payload(*call))
        assert done.code == 0, done.err
        if done != HookResult():
            found[kind] = json.loads(done.out)["hookSpecificOutput"]["permissionDecision"]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_decides_about_every_class_of_tool(scene: Scene, mode: Mode) -> None:
    scene.goes_to(mode)

    assert answers(scene) == (BEFORE_CODING if mode in ("analysis", "planning") else {})


@pytest.mark.invariant("gate-fails-closed")
@pytest.mark.parametrize(
    "condition",
    ["no gate.db", "gate.db is corrupt", "gate.db is a directory", "a mode that is not known"],
)
def test_where_the_state_is_not_known_all_but_reading_is_denied(
    scene: Scene, condition: str
) -> None:
    scene.goes_to("coding")
    CONDITIONS[condition](scene)

    denied = answers(scene)

    assert set(CALLS) - set(denied) == {"read", "search", "web", "own"}
    assert set(denied.values()) == {"deny"}


def test_a_denial_names_the_way_out_and_is_kept(scene: Scene) -> None:
    outcome = scene.full(scene.payload("Write", {"file_path": "a"}, session_id="unbound"))

    reason = json.loads(outcome.out)["hookSpecificOutput"]["permissionDecisionReason"]
    assert "`/mode analysis`" in reason
    assert "interlock mode disabled --force" in reason
    (line,) = gate_journal.journal_lines(scene.home)
    assert line.id in reason
    assert (line.rule, line.mode) == ("state.unknown", "unknown")


@pytest.mark.parametrize("event", get_args(HookEvent))
def test_a_payload_that_makes_no_sense_is_denied_without_a_traceback(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, event: HookEvent
) -> None:
    monkeypatch.chdir(scene.project)

    for content in (b"", b"{", b"null", b"[]", b"\xff\xfe\x00", b'{"cwd": 7}', b"0" * 10**6):
        outcome = scene.full(content, event)

        assert outcome.out == b"" or event == "session-start"
        assert "Traceback" not in outcome.err
        assert outcome.code == (BLOCKING_EXIT_CODE if event == "pre-tool" else 0)


@settings(max_examples=scale(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes_before_a_tool_call_are_denied(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.chdir(scene.project)

    outcome = scene.full(content)

    assert outcome.code == BLOCKING_EXIT_CODE or b'"deny"' in outcome.out
