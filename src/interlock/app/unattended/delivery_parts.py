"""The parts of a delivery: push, request and comment. Each looks for its effect before it makes it.

What was looked for and not found is done; so doing it again, after a crash or because the user says
so, finds it and does nothing, and says the same.
"""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.unattended.forge_settings import find_forge, open_forge
from interlock.core.ids import SessionId
from interlock.core.session.delivery_plan import PlannedDelivery
from interlock.core.session.delivery_texts import marker_of
from interlock.core.unattended.delivery import DeliveryRecord, PartOutcome, RecordedPart
from interlock.workspace.git.pushes import push_commit, remote_commit
from interlock.workspace.outside.forges.forge import ForgeRequest
from interlock.workspace.outside.forges.rest_calls import ForgeFailed


class RequestOutcome(msgspec.Struct, frozen=True, rename="camel"):
    record: DeliveryRecord
    number: int


def look_at_push(plan: PlannedDelivery) -> DeliveryRecord | None:
    """Return what has become of the push; None if nothing has. So with all of these.

    Raises:
        OSError: the remote cannot be asked now.
    """
    result, wish = plan.result, plan.wish
    found = remote_commit(Path(result.path), wish.remote, result.branch)
    if found and found != result.commit:
        stands = f"`{result.branch}` of {wish.remote} stands at {found[:12]} already"
        advice = "Look at it there, and delete that branch if nobody needs it"
        return _record(plan, "push", "refused", f"{stands}. {advice}")
    return _push_record(plan) if found else None


def push(plan: PlannedDelivery) -> DeliveryRecord:
    """Raises `OSError` if the remote cannot be reached now."""
    if record := look_at_push(plan):
        return record
    result, remote = plan.result, plan.wish.remote
    reason = push_commit(Path(result.path), remote, result.commit, result.branch)
    if reason:
        return _record(plan, "push", "refused", f"{remote} does not take it: {reason}")
    return _push_record(plan)


def look_at_request(app: App, plan: PlannedDelivery) -> RequestOutcome | None:
    """Raises `OSError` if the forge cannot be asked now."""
    forge = open_forge(app.home, plan.wish.forge)
    found = forge.find_request(plan.wish.repository, plan.result.branch)
    return _request_outcome(plan, found) if found else None


def open_request(app: App, plan: PlannedDelivery) -> RequestOutcome:
    """Raises `OSError` if the forge cannot be asked now."""
    wish, forge = plan.wish, open_forge(app.home, plan.wish.forge)
    try:
        if outcome := look_at_request(app, plan):
            return outcome
        made = forge.open_request(
            wish.repository,
            source_branch=plan.result.branch,
            target_branch=wish.target or forge.default_branch(wish.repository),
            title=plan.title,
            body=plan.description,
            is_draft=find_forge(app.home, wish.forge).draft_requests,
        )
    except ForgeFailed as failed:
        return RequestOutcome(_refusal_record(plan, "request", failed), 0)
    return _request_outcome(plan, made)


def look_at_comment(
    app: App, session: SessionId, plan: PlannedDelivery, number: int
) -> DeliveryRecord | None:
    """Raises `OSError` if the forge cannot be asked now."""
    forge = open_forge(app.home, plan.wish.forge)
    url = forge.find_comment(plan.wish.repository, number, marker_of(session))
    return _comment_record(plan, number, url) if url else None


def write_comment(
    app: App, session: SessionId, plan: PlannedDelivery, number: int
) -> DeliveryRecord:
    """Raises `OSError` if the forge cannot be asked now."""
    forge = open_forge(app.home, plan.wish.forge)
    try:
        if record := look_at_comment(app, session, plan, number):
            return record
        url = forge.comment(plan.wish.repository, number, plan.comment)
    except ForgeFailed as failed:
        return _refusal_record(plan, "comment", failed)
    return _comment_record(plan, number, url)


def _push_record(plan: PlannedDelivery) -> DeliveryRecord:
    return _record(plan, "push", "done", f"{plan.wish.remote}: {plan.result.branch}")


def _request_outcome(plan: PlannedDelivery, request: ForgeRequest) -> RequestOutcome:
    detail = f"{plan.wish.repository}: request {request.number}"
    return RequestOutcome(_record(plan, "request", "done", detail, request.url), request.number)


def _comment_record(plan: PlannedDelivery, number: int, url: str) -> DeliveryRecord:
    return _record(plan, "comment", "done", f"{plan.wish.repository}: on {number}", url)


def _refusal_record(
    plan: PlannedDelivery, part: RecordedPart, failed: ForgeFailed
) -> DeliveryRecord:
    """Raises what has failed if it may be otherwise the next time."""
    if not failed.is_final:
        raise failed
    return _record(plan, part, "refused", str(failed))


def _record(
    plan: PlannedDelivery, part: RecordedPart, outcome: PartOutcome, detail: str, url: str = ""
) -> DeliveryRecord:
    commit = plan.result.commit if part == "push" else ""
    return DeliveryRecord(part, outcome, detail, url, commit, plan.result.name)
