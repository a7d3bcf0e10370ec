"""The modes for plans that clients have themselves: nothing is edited but the plan, until a yes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.app.context import App
from interlock.app.gate import bound_conversations
from interlock.core.gate.state import Mode
from interlock.hooks.hook_result import HookResult
from interlock.workspace.machine import spool
from tests.hooks.clients import Client, attend
from tests.hooks.recordings import recorded

SILENCE = HookResult()
PLANNING = {"permission_mode": "plan"}
TELLING = ("claude-code", "codex", "opencode")
"""The hosts that tell our hooks that they are in their mode for plans."""


@pytest.fixture
def client(app: App, home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Client:
    return Client(app, home, tmp_path, getattr(request, "param", "claude-code"))


@pytest.mark.parametrize("client", TELLING, indirect=True)
@pytest.mark.parametrize("mode", ["analysis", "planning", "coding"])
def test_while_a_client_plans_nothing_is_edited_whatever_our_mode(
    client: Client, mode: Mode
) -> None:
    client.begin(mode)

    said = client.call("edit", None, **PLANNING)

    assert said.answer == "deny"
    assert f"(mode.{'planning' if mode == 'planning' else 'analysis'}, " in said.reason
    asked = "ask" if client.host.asks else "deny"
    assert client.call("shell", None, **PLANNING).answer == asked
    assert client.call("read", None, **PLANNING).raw == {}
    assert client.mode() == mode, "it is only held back"


def test_a_gate_that_is_off_is_off(client: Client) -> None:
    client.begin("disabled")

    assert client.send("pre-tool", **client.tool("edit"), **PLANNING) == SILENCE


PLANS: dict[str, Callable[[Client, Path], Path]] = {
    "claude-code": lambda _, own: own / ".claude" / "plans" / "a.md",
    "opencode": lambda client, _: client.project / ".opencode" / "plans" / "x.md",
    "gemini": lambda _, own: own / ".gemini" / "tmp" / "project" / "s" / "plans" / "a.md",
}
"""Where clients write their plans."""
KEYS = {"claude-code": "file_path", "opencode": "filePath", "gemini": "file_path"}


@pytest.mark.parametrize("client", PLANS, indirect=True)
@pytest.mark.parametrize("mode", ["analysis", "planning"])
def test_the_plan_itself_is_written_in_every_mode(
    client: Client, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    plan = PLANS[client.host.name](client, Path.home())
    monkeypatch.setenv("GEMINI_PLANS_DIR", str(plan.parent))
    client.begin(mode)

    assert client.call("edit", {KEYS[client.host.name]: str(plan)}, **PLANNING).raw == {}
    for other in (f"{plan.parent}/../x.md", f"{plan.parent}s/x.md", str(plan.parent.parent / "x")):
        change = {KEYS[client.host.name]: other}
        assert client.call("edit", change, **PLANNING).answer == "deny", other


@pytest.mark.parametrize("client", ["opencode"], indirect=True)
def test_opencode_also_writes_plans_to_its_data(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client.begin("analysis")
    usual = Path.home() / ".local" / "share" / "opencode" / "plans" / "y.md"
    assert client.call("edit", {"filePath": str(usual)}, **PLANNING).raw == {}

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    moved = tmp_path / "data" / "opencode" / "plans" / "y.md"
    assert client.call("edit", {"filePath": str(moved)}, **PLANNING).raw == {}
    assert client.call("edit", {"filePath": str(usual)}, **PLANNING).answer == "deny"


@pytest.mark.parametrize("client", ["gemini"], indirect=True)
@pytest.mark.parametrize("place", ["", "/", "<PROJECT>", "<OWN>/.gemini/tmp/../..", "<OWN>/.ssh"])
def test_a_directory_for_plans_that_is_not_of_the_client_frees_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Its variable is the environment's, and a project may bring one."""
    place = place.replace("<PROJECT>", str(client.project)).replace("<OWN>", str(Path.home()))
    monkeypatch.setenv("GEMINI_PLANS_DIR", place)
    client.begin("analysis")

    for path in (f"{place}/a.md", f"{client.project}/a.md"):
        assert client.call("edit", {"file_path": path}).answer == "deny"


