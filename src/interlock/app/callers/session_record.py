"""The record of an attended session: it begins with the first thing that is worth keeping.

A new conversation is only announced to the gate: a row with the mode, and with the id that its
session will have. Most conversations read a little and leave nothing behind. Once somebody asks for
the session (`session_of`), it is recorded under that id: its stream and its logbook. Its note is
published by whoever changes it, or begins the next session (`app.protocol`).
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.context import App
from interlock.app.gate import integrity
from interlock.app.gate import policy as policies
from interlock.app.gate.policy import EffectivePolicy
from interlock.app.sessions.project_name import project_of
from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core import ids
from interlock.core.gate.state import GateRow, Mode, Policy
from interlock.core.ids import SessionId
from interlock.core.protocol import gated_session
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session import state
from interlock.core.session.events import decode_envelope
from interlock.core.session.head import Attendance
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.requirements import CheckedRequirement
from interlock.core.session.start_evidence import open_at_start, recorded_logbook, renew_evidence
from interlock.core.session.state import HostSession, SessionState
from interlock.store import gate_rows, queries
from interlock.store.gate_rows import PublishedRow
from interlock.store.log_reader import LogReader
from interlock.workspace.projects import logbooks, project


class StartedSession(msgspec.Struct, frozen=True):
    session: SessionId
    is_new: bool
    state: SessionState


def announce(
    app: App, root: Path, conversation: Conversation, previous: Conversation | None = None
) -> StartedSession:
    """Let the gate know a new conversation in the project at `root`. Nothing is recorded yet.

    `previous`: the conversation that it continues under another name, if there is one.
    """
    effective = effective_policy_in(app, root)
    known = _announced_row(app, conversation)
    if known is None and previous:
        known = _announced_row(app, previous)
        if known and known.root == str(root):
            gate_rows.withdraw_conversation(app.home, previous.host, previous.id)
        else:
            known = None
    row = GateRow(
        known.session if known else _new_session_id(app),
        effective.policy.first_mode,
        # In strict, the first change waits until the session and its start are recorded.
        is_started=effective.policy.profile != "strict",
        root=str(root),
        watched=integrity.inspect(app.home, root, effective.stamp).watched,
        project=project_of(app, root)[0],
    )
    is_simple = effective.policy.is_simple
    gate_rows.publish_rows(
        app.home, [PublishedRow(conversation.host, conversation.id, row, is_simple)]
    )
    announced = unrecorded_state(app, root, conversation, SessionId(row.session), row.mode)
    return StartedSession(SessionId(row.session), known is None, announced)


def unrecorded_state(
    app: App, root: Path, conversation: Conversation, session: SessionId, mode: Mode
) -> SessionState:
    """The state of a session that has just begun, of which nothing is recorded yet."""
    at = state.timestamp(app.clock.now_ms())
    return SessionState(
        *(session, root.name, str(root), at, at, 0),
        current_mode=mode,
        host_sessions=(HostSession(conversation.host, conversation.id),),
    )


def _announced_row(app: App, conversation: Conversation) -> GateRow | None:
    """The row of a conversation of which nothing is recorded yet."""
    row = gate_rows.read_state(app.home, conversation.host, conversation.id)
    return row if isinstance(row, GateRow) and row.session and not row.version else None


def announced_conversations(app: App) -> dict[SessionId, tuple[Conversation, Path]]:
    """The conversations of which nothing is recorded yet, with their projects, by session."""
    return {
        SessionId(found.row.session): (
            Conversation(found.host, found.host_session),
            Path(found.row.root),
        )
        for found in gate_rows.list_rows(app.home)
        if found.row.session and not found.row.version
    }


def session_of(app: App, conversation: Conversation) -> SessionId | None:
    """The session of a conversation; None if it has none.

    One that was only announced is recorded now, and one whose client had ended goes on.
    """
    stream = stream_of(app, conversation)
    return stream.session if stream else None


def stream_of(app: App, conversation: Conversation) -> Stream | None:
    """The stream of that session, as it was before it was recorded or went on."""
    stream = app.reader.ask(queries.conversation_stream(conversation.host, conversation.id))
    if stream is None:
        row = _announced_row(app, conversation)
        if row is None:
            return None
        started = record_start(app, Path(row.root), conversation, SessionId(row.session))
        return app.reader.stream(started.session)
    assert stream.head is not None, "a stored stream has a head"
    attended = stream.head.attended
    if attended and attended.status == "ended":
        if attended.was_ended:
            return None  # somebody has ended it, and that holds
        record_start(app, Path(stream.head.workspace), conversation, stream.session)
    return stream


def record_start(
    app: App, root: Path, conversation: Conversation | None, session: SessionId | None
) -> StartedSession:
    """Record that a session begins, or goes on, in the project at `root`."""
    # Every server imports this module, and few record a start.
    from interlock.app.callers.start_evidence import observe_start  # noqa: PLC0415
    from interlock.app.sessions.logbook_file import refresh_logbook  # noqa: PLC0415

    effective = effective_policy_at(app, root)
    policy, evidence = effective.policy, dict[str, str]()
    new_stream = Stream(session or _new_session_id(app))
    stream = new_stream

    def decide() -> Plan | None:
        nonlocal stream
        stream = (app.log.stream(session) if session else None) or new_stream
        observation = observe_workspace(root)
        if not (stream.head and stream.head.attended) and not evidence:
            facts = observe_start(
                *(app, root, conversation, observation),
                session=stream.session,
                keeps_logbook=policy.profile != "light",
            )
            evidence.update(renew_evidence({}, facts))
        return gated_session.begin(
            stream,
            str(root),
            policy.first_mode,
            conversation=conversation,
            is_bound=is_bound(app, conversation, stream.session),
            evidence=evidence,
            profile=policy.profile,
            observation=observation,
            at_ms=app.clock.now_ms(),
        )

    append_plan(app, decide)
    if evidence:
        refresh_logbook(app, stream.session)
    publish_to_gate(app, stream.session, effective)
    session_state = state_of(app, stream.session)
    own, recorded = map(recorded_logbook, (evidence, session_state.protocol_start_evidence))
    if own and own != recorded:
        # Another process has recorded the start at the same moment, with a logbook of its own.
        with suppress(OSError):
            logbooks.delete_logbook(root, own)
    return StartedSession(stream.session, stream is new_stream, session_state)


def renew_start(app: App, session: SessionId) -> tuple[CheckedRequirement, ...]:
    """Observe the start's requirements again. Return the required ones that are still open.

    The differences are recorded and passed to the gate. A waived requirement stays waived.
    """
    from interlock.app.callers.start_evidence import observe_start  # noqa: PLC0415 (as above)

    head = attended_head(app, session)
    before = state_of(app, session)
    assert head is not None, "only an attended session has a start"
    root, old = Path(before.worktree), before.protocol_start_evidence
    conversation = Conversation(*head.hosts[-1]) if head.hosts else None
    effective = effective_policy_in(app, root)
    profile = effective.policy.profile
    facts = observe_start(
        *(app, root, conversation, observe_workspace(root)),
        session=session,
        keeps_logbook=profile != "light",
        logbook=recorded_logbook(old),
    )
    evidence = renew_evidence(old, facts)
    still_open = open_at_start(evidence, profile)
    if before.protocol_start_complete == bool(still_open) or evidence != old:

        def decide() -> Plan:
            stream = app.log.known_stream(session)
            return gated_session.restart(stream, evidence, profile, at_ms=app.clock.now_ms())

        append_plan(app, decide)
        publish_to_gate(app, session, effective)
    return still_open


def _new_session_id(app: App) -> SessionId:
    return ids.session_id(app.entropy(ids.RANDOM_BYTES))


def state_of(app: App, session: SessionId, reader: LogReader | None = None) -> SessionState:
    """The state of a session, as `reader` sees it if that is given.

    A session without a recorded start has the mode in which it would begin.
    """
    links = (reader or app.reader).links(session)
    found = state.fold(decode_envelope(link.body) for link in links)
    if found.mode_history:
        return found
    first_mode = effective_policy_at(app, Path(found.worktree)).policy.first_mode
    return msgspec.structs.replace(found, current_mode=first_mode)


def ensure_attended(app: App, session: SessionId) -> None:
    """Record the start of a session's protocol, if no hook of a client has done that."""
    head = app.reader.head(session)
    if head.attended is None:
        record_start(app, Path(head.workspace), None, session)


