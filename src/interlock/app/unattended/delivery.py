"""Deliver the result of unattended work: have it done, show what would be, record what was.

The parts are done by a job (`interlock.durable.delivery`), which may be killed between any two.
A check changes nothing, so it can be made as often as somebody wants to see its outcome.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.append_loop import append_once, append_plan
from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.jobs.executor_process import wait_for_outcome
from interlock.app.jobs.executor_role import own_machine
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.app.unattended.delivery_parts import look_at_comment, look_at_push, look_at_request
from interlock.app.unattended.forge_settings import forge_settings, open_forge
from interlock.app.unattended.orders import state_of
from interlock.app.unattended.worktrees import is_genuine
from interlock.core.ids import SessionId
from interlock.core.session import delivery_control, unattended_control
from interlock.core.session.delivery_events import DeliveryRequested, request_key
from interlock.core.session.delivery_plan import (
    CommitFacts,
    PlannedDelivery,
    objection_to,
    plan_deliveries,
)
from interlock.core.session.patch_secrets import find_secrets_in_commit
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.unattended_control import (
    ControlNotPossible,
    ControlRefusal,
    NotUnattended,
)
from interlock.core.unattended.delivery import (
    DeliveryOutcome,
    DeliveryRecord,
    DeliveryState,
    RecordedPart,
)
from interlock.core.unattended.handed_work import HandedWork, relative_paths
from interlock.core.unattended.order import ForgeSubject, UnattendedState
from interlock.core.views.arrivals import arrivals
from interlock.core.views.graph import graph_of
from interlock.workspace.git.pushes import (
    CommittedChanges,
    committed_changes,
    count_lines,
    remote_names,
)
from interlock.workspace.git.worktrees import filtered_files, head_commit
from interlock.workspace.machine.identity import user_name
from interlock.workspace.outside.forges.rest_calls import ForgeFailed

CLOSED = "it was closed meanwhile"
NOT_SEEN = "there is no such request, or the token does not let us see it"
NO_ISSUES = "comments on issues are written on GitHub only"


class CheckedDelivery(msgspec.Struct, frozen=True, rename="camel"):
    plan: PlannedDelivery
    objection: str
    """Why nothing of it is done; empty if nothing is in the way."""
    message: str = ""
    """Of the commit."""
    files: tuple[str, ...] = ()
    """The files that the commit changes."""
    secrets: tuple[str, ...] = ()
    """What looks like a secret in it, each with its place."""


def check_deliveries(
    app: App, session: SessionId, state: UnattendedState, *, accepts_secrets: bool
) -> tuple[CheckedDelivery, ...]:
    """Check all that the order wants.

    Raises:
        OSError: git or the forge cannot be asked now.
    """
    handed = handed_work(app, session)
    missing = tuple(_missing_places(state, handed))
    handed = msgspec.structs.replace(handed, missing_places=missing)
    return tuple(
        _check_one(app, session, state, plan, accepts_secrets=accepts_secrets)
        for plan in plan_deliveries(session, state, handed)
    )


def _missing_places(state: UnattendedState, handed: HandedWork) -> Iterator[str]:
    """Yield the places that findings name and that are not in the commit that was reviewed."""
    repository, commit = Path(state.order.repository), state.commit or state.order.base
    for finding in handed.verdict.findings if handed.verdict else ():
        if not finding.file:
            continue
        paths, _ = relative_paths((finding.file,), state.worktree)
        lines = count_lines(repository, commit, paths[0]) if paths else None
        if lines is None or (finding.line is not None and not 1 <= finding.line <= lines):
            yield finding.place


def handed_work(app: App, session: SessionId) -> HandedWork:
    """Return all submissions on the path to the tip of a session's newest run."""
    runs = app.reader.runs(session, latest=1)
    handed = HandedWork()
    if not runs:
        return handed
    envelopes = app.reader.history(session)
    by_node = arrivals(runs[-1].run, envelopes)
    for node in graph_of(runs[-1].run, by_node).path:
        if output := by_node[node.id].output:
            blobs = [app.reader.blob(artifact.ref) for artifact in output.artifacts]
            handed = handed.with_output(output.notes, map(msgspec.json.decode, blobs))
    return handed


