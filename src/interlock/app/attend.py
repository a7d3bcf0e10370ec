"""Sessions that a gate watches over: begin, look, change the mode and the work, end."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.app import policy as policies
from interlock.app.context import App
from interlock.app.observe import seen_in
from interlock.app.refusals import NoSuchSession
from interlock.core import ids
from interlock.core.gate.state import Mode, Policy, Row
from interlock.core.ids import SessionId
from interlock.core.session import attend, state
from interlock.core.session.attend import By, Conversation, Work
from interlock.core.session.events import SessionStatus, decode_envelope
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.state import SessionState
from interlock.store import gate
from interlock.store.failures import StreamMoved
from interlock.workspace import project

GOES_ON = ("resume", "compact", "clear")
"""A conversation that begins so belongs to the session that it belonged to."""


class Begun(msgspec.Struct, frozen=True):
    session: SessionId
    is_new: bool
    state: SessionState


def begin(app: App, root: Path, conversation: Conversation | None) -> Begun:
    """The session of a conversation in the project at `root`, begun or gone on with."""
    policy = _policy_in(app, root)
    while True:
        session = _known(app, root, conversation)
        stream = app.log.stream(session) if session else None
        is_new = stream is None
        if stream is None:
            stream = Stream(ids.session_id(app.entropy(ids.RANDOM_BYTES)))
        seen = seen_in(root)
        branch = (seen.git_branch or "detached") if seen else "no git"
        planned = attend.begin(
            stream,
            str(root),
            policy.first_mode,
            conversation=conversation,
            evidence={"branch": branch, "profile": policy.profile},
            seen=seen,
            at_ms=app.clock.now_ms(),
        )
        if planned is None or _append(app, planned):
            found = _after(app, stream.session, policy)
            return Begun(stream.session, is_new, found)


def current(app: App, root: Path, asked: str | None) -> SessionId | NoSuchSession:
    """The session that was named, or the only one that goes on in the project."""
    if asked:
        found = app.reader.find_session(asked)
        exact = [session for session in found if session == asked] or found
        return exact[0] if len(exact) == 1 else NoSuchSession(asked, tuple(exact))
    candidates = app.reader.attended_in(str(root))
    return candidates[0] if len(candidates) == 1 else NoSuchSession("", tuple(candidates))


def change_mode(
    app: App, session: SessionId, mode: Mode, *, by: By, task: str | None = None
) -> SessionState | attend.Refusal:
    policy = _policy_of(app, session)
    return _change(
        app,
        session,
        policy,
        lambda stream: attend.change_mode(
            stream, mode, policy, by=by, task=task, at_ms=app.clock.now_ms()
        ),
    )


def change_work(app: App, session: SessionId, work: Work) -> SessionState | attend.Refusal:
    return _change(
        app,
        session,
        _policy_of(app, session),
        lambda stream: attend.change_work(stream, work, at_ms=app.clock.now_ms()),
    )


def change_status(
    app: App, session: SessionId, status: SessionStatus, reason: str
) -> SessionState | attend.Refusal:
    return _change(
        app,
        session,
        _policy_of(app, session),
        lambda stream: attend.change_status(stream, status, reason, at_ms=app.clock.now_ms()),
    )


def state_of(app: App, session: SessionId) -> SessionState | attend.NotAttended:
    envelopes = (decode_envelope(link.body) for link in app.reader.links(session))
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    root = stream.head.workspace
    found = state.fold(envelopes, project=Path(root).name)
    return found or attend.NotAttended(session)


def publish(app: App, session: SessionId, policy: Policy) -> None:
    """Tell the gate what is so now."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    attended = stream.head.attended
    if attended is None:
        return
    if attended.status == "ended":
        gate.withdraw(app.home, session)
        return
    row = Row(session, attended.mode, attended.is_started, attended.task, stream.version)
    rows = [
        gate.Published(host, name, stream.head.workspace, row, policy.is_simple)
        for host, name in attended.hosts
    ]
    gate.write(app.home, rows)


def _known(app: App, root: Path, conversation: Conversation | None) -> SessionId | None:
    if conversation is None:
        found = app.reader.attended_in(str(root))
        return found[0] if len(found) == 1 else None
    known = app.reader.of_host(conversation.host, conversation.id)
    if known is None and conversation.source in GOES_ON:
        found = app.reader.attended_in(str(root))
        known = found[0] if len(found) == 1 else None
    return known


def _change(
    app: App,
    session: SessionId,
    policy: Policy,
    decide: Callable[[Stream], Plan | attend.Refusal | None],
) -> SessionState | attend.Refusal:
    while True:
        stream = app.log.stream(session)
        assert stream is not None, f"{session} is there"
        planned = decide(stream)
        if planned is not None and not isinstance(planned, Plan):
            return planned
        if planned is None or _append(app, planned):
            return _after(app, session, policy)


def _after(app: App, session: SessionId, policy: Policy) -> SessionState:
    publish(app, session, policy)
    found = state_of(app, session)
    assert isinstance(found, SessionState), "it is attended"
    return found


def _append(app: App, planned: Plan) -> bool:
    try:
        app.log.append(planned)
    except StreamMoved:
        return False
    return True


def _policy_of(app: App, session: SessionId) -> Policy:
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    root = Path(stream.head.workspace)
    return _policy_in(app, root) if (root / project.CONFIG).exists() else Policy()


def _policy_in(app: App, root: Path) -> Policy:
    return policies.standing(app.home, root, at_ms=app.clock.now_ms()).policy
