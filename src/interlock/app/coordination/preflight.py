"""Run preflight: register, look around, and say what has to be decided before work begins."""

from collections.abc import Sequence

import msgspec

from interlock.app.context import App
from interlock.app.coordination.holdings import parse_paths
from interlock.app.coordination.local_facts import local_facts, with_local_activity
from interlock.app.coordination.outside_mail import MailServerDown, OutsideView, exchange_mail
from interlock.app.coordination.participants import Participant, register
from interlock.app.coordination.project_desk import (
    PlannedChange,
    ProjectDesk,
    append_change,
    read_board,
)
from interlock.app.coordination.takeovers import clean_up_orphans
from interlock.core.coordination import preflight
from interlock.core.coordination.conflicts import WorkScope
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.records import Identity, PreflightSkipped, ProjectChange
from interlock.core.coordination.refusals import IdentityLost, PatternRefused

DESIGN_TAG = "design"
"""Workflows with this tag begin afresh: nobody is in their way."""


class PreflightRequest(msgspec.Struct, frozen=True):
    paths: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Stale identities that the caller goes on without."""


def run_preflight(
    app: App, desk: ProjectDesk, who: Participant, request: PreflightRequest
) -> PreflightReport | PatternRefused | IdentityLost | MailServerDown:
    """Register first; whatever fails after that does not lose the identity."""
    scope = _scope(desk, who, request)
    if isinstance(scope, PatternRefused):
        return scope
    identity = register(app, desk, who)
    if isinstance(identity, IdentityLost):
        return identity
    cleaned = clean_up_orphans(app, desk, identity.id)
    scope = msgspec.structs.replace(scope, track=identity.track)
    outside = exchange_mail(app, desk, identity)
    if isinstance(outside, MailServerDown):
        return outside
    found = _look_around(app, desk, identity, scope, request.ignored)
    found = msgspec.structs.replace(found, cleaned_up=tuple(cleaned))
    return _with_outside(found, outside) if outside else found


def _with_outside(report: PreflightReport, outside: OutsideView) -> PreflightReport:
    return msgspec.structs.replace(
        report,
        active_sessions=(*report.active_sessions, *outside.sessions),
        mode="normal" if outside.is_used else "degraded",
        warnings=(*report.warnings, *outside.warnings),
    )


def look_around(
    app: App, desk: ProjectDesk, who: Participant | None, track: str = ""
) -> PreflightReport:
    """The report without registering: nothing is written. `who` is None for the overseer."""
    identity = read_board(app, desk).identity_of(who.key) if who else None
    return _look_around(app, desk, identity, WorkScope(track), (), is_starting=False)


def _look_around(
    app: App,
    desk: ProjectDesk,
    identity: Identity | None,
    scope: WorkScope,
    ignored: Sequence[str],
    *,
    is_starting: bool = True,
) -> PreflightReport:
    board = with_local_activity(app, read_board(app, desk, app.log))
    return preflight.report(
        board,
        identity,
        scope,
        local_facts(app, board),
        folds_case=desk.path_rules.folds_case,
        ignored=frozenset(ignored),
        is_starting=is_starting,
    )


def record_skip(app: App, desk: ProjectDesk, session: str, why: str) -> None:
    """Record that somebody began without looking, and why."""
    event = PreflightSkipped(session, why[:500])
    append_change(app, desk, lambda _: PlannedChange(ProjectChange((event,)), None))


def _scope(
    desk: ProjectDesk, who: Participant, request: PreflightRequest
) -> WorkScope | PatternRefused:
    paths = parse_paths(desk, request.paths) if request.paths else None
    if isinstance(paths, PatternRefused):
        return paths
    return WorkScope(who.track or "", paths, request.items)
