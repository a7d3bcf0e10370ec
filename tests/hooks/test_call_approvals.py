"""A call that the gate would ask about, where nobody can be asked: the user approves exactly it."""

import re
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.hosts.host import COMMANDS, OwnFile
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.context import App
from interlock.app.runs import approvals
from interlock.core.session.approve import ApprovalVerdict
from interlock.hooks.typed_commands import TypedAnswer, parse_typed_command
from interlock.store.open_store import STORE_FILE
from interlock.workspace.machine.identity import user_name
from tests.hooks.clients import ASKING, Client, attend, text_of

MUTE = tuple(name for name in NAMES if name not in ASKING)
ID = re.compile(r"apr_[0-9a-f]{10}")


@pytest.fixture
def client(
    app: App,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Client:
    made = Client(app, home, tmp_path, getattr(request, "param", "codex"))
    attend(monkeypatch, made.host)
    made.begin("analysis")
    return made


def denied(client: Client, command: str = "make") -> str:
    """The id of the approval under which a call waits."""
    decision = client.call("shell", {"command": command})
    assert decision.answer == "deny"
    return ID.findall(decision.reason)[0]


def typed(client: Client, prompt: str) -> str:
    return text_of(client.told("prompt-submit", prompt=prompt))


@pytest.mark.parametrize("client", MUTE, indirect=True)
def test_a_call_is_denied_with_an_id_and_passes_once_after_the_grant(client: Client) -> None:
    reason = client.call("shell").reason
    name = denied(client)

    prefix = client.host.mode_command.removesuffix("mode")
    assert f"`{prefix}approve {name}`" in reason
    assert f"`interlock approvals grant {name}`" in reason
    approvals.answer(client.app, name, ApprovalVerdict("granted", "user", who="ana"))
    assert denied(client, "make install") != name
    assert client.call("shell").answer == "allow"
    assert denied(client) != name


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_the_same_command_in_other_words_waits_under_one_approval(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend(monkeypatch, client.host, client.host.unattended_words[0], has_terminal=False)
    given: list[dict[str, Any]] = [
        *({"command": "make", "description": text} for text in ("build", "Build it")),
        {"command": "make", "description": "try", "wait_for_previous": True},
    ]

    names = {ID.findall(client.call("shell", one).reason)[0] for one in given}

    assert len(names) == 1
    assert [one.approval for one in approvals.list_pending(client.app)] == [*names]
    others = ({"command": "make all", "description": "build"}, {"command": "make", "timeout": 9})
    assert names.isdisjoint(ID.findall(client.call("shell", one).reason)[0] for one in others)


@pytest.mark.parametrize("client", MUTE, indirect=True)
def test_an_answer_in_the_chat_says_exactly_what_was_approved(client: Client) -> None:
    name = denied(client)

    said = typed(client, f"/approve {name} but mind the cache")

    assert f"The user has granted approval {name}" in said
    assert "command: make\n" in said
    assert f"cwd: {client.project}" in said
    assert client.call("shell").answer == "allow"
    other = denied(client, "make install")
    assert "was denied" not in typed(client, f"/deny {other} Not now")
    refused = typed(client, f"/approve {other}")
    by = f"{user_name()}, in {client.host.title}'s chat"
    assert f"`{other}` was denied already, by {by}" in refused


def test_without_an_id_the_only_one_is_meant(client: Client) -> None:
    assert "Nothing of this session waits" in typed(client, "$approve")
    first = denied(client)
    second = denied(client, "make install")
    several = typed(client, "$approve")
    assert f"`$approve {first}`" in several
    assert f"`$approve {second}`" in several
    typed(client, f"$deny {first}")

    assert f"granted approval {second}" in typed(client, "$approve")


def test_only_a_person_answers_in_a_chat(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    name = denied(client)
    attend(monkeypatch, client.host, "exec")

    said = typed(client, f"/approve {name}")

    assert "Nothing was answered: an approval wants a person, and nobody attends" in said
    assert denied(client) == name


@pytest.mark.sqlite
def test_a_broken_store_denies_as_before(client: Client, home: Path) -> None:
    client.app.close()
    for path in home.glob(f"{STORE_FILE}*"):
        path.unlink()
    (home / STORE_FILE).write_bytes(b"not a database" * 1_000)

    decision = client.call("shell")
    noted = client.send("stop")

    assert decision.answer == "deny"
    assert not ID.search(decision.reason)
    assert (noted.code, noted.out) == (0, b"")
    assert "What the session may do was not changed" in noted.err


@pytest.mark.parametrize("host", NAMES)
def test_every_client_that_has_the_command_for_the_mode_has_those_for_answers(host: str) -> None:
    parts = host_named(host).parts("user", "/root", "/home", {})
    files = [part for part in parts if isinstance(part, OwnFile)]

    installed = [
        name
        for name in COMMANDS
        if any(f"`/{name}`" in f.what or f"`${name}`" in f.what for f in files)
    ]

    assert installed in ([*COMMANDS], [])


@pytest.mark.parametrize(
    ("typed", "approval", "reason"),
    [
        ("/approve apr_0123456789 go on", "apr_0123456789", "go on"),
        ("/approve apr_0123456789.", "apr_0123456789.", "apr_0123456789."),
        ("/deny APR-01 no", "APR-01", "APR-01 no"),
        ("/approve yes please", "", "yes please"),
    ],
)
def test_an_id_with_a_slip_in_it_is_not_the_only_one_that_waits(
    typed: str, approval: str, reason: str
) -> None:
    answer = parse_typed_command(typed)

    assert isinstance(answer, TypedAnswer)
    assert (answer.approval, answer.reason) == (approval, reason)


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_a_yes_to_reading_from_the_network_holds_for_the_conversation(client: Client) -> None:
    """The hook learns of the yes when the command has run."""
    curl = {"command": "curl -s https://example.com/a"}
    asked = client.call("shell", curl)
    assert "(network.asked, " in asked.reason
    if client.host.name in MUTE:
        client.send("post-tool", **client.tool("shell", curl))
        name = ID.findall(client.call("shell", curl).reason)[0]
        approvals.answer(client.app, name, ApprovalVerdict("granted", "user", who="ana"))
        assert client.call("shell", curl).answer == "allow"
    else:
        assert (asked.answer, client.call("shell", curl).answer) == ("ask", "ask"), (
            "nothing has run"
        )

    client.send("post-tool", **client.tool("shell", curl))

    assert client.call("shell", {"command": "curl -I https://example.com/b"}).answer == "allow"
    assert client.call("shell", {"command": "curl -d a https://example.com/b"}).answer != "allow"
    assert client.call("shell", {"command": "wget -q -O- https://example.com"}).answer != "allow"
