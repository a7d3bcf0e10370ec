"""Starting: once, in the right session, with the right preferences and context."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.callers.caller import Caller, local_caller
from interlock.app.callers.connection import Connection
from interlock.app.callers.request_key import UNNAMED_VALID_MS
from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.refusals import NoSuchSession, RequestReused
from interlock.app.runs.start import StartRequest, start
from interlock.core.canonical import Json
from interlock.core.ids import WorkflowId
from interlock.core.preferences import Preferences, Wish
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.refusals import InputRefused
from tests.scenes import SettableClock, install, linear


def begun(app: App, workspace: Path, **changes: Any) -> RenderedAnswer:
    answered = start(app, asked(app, workspace, **changes))
    assert isinstance(answered, RenderedAnswer), answered
    return answered


def asked(app: App, workspace: Path, **changes: Any) -> StartRequest:
    install(app, workspace, linear())
    caller = local_caller(
        app,
        workspace,
        actor=changes.pop("actor", "user"),
        session=changes.pop("session", None),
    )
    base = StartRequest(WorkflowId("line"), goal="Try it", caller=changes.pop("caller", caller))
    return msgspec.structs.replace(base, **changes)


def another(workspace: Path) -> Caller:
    return Caller(
        surface="cli", actor="user", workspace=workspace, connection=Connection("another client")
    )


@pytest.mark.invariant("start-is-idempotent")
def test_the_same_start_within_a_minute_is_the_same_run(app: App, tmp_path: Path) -> None:
    clock = SettableClock()
    app = msgspec.structs.replace(app, clock=clock)
    first = begun(app, tmp_path)
    clock.at_ms += UNNAMED_VALID_MS

    assert begun(app, tmp_path) == first
    clock.at_ms += 1
    assert begun(app, tmp_path).session != first.session


def test_another_caller_gets_a_run_of_its_own(app: App, tmp_path: Path) -> None:
    assert begun(app, tmp_path).session != begun(app, tmp_path, caller=another(tmp_path)).session


@pytest.mark.invariant("start-is-idempotent")
def test_a_start_that_names_itself_is_the_same_for_ever_and_for_all(
    app: App, tmp_path: Path
) -> None:
    clock = SettableClock()
    app = msgspec.structs.replace(app, clock=clock)
    first = begun(app, tmp_path, request_id="r1")
    clock.at_ms += 10 * UNNAMED_VALID_MS

    assert begun(app, tmp_path, request_id="r1", caller=another(tmp_path)) == first
    assert start(app, asked(app, tmp_path, request_id="r1", goal="Other")) == RequestReused()


def test_a_run_can_begin_in_a_session_that_exists(app: App, tmp_path: Path) -> None:
    first = begun(app, tmp_path)

    second = begun(app, tmp_path, goal="More", session=first.session)

    assert second.session == first.session
    assert second.run != first.run
    named = msgspec.structs.replace(app, environment={"INTERLOCK_SESSION": first.session})
    assert begun(named, tmp_path, goal="Third").session == first.session
    refusal = start(app, asked(app, tmp_path, session="ses_none"))
    assert refusal == NoSuchSession("ses_none", ())


def test_preferences_come_from_the_user_the_project_and_the_call(
    app: App, home: Path, tmp_path: Path
) -> None:
    def chosen(**changes: Any) -> Preferences:
        told = begun(app, tmp_path, **changes).answer.introduction
        assert told is not None
        return told.preferences

    assert chosen(goal="1") == Preferences("guided", "conservative")
    (home / "config.toml").write_text(
        '[preferences]\nautonomy = "full_auto_never_stop"\nriskPolicy = "balanced"\n'
    )
    assert chosen(goal="2") == Preferences("full_auto_never_stop", "balanced")
    project = tmp_path / ".interlock" / "config.toml"
    project.write_text('[preferences]\nautonomy = "guided"\nriskPolicy = "aggressive"\n')
    assert chosen(goal="3") == Preferences("guided", "balanced"), "a project can only tighten"
    wish = Wish("full_auto_stop_on_user_deps")
    assert chosen(goal="4", preferences=wish) == Preferences(
        "full_auto_stop_on_user_deps", "balanced"
    )


@pytest.mark.invariant("persons-loosen")
def test_an_agent_takes_no_more_autonomy_than_the_user_gives(app: App, tmp_path: Path) -> None:
    wish = Wish("full_auto_never_stop", "aggressive")
    first = begun(app, tmp_path, preferences=wish, actor="agent").answer

    assert first.introduction is not None
    assert first.introduction.preferences == Preferences()
    assert (
        "for the user to allow: `interlock preferences set RUN --autonomy …`" in first.warnings[0]
    )
    assert (
        begun(app, tmp_path, goal="2", preferences=Wish("guided"), actor="agent").answer.warnings
        == ()
    )


@pytest.mark.parametrize("text", ["not toml", "[preferences]\nautonomy = 3", "preferences = 1"])
def test_broken_settings_are_named_and_nothing_is_started(
    app: App, home: Path, tmp_path: Path, text: str
) -> None:
    (home / "config.toml").write_text(text)

    with pytest.raises(SettingsBroken, match=r"config\.toml"):
        start(app, asked(app, tmp_path))

    assert app.reader.stats().sessions == 0


def test_a_recommendation_that_is_exceeded_is_a_warning(app: App, tmp_path: Path) -> None:
    workflow = msgspec.structs.replace(
        linear(1, "careful"), recommended_preferences=Wish("guided", "conservative")
    )
    install(app, tmp_path, workflow)

    answered = begun(
        app,
        tmp_path,
        workflow=WorkflowId("careful"),
        preferences=Wish("full_auto_never_stop", "aggressive"),
    )

    assert len(answered.answer.warnings) == 2
    assert "recommends autonomy guided" in answered.answer.warnings[0]


def test_context_is_taken_and_its_limits_are_said(app: App, tmp_path: Path) -> None:
    context: dict[str, Json] = {"area": "parser"}
    assert begun(app, tmp_path, context=context).answer.is_complete is False

    refusal = start(app, asked(app, tmp_path, context={"x": "y" * 300_000}))

    assert isinstance(refusal, InputRefused)
    assert refusal.pointer == "/context"
