"""Task lists and subagents: what clients report is kept, and told again after a break."""

from pathlib import Path

import pytest

from interlock.app.callers.session_record import state_of
from interlock.app.context import App
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.progress import TITLE_CHARS_MAX, AgentProgress
from tests.hooks.clients import Client, attend, text_of
from tests.hooks.progress_reports import progress_of, send, told_after_a_break
from tests.hooks.recordings import recorded

TASKS = [("completed", "Read the code"), ("in_progress", "Write the fix")]
LISTS = {
    "claude-code": ["PostToolUse-TaskList"],
    "codex": ["PostToolUse-update_plan"],
    "gemini": ["AfterTool-write_todos"],
    "opencode": ["post-tool-todowrite"],
}
SUBAGENTS: dict[str, list[str]] = {
    "claude-code": [
        "PreToolUse-Agent-background",
        "SubagentStart-background",
        "PostToolUse-Agent-background",
        "SubagentStop-background",
    ],
    "codex": [
        "PreToolUse-spawn_agent-explorer",
        "PostToolUse-spawn_agent-explorer",
        "SubagentStart-explorer",
        "SubagentStop-explorer",
    ],
    "gemini": ["BeforeTool-invoke_agent", "AfterTool-invoke_agent"],
    "opencode": ["pre-tool-task", "subagent-start", "post-tool-task"],
}
"""What each client sends when one subagent works, from the recordings."""
RESULTS = {"claude-code": "No leaks 1", "codex": "sub says", "opencode": "No leaks"}


