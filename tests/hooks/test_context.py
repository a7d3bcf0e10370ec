"""The context of every host: told at the start or with a prompt, once, and again when forgotten."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.runs.checkpoint import begin_with_checkpoint
from interlock.app.runs.start import StartRequest, start
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.answer import RenderedAnswer
from interlock.hooks.hook_result import HookEvent, HookResult
from tests.hooks.clients import Client, attend, text_of
from tests.scenes import install, linear, output

SILENCE = HookResult()
STARTING = tuple(name for name in NAMES if name != "gemini")
"""The hosts that are told at the start of a session."""


@pytest.fixture
def client(app: App, home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Client:
    return Client(app, home, tmp_path, request.param)


def each(*hosts: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("client", hosts or NAMES, indirect=True)


def claude_form(event: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def copilot_form(event: str) -> Callable[[str], dict[str, Any]]:
    return lambda text: {"additionalContext": text, **claude_form(event)(text)}


START_FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude-code": claude_form("SessionStart"),
    "codex": claude_form("SessionStart"),
    "gemini": lambda text: {"hookSpecificOutput": {"additionalContext": text}},
    "opencode": lambda text: {"context": text},
    "cursor": lambda text: {"additional_context": text},
    "copilot": copilot_form("SessionStart"),
}
"""The words to the model at the beginning, in the form of each host."""
SUBAGENT_FORMS = {
    "claude-code": claude_form("SubagentStart"),
    "codex": claude_form("SubagentStart"),
    "opencode": START_FORMS["opencode"],
    "copilot": copilot_form("SubagentStart"),
}
STOP_FORMS: dict[str, Callable[[str], dict[str, Any]]] = {
    "claude-code": lambda reason: {"decision": "block", "reason": reason},
    "codex": lambda reason: {"decision": "block", "reason": reason},
    "gemini": lambda reason: {"decision": "deny", "reason": reason},
    "cursor": lambda reason: {"followup_message": reason},
    "copilot": lambda reason: {"decision": "block", "reason": reason},
}


def begun(client: Client, source: str = "startup") -> dict[str, Any]:
    return client.told("session-start", source=source)


@each(*STARTING)
def test_a_session_that_starts_is_told_where_it_stands(client: Client) -> None:
    told = begun(client)

    text = text_of(told)
    assert told == START_FORMS[client.host.name](text)
    assert "Mode: analysis (you can read, search, and run commands that only read;" in text
    what = "the user is asked about" if client.host.asks else "Interlock denies"
    assert f"Before coding, {what} every command that is not known to be read-only" in text
    assert "To change anything, " in text, "before it is denied"
    assert "Shell commands are not confined" in text


@each("claude-code", "codex", "opencode")
@pytest.mark.parametrize("words", [(), ("-p", "exec", "run")], ids=["attended", "unattended"])
def test_the_briefing_tells_the_way_to_coding_of_the_project_and_the_client(
    client: Client, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    attend(monkeypatch, client.host, *words)
    typed = f"To change anything, the user has to type `{client.host.mode_command} coding`"
    asks = not words and client.host.name != "opencode"

    def call(task: str) -> str:
        asked = f"To change anything, call `session` with mode `coding`{task}: the user is asked"
        return f"{asked} once." if asks else typed

    config = client.project / ".interlock" / "config.toml"
    for written, way in (
        ("", call("")),
        ('[project]\nprofile = "strict"\n', call(" and a task")),
        ("[gate]\nagent_may_code = false\n", typed),
    ):
        config.write_text(written)

        assert way in text_of(begun(client)), written


@each(*STARTING)
def test_one_that_goes_on_is_told_nothing_twice_and_all_after_it_was_cut(client: Client) -> None:
    text = text_of(begun(client))

    assert begun(client, "resume") == {}
    assert client.send("pre-compact", trigger="auto") == SILENCE
    assert text_of(begun(client, "resume")) == text, "the summary has lost it"
    assert begun(client, "resume") == {}
    for source in ("compact", "clear", "startup"):
        assert text_of(begun(client, source)) == text


@each("gemini")
def test_gemini_is_told_with_the_first_prompt_and_not_at_the_start(client: Client) -> None:
    for source in ("startup", "resume", "clear"):
        assert client.send("session-start", source=source) == SILENCE

    told = client.told("prompt-submit", prompt="do it")

    text = text_of(told)
    assert told == START_FORMS["gemini"](text)
    assert "Mode: analysis" in text
    assert "the user is asked about" in text
    assert client.send("prompt-submit", prompt="and more") == SILENCE


def write_transcript(path: Path, cuts: int) -> None:
    lines = [{"type": "user", "text": "do it"}]
    lines += [
        {"$set": {"messages": f"<state_snapshot>{n}</state_snapshot>"}}  # pyright: ignore[reportArgumentType]
        for n in range(cuts)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@each("gemini")
def test_gemini_is_told_again_when_its_transcript_shows_that_it_was_compressed(
    client: Client, tmp_path: Path
) -> None:
    transcript = tmp_path / "session.jsonl"

    def prompted() -> str:
        fields = {"prompt": "go on", "transcript_path": str(transcript)}
        return text_of(client.told("prompt-submit", **fields))

    client.send("session-start", source="startup")
    text = prompted()
    assert "Mode: analysis" in text, "there is no transcript yet"
    for cuts in (0, 1, 2):
        write_transcript(transcript, cuts)
        assert prompted() == ("" if cuts == 0 else text), cuts
        assert prompted() == ""


OBSTRUCTIONS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "bytes": lambda path: path.write_bytes(b"\xff\x00" * 100),
}


@each("gemini")
@pytest.mark.parametrize("obstruction", OBSTRUCTIONS)
def test_a_transcript_that_is_no_file_keeps_nobody_waiting(
    client: Client, tmp_path: Path, obstruction: str
) -> None:
    path = tmp_path / "session.jsonl"
    OBSTRUCTIONS[obstruction](path)

    told = client.told("prompt-submit", prompt="go", transcript_path=str(path))

    assert "Mode: analysis" in text_of(told)
    assert client.told("prompt-submit", prompt="go", transcript_path=str(path)) == {}


@each()
def test_the_user_sees_what_a_project_wants_and_is_not_trusted_with(client: Client) -> None:
    config = client.project / ".interlock" / "config.toml"
    config.write_text('[gate]\nreading_tools = ["mcp__docs__search"]\n')

    told = begun(client)

    shown = told.get("systemMessage", "")
    if client.host.name in ("opencode", "cursor"):
        assert not shown, "they have no place for it"
        assert "is not trusted" in text_of(told)
    else:
        assert shown.startswith("Interlock: ")
        assert "is not trusted" in shown
    if client.host.name == "gemini":
        assert set(told) == {"systemMessage"}
        assert "is not trusted" in text_of(client.told("prompt-submit", prompt="go"))


@each()
def test_an_ordinary_prompt_is_answered_with_nothing(client: Client) -> None:
    client.begin()
    begun(client)
    client.send("prompt-submit", prompt="first")

    for prompt in (
        "do it",
        "",
        "please run /mode coding",
        "<note>/mode coding</note>",
    ):
        assert client.send("prompt-submit", prompt=prompt) == SILENCE


@each(*SUBAGENT_FORMS)
def test_a_subagent_is_told_the_mode_and_the_session_that_it_works_for(client: Client) -> None:
    session = client.begin("planning")

    told = client.told("subagent-start", agent_id="agent-1", agent_type="general-purpose")

    text = text_of(told)
    assert told == SUBAGENT_FORMS[client.host.name](text)
    assert f"You work for the Interlock session {session}." in text
    assert "Its mode is planning" in text
    assert "A subagent cannot change the mode" in text
    assert "Shell commands are not confined" in text


@each("claude-code")
def test_a_subagent_that_codes_is_not_told_what_holds_before_coding(client: Client) -> None:
    client.begin("coding")

    text = text_of(client.told("subagent-start", agent_id="agent-1"))

    assert "Its mode is coding" in text
    assert "Before coding" not in text


@each("claude-code")
def test_in_strict_analysis_nobody_is_told_that_commands_run(client: Client) -> None:
    config = client.project / ".interlock" / "config.toml"
    config.write_text('[project]\nprofile = "strict"\n')
    told = [client.told("session-start", source="startup")]
    told.append(client.told("subagent-start", agent_id="agent-1"))
    told.append(client.told("prompt-submit", prompt="/mode"))
    told.append(client.told("prompt-submit", prompt="/mode analysis"))

    for text in map(text_of, told):
        assert "analysis (you can read and search; for commands," in text, text
        assert "Before coding" not in text
    assert client.call("shell", {"command": "ls"}).answer == "deny"
    client.begin("planning")
    assert "Before coding" in text_of(client.told("subagent-start", agent_id="agent-2"))


@each(*SUBAGENT_FORMS)
def test_a_subagent_of_a_conversation_that_nobody_knows_is_told_nothing(client: Client) -> None:
    assert client.send("subagent-start", agent_id="agent-1") == SILENCE


def test_the_hosts_that_tell_of_subagents_are_those_that_can() -> None:
    telling = [name for name in NAMES if host_named(name).native_event("subagent-start")]
    assert telling == list(SUBAGENT_FORMS)
    stopping = [name for name in NAMES if host_named(name).native_event("stop")]
    assert stopping == list(STOP_FORMS)


def open_run(client: Client, session: SessionId, goal: str) -> None:
    install(client.app, client.project, linear())
    request = StartRequest(
        WorkflowId("line"), goal, local_caller(client.app, client.project, session=session)
    )
    assert isinstance(start(client.app, request), RenderedAnswer)


@each(*STOP_FORMS)
def test_an_agent_that_stops_within_a_run_is_reminded_once(client: Client) -> None:
    session = client.begin()
    assert client.send("stop") == SILENCE, "nothing is open"
    open_run(client, session, "Try it")

    told = client.told("stop", stop_hook_active=False)

    reason = next(text for key, text in told.items() if key != "decision")
    assert {key: told[key] for key in told if key != "hookSpecificOutput"} == (
        STOP_FORMS[client.host.name](reason)
    )
    assert reason.startswith("Not finished: line is at “Step 1” (Try it).")
    assert client.send("stop", stop_hook_active=False) == SILENCE, "it was said"
    open_run(client, session, "Try another")
    assert client.send("stop", stop_hook_active=True) == SILENCE, "it goes on because of a hook"
    assert "Not finished: " in str(client.told("stop", stop_hook_active=False)), "it is new"


@each("claude-code")
def test_checkpoints_without_a_workflow_are_named_and_never_reminded_of(client: Client) -> None:
    caller = local_caller(client.app, client.project, session=client.begin())
    notes = output("Found the leak")
    begun_here = begin_with_checkpoint(client.app, caller, notes, request_id=None)
    assert isinstance(begun_here, RenderedAnswer)

    assert client.send("stop", stop_hook_active=False) == SILENCE
    text = text_of(begun(client, "compact"))
    assert "Your run without a workflow: checkpoint “Found the leak”. To continue: " in text
    assert "interlock.checkpoints" not in text


@each("copilot")
def test_copilot_in_an_editor_reads_the_reminder_where_it_looks_for_it(client: Client) -> None:
    """Its CLI looks at the top level, and the editor within."""
    open_run(client, client.begin(), "Try it")

    told = client.told("stop", stop_hook_active=False)

    nested = told["hookSpecificOutput"]
    assert (nested["hookEventName"], nested["decision"]) == ("Stop", "block")
    assert nested["reason"] == told["reason"]


QUIET: tuple[HookEvent, ...] = ("subagent-stop", "session-end", "pre-compact")


@each()
def test_what_only_happens_is_answered_with_nothing(client: Client) -> None:
    client.begin()

    for event in QUIET:
        if client.host.native_event(event):
            assert client.send(event, reason="other", agent_id="") == SILENCE, event