def _check_one(
    app: App,
    session: SessionId,
    state: UnattendedState,
    plan: PlannedDelivery,
    *,
    accepts_secrets: bool,
) -> CheckedDelivery:
    plan, objection = _check_forge(app, plan, state.order.subject)
    if not plan.wants("push") or objection:
        return CheckedDelivery(plan, objection)
    repository = Path(plan.result.path)
    if plan.wish.remote not in remote_names(repository):
        return CheckedDelivery(plan, f"`{repository}` has no remote `{plan.wish.remote}`")
    facts, changes = _look_at_commit(plan)
    objection = objection_to(plan, facts, accepts_secrets=accepts_secrets, session=session)
    if not plan.result.commit and state.detail:
        objection = state.detail  # why there is none
    message = changes.message if changes else ""
    return CheckedDelivery(plan, objection, message, facts.files, facts.secrets)


def _check_forge(
    app: App, plan: PlannedDelivery, subject: ForgeSubject | None
) -> tuple[PlannedDelivery, str]:
    wish = plan.wish
    if not plan.wants("request") and not plan.wants("comment"):
        return plan, ""
    if not wish.forge or not wish.repository:
        return plan, "its order does not say on which forge, and in which repository there"
    try:
        forge = open_forge(app.home, wish.forge)
        request = forge.request(wish.repository, wish.number) if wish.number else None
    except SettingsBroken as broken:
        return plan, str(broken)
    except ForgeFailed as failed:
        if not failed.is_final:
            raise
        return plan, str(failed)
    if not wish.number or not plan.wants("comment"):
        return plan, ""
    if subject and (subject.kind, subject.number) == ("issue", wish.number):
        kind = forge_settings(app.home)[wish.forge].kind
        return plan if kind == "github" else plan.skip("comment", NO_ISSUES), ""
    if request is None:
        # Work was done for it: if nothing else is delivered, somebody must hear of it.
        return (plan.skip("comment", NOT_SEEN), "") if plan.wants("push") else (plan, NOT_SEEN)
    return plan if request.state == "open" else plan.skip("comment", CLOSED), ""


def _look_at_commit(plan: PlannedDelivery) -> tuple[CommitFacts, CommittedChanges | None]:
    result = plan.result
    repository, worktree = Path(result.path), Path(result.worktree)
    facts = CommitFacts(
        head_commit(repository, f"refs/heads/{result.branch}"),
        not worktree.is_dir() or is_genuine(worktree, result.path),
    )
    if not result.commit or facts.branch_commit != result.commit:
        return facts, None
    changes = committed_changes(repository, result.base, result.commit)
    suspected = find_secrets_in_commit(changes.message, changes.patch)
    facts = msgspec.structs.replace(
        facts,
        parents=changes.parents,
        files=changes.files,
        secrets=tuple(dict.fromkeys(f"{one.where} ({one.kind})" for one in suspected)),
        is_scanned=changes.is_whole,
        filtered=filtered_files(repository, result.commit, changes.files),
    )
    return facts, changes


DETAIL_CHARS_MAX = 2_000


