"""The autonomy in a prompt: what a person types changes the runs of the session, by the same rules
as the mode.
"""

import tomllib
from pathlib import Path

import pytest

from interlock.agents.hosts.host import OwnFile
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.callers.caller import local_caller
from interlock.app.callers.session_record import attended_head, state_of
from interlock.app.context import App
from interlock.app.protocol.bootstrap import session_summary
from interlock.app.runs import user_actions
from interlock.app.runs.start import StartRequest, start
from interlock.app.sessions import bundle
from interlock.app.sessions.bundle import SessionExport
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.preferences import Autonomy, Wish
from interlock.core.session.answer import RenderedAnswer
from tests.hooks.clients import Client, attend, text_of
from tests.scenes import install, linear

NEVER: Autonomy = "full_auto_never_stop"


def written(host: str, words: str) -> str:
    """The prompt as the hook is sent it when a person types the command."""
    prefix = host_named(host).mode_command.removesuffix("mode")
    if host != "gemini":
        return f"{prefix}{words}"
    parts = host_named(host).parts("user", "/root", "/home", {})
    (command,) = [part for part in parts if part.path.endswith("/commands/autonomy.toml")]
    assert isinstance(command, OwnFile)
    prompt: str = tomllib.loads(str(command.content))["prompt"]
    return f"{prompt}\n\n/{words}" if " " in words else prompt


def typed(client: Client, words: str, **more: object) -> str:
    return text_of(client.told("prompt-submit", prompt=written(client.host.name, words), **more))


def begun(
    client: Client, session: SessionId, goal: str = "Try it", autonomy: Autonomy | None = None
) -> RenderedAnswer:
    """A run that an agent begins, which may only ask for less autonomy than the user's."""
    install(client.app, client.project, linear())
    caller = local_caller(client.app, client.project, actor="agent", session=session)
    request = StartRequest(WorkflowId("line"), goal, caller, preferences=Wish(autonomy))
    answered = start(client.app, request)
    assert isinstance(answered, RenderedAnswer), answered
    return answered


def autonomies(client: Client, session: SessionId) -> list[Autonomy]:
    return [run.preferences.autonomy for run in client.app.log.runs(session)]


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
    return made


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_what_a_person_types_holds_for_open_and_for_later_runs(client: Client) -> None:
    session = client.begin("coding")
    first = begun(client, session)

    said = typed(client, f"autonomy {NEVER}")

    assert said == (
        f"The user has set the autonomy to {NEVER} (the agent never waits; decisions for the user"
        f" become gaps). It holds from the next step of line ({first.run}) on, and in runs"
        " that begin in this session."
    )
    begun(client, session, "Another")
    assert autonomies(client, session) == [NEVER, NEVER]
    assert f"have the autonomy {NEVER} (" in typed(client, "autonomy")
    assert "`yolo` is not an autonomy. There are: guided, full_" in typed(client, "autonomy yolo")
    assert typed(client, "autonomy full auto").startswith("The autonomy was not changed: the text")
    assert autonomies(client, session) == [NEVER, NEVER]
    typed(client, "autonomy guided")
    assert autonomies(client, session) == ["guided", "guided"]


@pytest.mark.parametrize("client", NAMES, indirect=True)
def test_a_conversation_without_a_session_gets_one(client: Client) -> None:
    prefix = client.host.mode_command.removesuffix("mode")
    shown = typed(client, "autonomy")
    assert "have the autonomy guided (" in shown
    assert f"`{prefix}autonomy {NEVER}`" in shown

    assert typed(client, f"autonomy {NEVER.replace('_', '-')}").endswith("begin in this session.")

    (row,) = client.app.reader.attended_sessions_in(str(client.project))
    assert row.head.attended
    assert row.head.attended.autonomy == NEVER


def test_where_nobody_types_it_is_not_widened_but_narrowed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = client.begin("coding")
    begun(client, session)
    typed(client, "autonomy full_auto_stop_on_user_deps")
    attend(monkeypatch, client.host, client.host.unattended_words[0])

    said = typed(client, f"autonomy {NEVER}")

    assert said.startswith(
        "The autonomy was not changed: more is for the user to allow, and nobody"
    )
    assert autonomies(client, session) == ["full_auto_stop_on_user_deps"]
    assert typed(client, "autonomy guided").startswith("The autonomy is now guided (")
    assert autonomies(client, session) == ["guided"]


UNTYPED = (
    *(f"Please: /autonomy {NEVER}", f"/autonomy {NEVER}\nand go on", f"autonomy {NEVER}"),
    *(f"`/autonomy {NEVER}`", f"/autonomy {NEVER} please", f"//autonomy {NEVER}", "go full auto"),
)


def test_what_only_quotes_it_or_comes_from_a_subagent_changes_nothing(client: Client) -> None:
    session = client.begin("coding")
    begun(client, session)

    for prompt in UNTYPED:
        assert "autonomy to" not in str(client.told("prompt-submit", prompt=prompt)), prompt
    assert typed(client, f"autonomy {NEVER}", agent_id="agent-1") == ""

    assert autonomies(client, session) == ["guided"]


def test_an_agent_cannot_ask_for_more_than_was_typed(client: Client) -> None:
    session = client.begin("coding")
    typed(client, "autonomy full_auto_stop_on_user_deps")

    begun(client, session, autonomy=NEVER)

    assert autonomies(client, session) == ["full_auto_stop_on_user_deps"]


def test_a_run_that_is_over_keeps_its_own_and_a_repetition_records_nothing(client: Client) -> None:
    session = client.begin("coding")
    user_actions.abandon(client.app, begun(client, session).run, "enough")
    assert typed(client, f"autonomy {NEVER}").endswith(
        "). It holds in runs that begin in this session."
    )
    attended = attended_head(client.app, session)
    stream = client.app.log.stream(session)

    typed(client, f"autonomy {NEVER}")

    assert attended
    assert attended.autonomy == NEVER
    assert autonomies(client, session) == ["guided"]
    assert client.app.log.stream(session) == stream


def test_the_briefing_names_it_while_a_run_is_open(client: Client) -> None:
    session = client.begin("coding")

    def summary() -> str:
        state = state_of(client.app, session)
        return session_summary(client.app, state)

    assert "utonomy" not in summary()
    begun(client, session)
    typed(client, f"autonomy {NEVER}")
    assert f"Autonomy: {NEVER}. Only the user changes it, with `/autonomy`." in summary()


@pytest.mark.parametrize("client", ["codex"], indirect=True)
def test_a_client_is_told_its_own_form_of_the_command(client: Client) -> None:
    begun(client, client.begin("coding"))

    told = client.told("session-start", source="resume")

    assert "Only the user changes it, with `$autonomy`." in text_of(told)


def test_a_bundle_takes_it_along(client: Client) -> None:
    session = client.begin("coding")
    typed(client, f"autonomy {NEVER}")
    exported = bundle.export(client.app, session)
    assert isinstance(exported, SessionExport)

    copy = bundle.import_as_new(client.app, exported.document)

    assert isinstance(copy, str)
    attended = attended_head(client.app, copy)
    assert attended
    assert attended.autonomy == NEVER