@pytest.mark.parametrize("client", ["claude-code", "opencode"], indirect=True)
def test_a_link_among_the_plans_leads_to_no_other_file(client: Client) -> None:
    plan = PLANS[client.host.name](client, Path.home())
    plan.parent.mkdir(parents=True)
    plan.symlink_to(client.project / "a.py")
    client.begin("analysis")

    said = client.call("edit", {KEYS[client.host.name]: str(plan)}, **PLANNING)

    assert said.answer == "deny"


def approve(client: Client, name: str, **changes: Any) -> dict[str, Any]:
    """A plan was approved: what is told."""
    payload = recorded(name, client.project, session_id=client.conversation, **changes)
    payload.pop("cwd")
    return client.told("post-tool", **payload)


APPROVALS = tuple(
    f"claude-PostToolUse-ExitPlanMode-{what}" for what in ("approved-auto", "no-plan-default")
)
SUBMITTED = {"plan": "# Plan", "isAgent": True, "awaitingLeaderApproval": True, "requestId": "1"}
"""The response where an agent of a team has only sent its plan to the one that leads."""


@pytest.mark.parametrize("name", APPROVALS)
@pytest.mark.parametrize("mode", ["analysis", "planning"])
def test_a_plan_that_the_user_approves_leads_to_coding(
    client: Client, name: str, mode: Mode
) -> None:
    client.begin(mode)

    told = approve(client, name)

    text = "The user approved the plan. The mode is now coding."
    assert told == {
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text},
        "systemMessage": f"Interlock: {text}",
    }
    assert client.mode() == "coding"
    assert client.call("edit").raw == {}
    assert list(spool.commands(client.home)) == []


@pytest.mark.parametrize("mode", ["coding", "disabled"])
def test_where_all_is_allowed_already_an_approval_changes_nothing(
    client: Client, mode: Mode
) -> None:
    client.begin(mode)

    assert approve(client, APPROVALS[0]) == {}
    assert client.mode() == mode


def test_a_project_in_which_only_the_user_goes_on_to_coding_is_not_overruled(
    client: Client,
) -> None:
    config = client.project / ".interlock" / "config.toml"
    config.write_text("[gate]\nagent_may_code = false\n")
    client.begin("analysis")

    told = approve(client, APPROVALS[0])

    assert "The mode was not changed." in told["systemMessage"]
    assert client.mode() == "analysis"


UNSEEN: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "of a subagent": ({"agent_id": "a598a326280c0ce1a", "agent_type": "general-purpose"}, {}),
    "sent to an agent": ({"tool_response": SUBMITTED}, {}),
    "unattended": ({}, {"CLAUDE_CODE_SESSION_ATTENDED": "0"}),
    "run by an agent": ({}, {"AI_AGENT": "claude-code_2_agent"}),
}


@pytest.mark.parametrize(("changes", "variables"), UNSEEN.values(), ids=UNSEEN)
def test_a_plan_that_no_user_has_seen_leads_nowhere(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    variables: dict[str, str],
) -> None:
    client.begin("analysis")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    approve(client, APPROVALS[0], **changes)

    assert client.mode() == "analysis"


def test_the_question_about_a_plan_is_the_clients_and_passes(client: Client) -> None:
    client.begin("analysis")
    name = "claude-PreToolUse-ExitPlanMode"
    payload = recorded(name, client.project, session_id=client.conversation)
    payload.pop("cwd")

    assert client.send("pre-tool", **payload) == SILENCE
    assert client.mode() == "analysis"


@pytest.mark.parametrize("client", ["gemini"], indirect=True)
def test_gemini_does_not_tell_that_it_plans_so_a_name_alone_is_a_file_of_the_project(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend(monkeypatch, client.host)
    plans = Path.home() / ".gemini" / "tmp" / "project" / "s" / "plans"
    monkeypatch.setenv("GEMINI_PLANS_DIR", str(plans))
    client.begin("analysis")
    sent = recorded("gemini-BeforeTool-write_file-in-plan-mode", client.project)

    said = client.call("edit", sent["tool_input"])

    assert said.answer == "deny"
    for tool in ("enter_plan_mode", "exit_plan_mode"):
        assert client.send("pre-tool", tool_name=tool, tool_input={}) == SILENCE
    assert bound_conversations.state_of(client.home, "gemini", client.conversation)