class DeliveryCheck(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of a check, for the steps that come after it."""

    plans: tuple[PlannedDelivery, ...]
    records: tuple[DeliveryRecord, ...]


class PartPreview(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    part: RecordedPart
    outcome: Literal["planned", "done", "skipped", "refused"]
    """`planned`: it would be done now. The others: it would be recorded as that, and is no more."""
    detail: str = ""
    url: str = ""


class DeliveryPreview(msgspec.Struct, frozen=True, rename="camel"):
    """The delivery of one result as it would be, to the word."""

    checked: CheckedDelivery
    parts: tuple[PartPreview, ...]


def deliver_work(
    app: App, session_id: str, *, place: str, accepts_secrets: bool = False
) -> UnattendedState | NoSuchSession | ControlRefusal:
    """Have the result delivered, and wait a while for that; how it stands then."""
    stream = _require_deliverable(app, session_id)
    if not isinstance(stream, Stream):
        return stream
    session, who = stream.session, f"{user_name()}, {place}"

    def decide() -> Plan | ControlRefusal:
        current = app.log.stream(session)
        assert current is not None, "it was found a moment ago"
        return unattended_control.plan_delivery(
            current, who=who, accepts_secrets=accepts_secrets, at_ms=app.clock.now_ms()
        )

    refusal = append_plan(app, decide)
    if refusal is not None:
        return refusal

    def find_end() -> DeliveryState | None:
        state = state_of(app, session)
        return state.delivery if state and state.delivery and state.delivery.outcome else None

    wait_for_outcome(app, find_end)
    return state_of(app, session) or NotUnattended(session)


def preview_delivery(
    app: App, session_id: str, *, accepts_secrets: bool = False
) -> tuple[DeliveryPreview, ...] | NoSuchSession | ControlRefusal:
    """Show what would be delivered. Nothing is changed, here or elsewhere."""
    stream = _require_deliverable(app, session_id)
    if not isinstance(stream, Stream):
        return stream
    session, state = stream.session, unattended_control.deliverable_state(stream)
    if not isinstance(state, UnattendedState):
        return state
    try:
        checked = check_deliveries(app, session, state, accepts_secrets=accepts_secrets)
        return tuple(
            DeliveryPreview(one, tuple(_preview_parts(app, session, one))) for one in checked
        )
    except (OSError, SettingsBroken) as failure:
        return ControlNotPossible(f"It cannot be looked at now: {failure}", "Try it again.")


def _require_deliverable(app: App, session_id: str) -> Stream | NoSuchSession | ControlRefusal:
    """The stream of a session whose work was done here."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    stream = app.log.stream(session)
    head = stream.head if stream else None
    state = head.unattended if head else None
    if stream is None or head is None or state is None:
        return NotUnattended(session)
    if head.imported_from:
        hint = f"Deliver `{head.imported_from}`, where it was done."
        return ControlNotPossible("It is a copy of work that was done elsewhere", hint)
    if state.order.machine != own_machine(app):
        why = f"The work was done on another machine (`{state.order.machine}`)"
        return ControlNotPossible(why, "Deliver it there: its repository is not here.")
    return stream


def _preview_parts(app: App, session: SessionId, checked: CheckedDelivery) -> Iterator[PartPreview]:
    plan = checked.plan
    for record in _check_records(checked):
        yield PartPreview(record.part, record.outcome, record.detail)
    if checked.objection:
        return
    if plan.wants("push"):
        yield _preview("push", look_at_push(plan), f"{plan.wish.remote}: {plan.result.branch}")
    request = look_at_request(app, plan) if plan.wants("request") else None
    if plan.wants("request"):
        detail = f"{plan.wish.repository}: a new one"
        yield _preview("request", request.record if request else None, detail)
    if plan.wants("comment"):
        number = plan.wish.number or (request.number if request else 0)
        found = look_at_comment(app, session, plan, number) if number else None
        yield _preview("comment", found, f"{plan.wish.repository}: on {number or 'the new one'}")


def _preview(part: RecordedPart, record: DeliveryRecord | None, detail: str) -> PartPreview:
    if record is None:
        return PartPreview(part, "planned", detail)
    return PartPreview(part, record.outcome, record.detail, record.url)


def is_current(app: App, session: SessionId, job: str) -> bool:
    """Whether it is this job that delivers: two at once would both find nothing, and do it."""
    state = state_of(app, session)
    return state is not None and state.delivery is not None and state.delivery.job == job


def check(app: App, session: SessionId, job: str) -> DeliveryCheck | None:
    """Check what a job is to deliver; None if the session is gone.

    Raises:
        OSError: git or the forge cannot be asked now.
    """
    state, requested = state_of(app, session), app.log.event_with_key(session, request_key(job))
    if state is None or requested is None:
        return None
    event = requested.event
    assert isinstance(event, DeliveryRequested), "it has the key of a request"
    checked = check_deliveries(app, session, state, accepts_secrets=event.accepts_secrets)
    records = tuple(record for one in checked for record in _check_records(one))
    return DeliveryCheck(tuple(one.plan for one in checked), records)


def _check_records(checked: CheckedDelivery) -> Iterator[DeliveryRecord]:
    name, plan = checked.plan.result.name, checked.plan
    if checked.objection:
        yield DeliveryRecord("check", "refused", checked.objection, repository=name)
        return
    yield DeliveryRecord("check", "done", commit=plan.result.commit, repository=name)
    for part, why in plan.skipped.items():
        yield DeliveryRecord(part, "skipped", why, repository=name)


def record_parts(app: App, session: SessionId, job: str, records: Sequence[DeliveryRecord]) -> None:
    """Record what has become of some parts, each once."""
    for record in records:
        bounded = msgspec.structs.replace(record, detail=record.detail[:DETAIL_CHARS_MAX])
        append_once(
            app,
            session,
            delivery_control.record_key(job, record),
            lambda stream, one=bounded: delivery_control.plan_record(
                stream, job, one, at_ms=app.clock.now_ms()
            ),
        )


def end_delivery(
    app: App, session: SessionId, job: str, outcome: DeliveryOutcome, detail: str
) -> None:
    """Record once how the delivery has ended."""
    at_ms, words = app.clock.now_ms(), detail[:DETAIL_CHARS_MAX]
    append_once(
        app,
        session,
        delivery_control.end_key(job, outcome),
        lambda stream: delivery_control.plan_end(stream, job, outcome, words, at_ms=at_ms),
    )
