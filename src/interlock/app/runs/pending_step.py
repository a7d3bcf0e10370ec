"""Show the pending step again. An approval that is overdue is decided by whoever looks first."""

from interlock.app.context import App
from interlock.app.refusals import BadToken, NodeGone, UnhealthySession
from interlock.app.runs.approvals import resolve_if_overdue
from interlock.app.runs.rehydrate import rehydrate
from interlock.core.session.answer import RenderedAnswer
from interlock.core.session.refusals import RunGivenUp


def show_pending_step(
    app: App, token: str
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunGivenUp:
    outcome = _rehydrate(app, token)
    if not isinstance(outcome, RenderedAnswer):
        return outcome
    answer = outcome.answer
    if answer.approval and resolve_if_overdue(app, answer.approval.id, outcome.session):
        return _rehydrate(app, token)
    return outcome


def _rehydrate(
    app: App, token: str
) -> RenderedAnswer | BadToken | NodeGone | UnhealthySession | RunGivenUp:
    return rehydrate(app.reader, app.keyring, app.pinned_workflow, token=token)
