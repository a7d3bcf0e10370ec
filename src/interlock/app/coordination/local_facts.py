"""What can be seen from this machine of those who work on a project."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.sessions.statuses import Observer, latest_hook_lines
from interlock.core.coordination.board import Board
from interlock.core.coordination.preflight import LocalFacts
from interlock.core.coordination.records import Identity
from interlock.core.ids import SessionId
from interlock.core.session.head import Head
from interlock.workspace.git.changed_files import uncommitted_files
from interlock.workspace.machine.identity import NAME_BYTES, machine_name


def is_on_this_machine(app: App, identity: Identity) -> bool:
    return identity.machine == machine_name(app.home, app.entropy(NAME_BYTES))


def process_states(app: App, identities: Iterable[Identity]) -> dict[str, bool]:
    """Whether the clients of these run, as far as that can be seen."""
    observer, found = Observer(app), dict[str, bool]()
    for identity in identities:
        head = _head_of(app, identity) if is_on_this_machine(app, identity) else None
        state = observer.client_state(SessionId(identity.session), head) if head else "unknown"
        if state != "unknown":
            found[identity.id] = state == "connected"
    return found


def local_facts(app: App, board: Board) -> LocalFacts:
    """Return the facts about agents here; about their files only for stale agents."""
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
    known = [one.value for one in board.identities.values()]
    return LocalFacts(process_states(app, known), uncommitted)


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


def _conversations(app: App, identity: Identity) -> tuple[tuple[str, str], ...]:
    head = _head_of(app, identity)
    return head.attended.hosts if head and head.attended else ()


def _head_of(app: App, identity: Identity) -> Head | None:
    if not identity.session.startswith("ses_"):
        return None
    stream = app.reader.stream(SessionId(identity.session))
    return stream.head if stream else None