@pytest.fixture
def client(
    app: App,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Client:
    made = Client(app, home, tmp_path, getattr(request, "param", "claude-code"))
    attend(monkeypatch, made.host)
    made.begin("coding")
    return made


each = pytest.mark.parametrize("client", LISTS, indirect=True)


def tasks_of(client: Client) -> list[tuple[str, str]]:
    return [(task.status, task.title) for task in progress_of(client).tasks]


def events_of(client: Client) -> int:
    session = client.app.reader.session_of_conversation(client.host.name, client.conversation)
    assert session
    stream = client.app.reader.stream(session)
    assert stream
    return stream.version


@each
def test_a_task_list_is_kept_and_told_after_a_break(client: Client) -> None:
    for name in LISTS[client.host.name]:
        send(client, name)

    assert [title.replace("smaller ", "") for _, title in tasks_of(client)] == [
        title for _, title in TASKS
    ]
    assert [status for status, _ in tasks_of(client)] == [status for status, _ in TASKS]
    told = told_after_a_break(client)
    assert "## Task list\n\n- in progress: Write the" in told, "what is unfinished comes first"
    assert "- completed: Read the code" in told


@each
def test_a_list_that_has_not_changed_records_nothing(client: Client) -> None:
    (name,) = LISTS[client.host.name]
    send(client, name)
    before = events_of(client)

    send(client, name)

    assert events_of(client) == before


# Gemini CLI does not say which calls a subagent makes.
@pytest.mark.parametrize("client", sorted({*LISTS} - {"gemini"}), indirect=True)
def test_a_subagents_list_is_not_the_conversations(client: Client) -> None:
    send(client, LISTS[client.host.name][0], agent_id="agent-9", agent_type="worker")

    assert tasks_of(client) == []


def test_claude_codes_single_tasks_add_up_to_a_list(client: Client) -> None:
    send(client, "PostToolUse-TaskCreate")
    second = {"id": "2", "subject": "Write the fix", "description": "In exports.py"}
    send(client, "PostToolUse-TaskCreate", tool_response={"task": second})
    assert tasks_of(client) == [("pending", "Read the code"), ("pending", "Write the fix")]

    send(client, "PostToolUse-TaskUpdate")
    send(client, "PostToolUse-TaskUpdate-subject")
    changed = [("completed", "Read the code"), ("in_progress", "Write the smaller fix")]
    assert tasks_of(client) == changed

    send(client, "PostToolUse-TaskUpdate-unknown")
    assert tasks_of(client) == changed, "the client has no such task"
    send(client, "PostToolUse-TaskUpdate-deleted")
    assert tasks_of(client) == changed[1:]


def test_task_ids_that_start_again_in_a_new_conversation_overwrite_nothing(client: Client) -> None:
    send(client, "PostToolUse-TaskCreate")
    session = client.app.reader.session_of_conversation("claude-code", client.conversation)
    assert session
    client.conversation += "-2"
    conversation = Conversation("claude-code", client.conversation)
    gated_sessions.change_mode(client.app, session, "analysis", by="user")
    gated_sessions.join(client.app, client.project, conversation, session)

    task = {"id": "1", "subject": "Write the docs", "description": ""}
    send(client, "PostToolUse-TaskCreate", tool_response={"task": task})
    send(client, "PostToolUse-TaskUpdate")

    assert tasks_of(client) == [("pending", "Read the code"), ("completed", "Write the docs")]
    told = told_after_a_break(client)
    assert "Read the code (from an earlier conversation)" in told
    assert "Write the docs (task 1)" in told


def test_a_report_that_is_too_large_is_said_not_to_be_recorded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(client.project)
    title = "y" * 5_000_000
    task = {"id": "1", "subject": title, "description": ""}

    answer = send(
        client,
        "PostToolUse-TaskCreate",
        tool_input={"subject": title},
        tool_response={"task": task},
    )

    assert tasks_of(client) == []
    assert "nothing was recorded: its report has more than 8 MB" in text_of(answer)
    cut = send(client, "PostToolUse-TaskCreate", tool_response={"task": task})
    assert (text_of(cut), len(tasks_of(client)[0][1])) == ("", TITLE_CHARS_MAX)


@each
def test_a_subagent_is_kept_with_its_prompt_and_its_result(client: Client) -> None:
    names = SUBAGENTS[client.host.name]
    agent = {"agent_type": "explore"} if client.host.name == "opencode" else {}

    for name in names[:-1]:
        send(client, name, **(agent if name == "subagent-start" else {}))
    (running,) = progress_of(client).subagents
    told = told_after_a_break(client)
    send(client, names[-1])

    assert (running.outcome, running.prompt) == (None, "Look for leaks")
    assert "## Subagents that still run" in told
    assert f"- {running.agent}, asked “Look for leaks”: runs since" in told
    (ended,) = progress_of(client).subagents
    assert (ended.prompt, ended.outcome) == ("Look for leaks", "completed")
    if client.host.name == "gemini":
        assert '"SummaryOfFindings": "no leaks"' in ended.result
        return  # it tells with the next prompt only what the conversation has forgotten
    assert ended.result == RESULTS[client.host.name]
    told = told_after_a_break(client)
    assert "still run" not in told
    assert f"“Look for leaks”: completed. {ended.result}" in told


@each
def test_ordinary_subagents_take_part_in_no_routing(client: Client) -> None:
    for name in SUBAGENTS[client.host.name]:
        send(client, name)

    session = client.app.reader.session_of_conversation(client.host.name, client.conversation)
    assert session
    state = state_of(client.app, session)
    assert state.orchestrator_workflow is None


def test_a_known_agent_is_a_delegation_with_the_prompt_that_it_got(client: Client) -> None:
    asked = {"prompt": "Find the cause", "subagent_type": "analyst"}
    send(client, "PreToolUse-Agent", tool_input=asked)
    send(client, "SubagentStart", agent_type="analyst")
    send(client, "SubagentStop", agent_type="analyst")

    session = client.app.reader.session_of_conversation(client.host.name, client.conversation)
    assert session
    state = state_of(client.app, session)
    assert state.progress is None
    assert state.orchestrator_workflow is not None
    (made,) = state.orchestrator_workflow.agent_history
    assert (made.agent, made.input.prompt, made.status) == (
        "analyst",
        "Find the cause",
        "completed",
    )
    assert made.output is not None
    assert "SUBAGENT-RESULT" in made.output.summary


def test_parallel_subagents_of_one_kind_end_up_with_their_own_prompts(client: Client) -> None:
    """Which prompt is whose is only known when the call returns."""
    for prompt in ("first", "second"):
        send(client, "PreToolUse-Agent", tool_input={"prompt": prompt, "subagent_type": "Explore"})
    for name in ("agent-b", "agent-a"):  # the second one starts first
        send(client, "SubagentStart", agent_id=name, agent_type="Explore")
    send(client, "SubagentStop", agent_id="agent-b", last_assistant_message="result of second")
    for name, prompt in (("agent-a", "first"), ("agent-b", "second")):
        asked = {"prompt": prompt, "subagent_type": "Explore"}
        response = {"status": "completed", "agentId": name, "content": [{"text": "said"}]}
        send(client, "PostToolUse-Agent", tool_input=asked, tool_response=response)

    kept = {one.id: (one.prompt, one.outcome, one.result) for one in progress_of(client).subagents}
    assert kept == {
        "agent-a": ("first", "completed", "said"),
        "agent-b": ("second", "completed", "result of second"),
    }


@pytest.mark.parametrize("is_background", [True, False])
def test_a_subagent_that_fails_is_kept_as_failed(client: Client, *, is_background: bool) -> None:
    send(client, "PreToolUse-Agent-background")
    started = recorded("claude-UserPromptSubmit-agent-failed", client.project)["prompt"]
    name = started.partition("<task-id>")[2].partition("<")[0]
    send(client, "SubagentStart-background", agent_id=name)

    if is_background:
        send(client, "UserPromptSubmit-agent-failed")
    else:
        asked = recorded("claude-PreToolUse-Agent-background", client.project)["tool_input"]
        send(client, "PostToolUseFailure-Agent", tool_input=asked, error="API Error: 400 broken")

    (ended,) = progress_of(client).subagents
    assert (ended.outcome, "API Error: 400" in ended.result) == ("failed", True)


def test_a_call_that_starts_no_subagent_leaves_none(client: Client) -> None:
    send(client, "PreToolUse-Agent-background")
    send(client, "PostToolUseFailure-Agent")
    send(client, "UserPromptSubmit-task-notification")  # of a command in the background

    assert progress_of(client) == AgentProgress()


def test_after_a_restart_of_the_client_its_subagents_are_lost_and_said_so(client: Client) -> None:
    client.told("session-start", source="startup")
    send(client, "PreToolUse-Agent-background")
    send(client, "SubagentStart-background")
    send(client, "PostToolUse-TaskCreate")

    told = text_of(client.told("session-start", source="resume"))

    assert "## Subagents that were lost\n\n- Explore, asked “Look for leaks”: the client" in told
    assert "Read the code" not in told, "the conversation made that list, and remembers it"
    again = text_of(client.told("session-start", source="resume"))
    assert "lost" not in again
    send(client, "SubagentStop-background")
    (found,) = progress_of(client).subagents
    assert (found.outcome, found.result) == ("completed", "No leaks 1"), "it went on after all"


def test_with_the_session_its_subagents_end(client: Client) -> None:
    send(client, "SubagentStart-background")
    session = client.app.reader.session_of_conversation(client.host.name, client.conversation)
    assert session

    gated_sessions.change_status(client.app, session, "ended", "its client has ended")

    (found,) = progress_of(client).subagents
    assert found.outcome == "unknown", "nobody said what came of it"
