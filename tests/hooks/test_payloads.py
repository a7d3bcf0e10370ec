"""Payloads of clients, recorded or documented: each that a hook of ours gets is understood."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.agents.hosts.hook_payload import BYTES_MAX, HookPayload, decode_payload
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.hooks.full_hook import run_hook
from tests.hooks.recordings import payload_names, recorded

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("payloads.toml").read_text(encoding="utf-8")
)
ROWS = [(host, name) for host, rows in TABLE.items() for name in rows]


@pytest.mark.parametrize(("host", "name"), ROWS)
def test_a_payload_is_read_as_the_table_says(host: str, name: str, tmp_path: Path) -> None:
    sent = recorded(name, tmp_path)

    payload = decode_payload(host_named(host), json.dumps(sent).encode())

    found = {key: value for key, value in msgspec.structs.asdict(payload).items() if value}
    found |= {"tool_input": payload.tool_input} if payload.tool_input is not None else {}
    transcript = sent.get("transcript_path") or sent.get("transcriptPath")
    assert found.pop("transcript_path", None) == transcript
    assert found.pop("cwd") == str(tmp_path)
    assert set(sent) - set(found.pop("everything")) == set(), "nothing is lost"
    text = json.dumps(TABLE[host][name]).replace("<PROJECT>", str(tmp_path))
    assert {"event": payload_names(host)[name], **found} == json.loads(text)


def test_the_table_is_complete() -> None:
    assert list(TABLE) == list(NAMES)
    for host, rows in TABLE.items():
        assert set(rows) == set(payload_names(host))


@pytest.mark.parametrize("host", NAMES)
def test_there_is_a_payload_of_every_event_that_a_hook_of_ours_is_on(host: str) -> None:
    seen = set(payload_names(host).values())

    assert seen == {event.name for event in host_named(host).events}


@pytest.mark.parametrize(("host", "name"), ROWS)
def test_a_payload_has_an_answer_that_the_client_can_read(
    app: App, home: Path, tmp_path: Path, host: str, name: str
) -> None:
    assert isinstance(app, App)
    opt_in(tmp_path, "standard")
    content = json.dumps(recorded(name, tmp_path)).encode()

    outcome = run_hook(host_named(host), payload_names(host)[name], home, content)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == b"" or isinstance(json.loads(outcome.out), dict)


@pytest.mark.parametrize(("host", "name"), ROWS)
def test_where_nobody_opted_in_every_hook_is_silent(
    home: Path, tmp_path: Path, host: str, name: str
) -> None:
    content = json.dumps(recorded(name, tmp_path)).encode()

    assert run_hook(host_named(host), payload_names(host)[name], home, content) == (0, b"", "")
    assert not home.exists()


UNREADABLE = {
    "nothing": b"",
    "half": b'{"session_id": ',
    "a list": b"[]",
    "null": b"null",
    "a number": b"7",
    "too large": b'{"session_id": "x"}' + b" " * BYTES_MAX,
    "a session that is no text": b'{"session_id": 7, "sessionId": 7, "conversation_id": 7}',
    "an agent that is no text": b'{"agent_id": ["a"], "agentId": ["a"]}',
    "a prompt that is no text": b'{"prompt": {"text": "/mode coding"}}',
}


@pytest.mark.parametrize("host", NAMES)
@pytest.mark.parametrize("what", UNREADABLE)
def test_what_no_client_sends_is_refused(host: str, what: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_payload(host_named(host), UNREADABLE[what])


@pytest.mark.parametrize("host", NAMES)
def test_what_is_null_counts_as_missing(host: str) -> None:
    names = ("session_id", "cwd", "tool_name", "tool_input", "prompt", "agent_id", "reason")
    natives = ("conversation_id", "sessionId", "toolName", "toolArgs", "workspace_roots")
    content = json.dumps(dict.fromkeys((*names, *natives, "transcript_path"))).encode()

    payload = decode_payload(host_named(host), content)

    assert msgspec.structs.replace(payload, everything={}) == HookPayload()


CURSORS: tuple[tuple[dict[str, Any], tuple[str, str, bool]], ...] = (
    ({"workspace_roots": ["/work/one", "/work/two"]}, ("", "/work/one", False)),
    ({"cwd": "/work/x", "workspace_roots": ["/work/one"]}, ("", "/work/x", False)),
    ({"workspace_roots": [], "conversation_id": "c"}, ("c", "", False)),
    ({"conversation_id": "", "session_id": "s", "loop_count": 0}, ("s", "", False)),
    ({"conversation_id": "c", "session_id": "s", "loop_count": 1}, ("c", "", True)),
    ({"loop_count": "3"}, ("", "", False)),
)


@pytest.mark.parametrize(("sent", "expected"), CURSORS)
def test_cursor_names_the_directory_and_the_conversation_otherwise(
    sent: dict[str, Any], expected: tuple[str, str, bool]
) -> None:
    payload = decode_payload(host_named("cursor"), json.dumps(sent).encode())

    assert (payload.session_id, payload.cwd, payload.stop_hook_active) == expected


COPILOTS: tuple[tuple[Any, Any], ...] = (
    ({"command": "ls"}, {"command": "ls"}),
    ('{"command": "ls"}', {"command": "ls"}),
    ("[1, 2]", [1, 2]),
    ("not an object", "not an object"),
    ("", ""),
)


@pytest.mark.parametrize(("sent", "expected"), COPILOTS)
def test_copilot_sends_arguments_as_an_object_or_as_its_text(sent: Any, expected: Any) -> None:
    content = json.dumps({"toolName": "bash", "toolArgs": sent}).encode()

    assert decode_payload(host_named("copilot"), content).tool_input == expected
