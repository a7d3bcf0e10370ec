"""What can be seen from this machine of those who work on a project."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.core.coordination.board import Board
from interlock.core.coordination.preflight import LocalFacts
from interlock.core.coordination.records import Identity
from interlock.core.ids import SessionId
from interlock.workspace.git.changed_files import uncommitted_files
from interlock.workspace.machine import clients, spool
from interlock.workspace.machine.identity import NAME_BYTES, machine_name


def is_on_this_machine(app: App, identity: Identity) -> bool:
    return identity.machine == machine_name(app.home, app.entropy(NAME_BYTES))


def process_states(app: App, identities: Iterable[Identity]) -> dict[str, bool]:
    """Whether the clients of these run, as far as that can be seen."""
    presence = clients.look_for_clients(app.home)
    found: dict[str, bool] = {}
    for identity in identities:
        is_near = is_on_this_machine(app, identity)
        keys = frozenset(_conversations(app, identity) if is_near else ())
        if keys & presence.held.keys():
            found[identity.id] = True
        elif keys and keys <= presence.gone:
            found[identity.id] = False
    return found


def local_facts(app: App, board: Board) -> LocalFacts:
    """The facts about those who are stale: of the others nobody asks."""
    stale = [
        one.value
        for one in board.identities.values()
        if board.presence_of(one.value).status == "stale"
    ]
    near = [one for one in stale if is_on_this_machine(app, one)]
    # Each worktree is looked at once, by a git of its own.
    changes = {path: uncommitted_files(Path(path)) for path in {one.worktree for one in near}}
    uncommitted = {
        one.id: bool(names) for one in near if (names := changes[one.worktree]) is not None
    }
    return LocalFacts(process_states(app, stale), uncommitted)


def with_local_activity(app: App, board: Board) -> Board:
    """The board, on which those count as seen whose hooks have written something here."""
    silent = [
        one.value
        for one in board.identities.values()
        if board.presence_of(one.value).status != "active" and is_on_this_machine(app, one.value)
    ]
    if not silent:
        return board
    latest = latest_hook_lines(app)
    now_ms, seen_ms = app.clock.now_ms(), dict(board.seen_ms)
    for identity in silent:
        at_ms = max((latest.get(key, 0) for key in _conversations(app, identity)), default=0)
        if 0 < at_ms <= now_ms:
            known_ms = seen_ms.get(identity.id, identity.registered_ms)
            seen_ms[identity.id] = max(known_ms, board.now_ms - (now_ms - at_ms))
    return msgspec.structs.replace(board, seen_ms=seen_ms)


def latest_hook_lines(app: App) -> dict[tuple[str, str], int]:
    """When the hooks of each conversation last wrote a line."""
    latest: dict[tuple[str, str], int] = {}
    try:
        lines = (*spool.tail(app.home), *spool.tail(app.home, of_commands=True))
    except OSError:
        return latest
    for line in lines:
        key = (line.host, line.host_session)
        latest[key] = max(line.at_ms, latest.get(key, 0))
    return latest


def _conversations(app: App, identity: Identity) -> tuple[tuple[str, str], ...]:
    if not identity.session.startswith("ses_"):
        return ()
    stream = app.reader.stream(SessionId(identity.session))
    attended = stream.head.attended if stream and stream.head else None
    return attended.hosts if attended else ()
