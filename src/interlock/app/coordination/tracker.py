"""The tracker that work items are in: Interlock's own, or Beads where the user has said so.

What is claimed in Beads is recorded here as well, so that presence and take-over know of it. If
`bd` fails, the own tracker is used, and a warning says so.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from interlock.app.context import App
from interlock.app.coordination import holdings
from interlock.app.coordination.holdings import ClaimRefusal
from interlock.app.coordination.participants import Participant, act_as, register
from interlock.app.coordination.project_desk import PlannedChange, ProjectDesk, read_board
from interlock.app.gate.policy import is_checkout_trusted
from interlock.core.coordination.board import Board
from interlock.core.coordination.holdings import ready_items
from interlock.core.coordination.records import (
    Identity,
    ProjectChange,
    WorkItem,
    WorkItemChanged,
    WorkStatus,
)
from interlock.core.coordination.refusals import IdentityLost, UnknownWork, WorkHeld, WorkRefused
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.workspace.projects.settings import outside_services_in

if TYPE_CHECKING:
    from interlock.workspace.outside.beads import BeadsTracker

T = TypeVar("T")
_NOT_TRUSTED = (
    "Beads is not used: `bd` runs the hooks of a project, and the user has not trusted this"
    " checkout (`interlock trust`)."
)


class TrackerAnswer(msgspec.Struct, frozen=True):
    """Items, and warnings about the tracker that they should have come from."""

    items: tuple[WorkItem, ...]
    warnings: tuple[str, ...] = ()


def list_work(app: App, desk: ProjectDesk, *, is_ready: bool) -> TrackerAnswer:
    """The items that are free to begin, or all that are not done."""
    warnings: list[str] = []
    tracker = _beads_tracker(app, desk, warnings)
    if tracker:
        read = tracker.list_ready if is_ready else tracker.list_items
        found = _try(read, warnings)
        if found is not None:
            open_items = (item for item in found if item.status != "done")
            return TrackerAnswer(tuple(open_items))
    board = read_board(app, desk, app.log)
    items = ready_items(board) if is_ready else [one.value for one in board.work.values()]
    return TrackerAnswer(tuple(items), tuple(warnings))


def claim(app: App, desk: ProjectDesk, who: Participant, item_id: str) -> WorkItem | ClaimRefusal:
    tracker = _beads_tracker(app, desk)
    if tracker is None:
        return holdings.claim_work(app, desk, who, item_id)
    # The identity first: Beads is told under which name to remember it.
    identity = register(app, desk, msgspec.structs.replace(who, track=None), is_asked_for=False)
    if isinstance(identity, IdentityLost):
        return identity
    claimed = _try(lambda: tracker.claim(item_id, identity.id), [])
    if claimed is None:
        return holdings.claim_work(app, desk, who, item_id)
    if not isinstance(claimed, WorkItem):
        return WorkHeld(item_id, claimed.holder, claimed.holder, 0)
    _mirror(app, desk, who, claimed, "in_progress")
    return claimed


def add(
    app: App, desk: ProjectDesk, who: Participant, draft: WorkDraft
) -> WorkItem | WorkRefused | UnknownWork | IdentityLost:
    tracker = _beads_tracker(app, desk)
    created = tracker and _try(
        lambda: tracker.create(draft.title, draft.priority, draft.description, draft.depends_on), []
    )
    return created or holdings.add_work(app, desk, who, draft)


def update(
    app: App, desk: ProjectDesk, who: Participant, item_id: str, change: WorkItemUpdate
) -> WorkItem | UnknownWork | WorkHeld | WorkRefused | IdentityLost:
    tracker = _beads_tracker(app, desk)
    held = holdings.why_not_owned(app, desk, who, item_id) if tracker else None
    if held:
        return held
    if tracker and change.status == "done":
        closed = _try(lambda: tracker.close(item_id, change.reason), [])
        if closed is not None:
            _mirror(app, desk, who, closed, "done")
            return closed
    return holdings.update_work(app, desk, who, item_id, change)


def find(app: App, desk: ProjectDesk, item_id: str) -> WorkItem | UnknownWork:
    tracker = _beads_tracker(app, desk)
    found = tracker and _try(lambda: tracker.show(item_id), [])
    return found or holdings.find_work(app, desk, item_id)


def _mirror(
    app: App, desk: ProjectDesk, who: Participant, item: WorkItem, status: WorkStatus
) -> None:
    """Record an item of Beads on the board, as it is now."""

    def act(board: Board, own: Identity) -> PlannedChange[None]:
        is_known = item.id in board.work
        mirrored = msgspec.structs.replace(
            item,
            status=status,
            assignee=own.id,
            claimed_ms=board.now_ms,
            updated_ms=board.now_ms,
        )
        cause = "done" if status == "done" else "claimed" if is_known else "added"
        change = (WorkItemChanged(mirrored, cause, own.id),)
        return PlannedChange(ProjectChange(change, (board.fence(own.id),)), None)

    act_as(app, desk, who, act)


def _beads_tracker(
    app: App, desk: ProjectDesk, warnings: list[str] | None = None
) -> "BeadsTracker | None":
    services = outside_services_in(app.home / "config.toml")
    if not services.beads:
        return None
    # `bd` runs the hooks in `.beads`, and an agent may have written the directory that it names.
    if not is_checkout_trusted(app.home, desk.root):
        if warnings is not None:
            warnings.append(_NOT_TRUSTED)
        return None
    from interlock.workspace.outside.beads import BeadsTracker  # noqa: PLC0415 (12 ms)

    return BeadsTracker(desk.root, services.beads_command)


def _try(read: Callable[[], T], warnings: list[str]) -> T | None:
    from interlock.workspace.outside.beads import BeadsFailed  # noqa: PLC0415 (12 ms)

    try:
        return read()
    except BeadsFailed as failure:
        warnings.append(f"Beads is not used: {failure}")
        return None
