"""OpenCode's plugin under node: the payloads that it sends, and how it obeys the answers."""

import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.host import COMMANDS
from interlock.agents.hosts.launcher import Program, launcher_text
from interlock.agents.hosts.opencode import HOST
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.machine import spool
from tests.hooks.opencode_runs import (
    COMMANDED,
    DELETED,
    MAIN,
    PARENT,
    SUBAGENT,
    Workbench,
    needs_node,
)
from tests.hooks.recordings import recorded
from tests.sessions import begin_recorded

pytestmark = needs_node


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


SENT: dict[str, tuple[list[str], list[str]]] = {
    "a conversation": (
        ["chat.message", "tool.execute.before-write", "tool.execute.before-bash"],
        ["session-start", "prompt-submit", "pre-tool-write", "pre-tool-bash"],
    ),
    "one that goes on": (["chat.message-resume"], ["session-start", "prompt-submit-mode"]),
    "a command": (
        ["command.execute.before", "chat.message-command"],
        ["session-start-command", "prompt-submit-command"],
    ),
    "calls that are over": (
        ["tool.execute.after-bash", "tool.execute.after-bash-exit3", "tool.execute.after-write"],
        ["post-tool-bash", "post-tool-bash-exit3"],
    ),
    "a task list": (["tool.execute.after-todowrite"], ["post-tool-todowrite"]),
    "a subagent's call": (
        ["tool.execute.before-task", "tool.execute.after-task"],
        ["session-start", "pre-tool-task", "post-tool-task"],
    ),
    "a tool of ours": (
        ["tool.execute.before-interlock_plain_ok"],
        ["session-start", "pre-tool-interlock_plain_ok"],
    ),
    "a subagent": (
        [
            *("chat.message-subagent", "tool.execute.before-bash-subagent"),
            "tool.execute.after-bash-subagent",
        ],
        ["subagent-start", "pre-tool-bash-subagent", "post-tool-bash-subagent"],
    ),
    "a plan": (
        ["chat.message-plan", "tool.execute.before-write-plan"],
        ["session-start-plan", "prompt-submit-plan", "pre-tool-write-plan"],
    ),
    "a summary": (["experimental.session.compacting"], ["pre-compact"]),
}
"""Calls by OpenCode, and the payloads that the plugin makes of them."""


@pytest.mark.parametrize("what", SENT)
def test_it_sends_the_payloads_that_our_hook_is_tested_with(bench: Workbench, what: str) -> None:
    calls, names = SENT[what]

    run = bench.run(*calls)

    expected = [recorded(f"opencode-{name}", bench.project) for name in names]
    assert [payload for _, payload in run.sent] == expected
    assert [event for event, _ in run.sent] == [each["hook_event_name"] for each in expected]
    assert run.thrown == [None] * len(calls)


def events_of(bench: Workbench, *calls: dict[str, Any] | str) -> list[str]:
    return [event for event, _ in bench.run(*calls).sent]


def test_a_session_begins_once_and_again_after_it_was_summed_up(bench: Workbench) -> None:
    compacted = bench.call("event-session.compacted")
    compacted["input"]["event"]["properties"]["sessionID"] = MAIN

    run = bench.run(
        *("chat.message", "tool.execute.before-bash", "experimental.chat.system.transform"),
        *(compacted, "experimental.chat.system.transform", "tool.execute.before-bash"),
    )

    starts = [payload["source"] for event, payload in run.sent if event == "session-start"]
    assert starts == ["startup", "compact"]


def test_a_deleted_session_has_ended(bench: Workbench) -> None:
    deleted = bench.call("event-session.deleted")
    first = bench.call("chat.message", sessionID=DELETED)

    run = bench.run(first, deleted)

    ended = recorded("opencode-session-end", bench.project)
    assert (ended["session_id"], ended["reason"]) == (DELETED, "deleted")
    assert run.sent[-1] == ("session-end", ended)


def test_a_subagent_that_is_deleted_does_not_end_its_conversation(bench: Workbench) -> None:
    deleted = bench.call("event-session.deleted")
    deleted["input"]["event"]["properties"]["sessionID"] = SUBAGENT

    assert "session-end" not in events_of(bench, "chat.message-subagent", deleted)