def publish_to_gate(app: App, session: SessionId, effective: EffectivePolicy) -> None:
    """Write the state of the session to the rows that the gate reads."""
    stream = app.reader.stream(session)
    assert stream is not None, f"{session} is there"
    assert stream.head is not None, "a stored stream has a head"
    attended = stream.head.attended
    if attended is None:
        return
    if attended.status == "ended":
        gate_rows.withdraw_session(app.home, session)
        return
    row = GateRow(
        session,
        attended.mode,
        attended.is_started and not attended.open_start,
        attended.task,
        attended.may_code,
        stream.version,
        stream.head.workspace,
        integrity.inspect(app.home, Path(stream.head.workspace), effective.stamp).watched,
        project_of(app, Path(stream.head.workspace))[0],
    )
    rows = [
        PublishedRow(host, name, row, effective.policy.is_simple)
        for host, name in attended.hosts
        # A conversation that has moved to another session is governed by that one.
        if app.reader.session_of_conversation(host, name) == session
    ]
    gate_rows.publish_rows(app.home, rows)


def is_bound(app: App, conversation: Conversation | None, session: SessionId) -> bool:
    return (
        bool(conversation)
        and app.log.session_of_conversation(conversation.host, conversation.id) == session
    )


def attended_head(app: App, session: SessionId) -> Attendance | None:
    stream = app.reader.stream(session)
    return stream.head.attended if stream and stream.head else None


def effective_policy_of(app: App, session: SessionId) -> EffectivePolicy:
    return effective_policy_at(app, Path(app.reader.head(session).workspace))


def effective_policy_at(app: App, directory: Path) -> EffectivePolicy:
    """Return the policy of the project; outside of a project nothing is written."""
    root = integrity.governed_root(app.home, directory)
    try:
        os.stat((root or directory) / project.CONFIG)
    except (FileNotFoundError, NotADirectoryError):
        return EffectivePolicy(Policy() if root else Policy(profile="light"))
    except OSError:
        pass  # if it exists, reading it reports the fault
    return effective_policy_in(app, root or directory)


def effective_policy_in(app: App, root: Path) -> EffectivePolicy:
    return policies.load_effective_policy(app.home, root, at_ms=app.clock.now_ms())
