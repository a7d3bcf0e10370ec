"""Show or change the autonomy of a session because `/autonomy` was typed into a client."""

from pathlib import Path

from interlock.agents.hosts.hook_payload import HookPayload
from interlock.agents.hosts.host import Host
from interlock.app.callers.agent_detection import evidence_against_typing
from interlock.app.callers.session_record import attended_head
from interlock.app.context import open_app
from interlock.app.runs.start import default_preferences
from interlock.app.runs.user_actions import open_runs, set_autonomy
from interlock.core.preferences import (
    AUTONOMIES,
    AUTONOMY_MEANINGS,
    Preferences,
    Wish,
    apply_wish,
    autonomy_named,
)
from interlock.core.session.run_head import RunHead
from interlock.hooks.context_messages import session_for_typing
from interlock.hooks.typed_commands import TypedAutonomy


def change_typed_autonomy(
    home: Path, root: Path, host: Host, payload: HookPayload, typed: TypedAutonomy
) -> str:
    """Change the autonomy of the session's runs; without a name only show it.

    Returns the message for the model and the user.
    """
    autonomy = autonomy_named(typed.autonomy)
    if typed.autonomy and autonomy is None:
        return f"`{typed.autonomy}` is not an autonomy. There are: {', '.join(AUTONOMIES)}."
    app = open_app(home)
    try:
        session = session_for_typing(app, root, host, payload)
        attended = attended_head(app, session)
        chosen = Wish(attended.autonomy if attended else None)
        current = apply_wish(default_preferences(app, root), chosen)
        runs = open_runs(app, session)
        if autonomy is None:
            return _describe(current, runs)
        strictest = min((current, *(run.preferences for run in runs)), key=_freedom)
        preferences = apply_wish(current, Wish(autonomy))
        evidence = evidence_against_typing(host, home, app.environment, app.process)
        # Whoever sends the prompt may make a run stricter; more wants a person who types it.
        if evidence and _freedom(preferences) > _freedom(strictest):
            return (
                f"The autonomy was not changed: more is for the user to allow, and {evidence}."
                " The user can run `interlock preferences set RUN --autonomy …` in a terminal."
            )
        set_autonomy(app, session, preferences)
    finally:
        app.close()
    open_now = ", ".join(f"{run.workflow_id} ({run.run})" for run in runs)
    since = f"from the next step of {open_now} on, and " if runs else ""
    change = "The autonomy is now" if evidence else "The user has set the autonomy to"
    return (
        f"{change} {autonomy} ({AUTONOMY_MEANINGS[preferences.autonomy]})."
        f" It holds {since}in runs that begin in this session."
    )


def _freedom(preferences: Preferences) -> int:
    return AUTONOMIES.index(preferences.autonomy)


def _describe(current: Preferences, runs: list[RunHead]) -> str:
    own = "".join(f" {run.workflow_id} ({run.run}): {run.preferences.autonomy}." for run in runs)
    others = ", ".join(f"`/autonomy {name}`" for name in AUTONOMIES if name != current.autonomy)
    return (
        f"Runs that begin in this session have the autonomy {current.autonomy}"
        f" ({AUTONOMY_MEANINGS[current.autonomy]}).{own} The user can type {others}."
    )
