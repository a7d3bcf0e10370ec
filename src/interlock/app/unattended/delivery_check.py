"""Look at what is to be delivered: what was handed in, what the commit holds, what the forge says.

Nothing is changed here, so a check can be made as often as somebody wants to see its outcome.
"""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.unattended.forge_settings import forge_settings, open_forge
from interlock.app.unattended.worktrees import is_genuine
from interlock.core.ids import SessionId
from interlock.core.session.delivery_plan import (
    CommitFacts,
    PlannedDelivery,
    objection_to,
    plan_deliveries,
)
from interlock.core.session.events import decode_envelope
from interlock.core.session.patch_secrets import find_secrets_in_commit
from interlock.core.unattended.handed_work import HandedWork
from interlock.core.unattended.order import ForgeSubject, UnattendedState
from interlock.core.views.arrivals import arrivals
from interlock.core.views.graph import graph_of
from interlock.workspace.git.pushes import CommittedChanges, committed_changes, remote_names
from interlock.workspace.git.worktrees import filtered_files, head_commit
from interlock.workspace.outside.forges.forge import ForgeFailed

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
    return tuple(
        _check_one(app, session, state, plan, accepts_secrets=accepts_secrets)
        for plan in plan_deliveries(session, state, handed)
    )


def handed_work(app: App, session: SessionId) -> HandedWork:
    """Return all that was handed in on the way of a session's newest run to where it stands."""
    runs = app.reader.runs(session, latest=1)
    handed = HandedWork()
    if not runs:
        return handed
    envelopes = (decode_envelope(link.body) for link in app.reader.links(session))
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
