"""Who types a command about others: the session of an agent, or a person."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.coordination.participants import Participant, find_participant
from interlock.app.coordination.project_desk import ProjectDesk, open_desk
from interlock.app.data_home import data_home
from interlock.cli.authority import evidence_of_agent
from interlock.cli.session_state import refuse_caller
from interlock.cli.terminal import refuse
from interlock.core.coordination.identities import NameRefused


class CommandCaller(NamedTuple):
    app: App
    desk: ProjectDesk
    who: Participant
    is_agent: bool
    is_overseer: bool
    """Whether a person types it and names no session."""


def find_caller(
    session_id: str | None = None,
    *,
    name: str = "",
    track: str | None = None,
) -> CommandCaller:
    """Who types the command here; it stops if that cannot be said."""
    app, is_agent = open_app(data_home()), bool(evidence_of_agent())
    caller = local_caller(
        app, Path.cwd(), actor="agent" if is_agent else "person", session=session_id
    )
    who = find_participant(app, caller, name=name, track=track)
    if isinstance(who, NameRefused):
        refuse(who.explain())
    if not isinstance(who, Participant):
        refuse_caller(who)
    return CommandCaller(app, open_desk(app, Path.cwd()), who, is_agent, who.is_person)


def paths_from_here(desk: ProjectDesk, paths: Sequence[str]) -> tuple[str, ...]:
    """Paths that were typed in a directory of the project, as they are called from its top."""
    here = Path.cwd()
    if here == desk.root or not here.is_relative_to(desk.root):
        return tuple(paths)
    below = here.relative_to(desk.root).as_posix()

    def from_top(path: str) -> str:
        mark, name = ("!", path[1:]) if path.startswith("!") else ("", path)
        return path if name.startswith("/") else f"{mark}{below}/{name}"

    return tuple(map(from_top, paths))