def test_only_what_a_person_wrote_is_a_prompt(bench: Workbench) -> None:
    message = bench.call("chat.message-resume")
    extra = {"type": "text", "text": "/mode disabled", "synthetic": True, "id": "prt_1"}
    message["output"]["parts"].append(extra)

    run = bench.run(message, "chat.message-subagent")

    prompts = [payload["prompt"] for event, payload in run.sent if event == "prompt-submit"]
    assert prompts == ["/mode coding"]


def test_another_command_is_no_change_of_mode(bench: Workbench) -> None:
    run = bench.run(
        bench.call("command.execute.before", command="review"),
        bench.call("chat.message-command"),
        bench.call("command.execute.before"),
        bench.call("chat.message-command"),
        bench.call("chat.message", sessionID=COMMANDED),
    )

    prompts = [payload["prompt"] for event, payload in run.sent if event == "prompt-submit"]
    assert prompts[0].startswith("Set mode to ")
    assert prompts[1:] == ["/mode coding deep", "go please"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_ours_is_what_was_typed(bench: Workbench, name: str) -> None:
    run = bench.run(
        bench.call("command.execute.before", command=name, arguments="x"),
        bench.call("chat.message-command"),
    )

    prompts = [payload["prompt"] for event, payload in run.sent if event == "prompt-submit"]
    assert prompts == [f"/{name} x"]


def test_what_is_denied_is_thrown_and_what_is_not_passes(bench: Workbench) -> None:
    bench.answer("pre-tool", {"decision": "deny", "reason": "Not in analysis.\nReally."})

    run = bench.run("tool.execute.before-write")

    assert run.thrown == ["Not in analysis.\nReally."]
    for answer in ({}, {"decision": "allow"}, {"context": "only advice"}):
        bench.answer("pre-tool", answer)
        assert bench.run("tool.execute.before-write").thrown == [None]


def test_what_is_said_to_a_call_comes_with_its_result(bench: Workbench) -> None:
    bench.answer("pre-tool", {"context": "Somebody holds it."})
    bench.answer("post-tool", {"context": "There is news."})
    before = bench.call("tool.execute.before-write", callID="call-1")
    after = bench.call("tool.execute.after-write", callID="call-1")
    ran = bench.call("tool.execute.after-bash")

    run = bench.run(before, after, after, ran)

    told = [output["output"] for output in run.outputs[1:]]
    assert told[0].endswith("\n\n<interlock>\nSomebody holds it.\n</interlock>")
    assert told[1] == after["output"]["output"], "once"
    assert told[2].endswith("\n\n<interlock>\nThere is news.\n</interlock>")


FAILURES = {
    "exit 2": ("echo 'The gate cannot say.' >&2; exit 2", "The gate cannot say."),
    "exit 1": ("exit 1", "exit code 1"),
    "no JSON": ("printf Traceback", "a bad answer: Traceback"),
    "killed": ("kill -9 $$", "exit code null"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_hook_that_fails_blocks_a_call_and_nothing_else(bench: Workbench, failure: str) -> None:
    script, why = FAILURES[failure]
    for event in ("pre-tool", "session-start", "prompt-submit", "post-tool", "pre-compact"):
        bench.do(event, script)

    run = bench.run(
        *("tool.execute.before-write", "chat.message", "tool.execute.after-bash"),
        *("experimental.chat.system.transform", "experimental.session.compacting"),
    )

    assert run.thrown[1:] == [None] * 4
    assert run.thrown[0] == f"The gate cannot say whether this may happen, so it may not: {why}"


def test_a_hook_that_takes_too_long_blocks_the_call(bench: Workbench) -> None:
    bench.do("pre-tool", "exec sleep 300")
    bench.milliseconds = "100"

    (thrown,) = bench.run("tool.execute.before-write").thrown

    assert thrown
    assert thrown.endswith("so it may not: it took too long")


@pytest.mark.parametrize("is_guarded", [True, False])
def test_where_interlock_is_gone_only_a_guarded_project_is_blocked(
    bench: Workbench, *, is_guarded: bool
) -> None:
    if is_guarded:
        opt_in(bench.project, "standard")

    run = bench.run("tool.execute.before-write", "chat.message", launcher="/nowhere/at/all/launch")

    expected = (
        "The gate cannot say whether this may happen, so it may not: Interlock is not installed any"
        " more (`interlock install opencode`)"
    )
    assert run.thrown == [expected if is_guarded else None, None]


def test_what_a_project_shares_is_found_above_or_silent(
    bench: Workbench,
) -> None:
    opt_in(bench.project, "standard")
    assert bench.run("tool.execute.before-write", launcher="").thrown == [None]

    (bench.project / ".interlock" / "launch").write_bytes(bench.launcher.read_bytes())
    bench.answer("pre-tool", {"decision": "deny", "reason": "No."})

    assert bench.run("tool.execute.before-write", launcher="").thrown == ["No."]


def test_context_is_part_of_the_system_text_each_time_but_for_helpers(bench: Workbench) -> None:
    bench.answer("session-start", {"context": "Mode: analysis"})

    run = bench.run(
        *("experimental.chat.system.transform-title", "experimental.chat.system.transform"),
        "experimental.chat.system.transform",
    )

    title, *systems = [output["system"] for output in run.outputs]
    assert title == ["You are a title generator."]
    assert systems == [["You are opencode.", "Mode: analysis"]] * 2


def test_what_is_told_with_a_prompt_is_a_part_of_it(bench: Workbench) -> None:
    bench.answer("prompt-submit", {"context": "The mode is now coding"})

    (output,) = bench.run("chat.message-resume").outputs

    first, added = output["parts"]
    assert first["text"] == "/mode coding"
    assert (added["type"], added["text"]) == ("text", "The mode is now coding")
    assert (added["sessionID"], added["messageID"]) == (MAIN, output["message"]["id"])
    assert added["synthetic"], "it is not what the user wrote"
    assert added["id"].startswith("prt_")


def test_a_subagent_is_told_its_own_context(bench: Workbench) -> None:
    bench.answer("session-start", {"context": "you are the main one"})
    bench.answer("subagent-start", {"context": "you work for another"})

    run = bench.run(
        "chat.message-subagent",
        bench.call("experimental.chat.system.transform", sessionID=SUBAGENT),
        bench.call("experimental.chat.system.transform"),
    )

    assert run.outputs[1]["system"][1:] == ["you work for another"]
    assert run.outputs[2]["system"][1:] == ["you are the main one"]


@pytest.fixture
def real(bench: Workbench, home: Path, app: App) -> Workbench:
    """With the real Interlock behind it, and a session of the main conversation and a parent."""
    opt_in(bench.project, "standard")
    program = Program(sys.executable, ("-P",), str(home))
    bench.launcher.write_text(launcher_text(program))
    for session in (MAIN, PARENT):
        begin_recorded(app, bench.project, Conversation("opencode", session))
    return bench


def test_with_the_real_hook_an_edit_is_denied_in_analysis_and_passes_in_coding(
    real: Workbench, app: App
) -> None:
    (thrown,) = real.run("tool.execute.before-write").thrown

    assert thrown
    assert "The mode is analysis, so files cannot be edited (`write`)" in thrown
    session = app.reader.session_of_conversation("opencode", MAIN)
    assert session
    gated_sessions.change_mode(app, session, "coding", by="user")
    assert real.run("tool.execute.before-write").thrown == [None]


def test_with_the_real_hook_a_subagent_works_in_the_mode_of_its_conversation(
    real: Workbench, app: App, home: Path
) -> None:
    write = real.call("tool.execute.before-write", sessionID=SUBAGENT)
    asked = real.call("tool.execute.before-interlock_plain_ok", sessionID=SUBAGENT)
    asked["input"]["tool"], asked["output"]["args"] = "interlock_session", {"mode": "coding"}
    system = real.call("experimental.chat.system.transform", sessionID=SUBAGENT)

    run = real.run(system, write, asked, "tool.execute.after-bash-subagent")

    session = app.reader.session_of_conversation("opencode", PARENT)
    assert f"You work for the Interlock session {session}." in run.outputs[0]["system"][1]
    assert "The mode is analysis" in (run.thrown[1] or "")
    assert "A subagent cannot set the mode to coding" in (run.thrown[2] or "")
    (line,) = spool.commands(home)
    assert (line.host_session, line.detail, line.outcome) == (PARENT, "echo in-child", "success")


def test_the_plugin_sends_every_event_of_the_host(bench: Workbench) -> None:
    names = {name for _, names in SENT.values() for name in names} | {"session-end"}
    sent = {recorded(f"opencode-{name}", bench.project)["hook_event_name"] for name in names}

    assert sent == {event.name for event in HOST.events}
