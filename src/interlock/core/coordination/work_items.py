"""The small tracker of a project: items that are added, claimed, blocked and done."""

import hashlib
from collections.abc import Iterator

import msgspec

from interlock.core.coordination.board import Board
from interlock.core.coordination.holdings import similar_items
from interlock.core.coordination.records import (
    DONE_WORK,
    WORK,
    Identity,
    ProjectChange,
    WorkItem,
    WorkItemChanged,
    WorkStatus,
)
from interlock.core.coordination.refusals import UnknownWork, WorkHeld, WorkRefused
from interlock.core.project_stream import RowCondition
from interlock.core.visible_text import is_blank, one_line

TITLE_CHARS_MAX, DESCRIPTION_CHARS_MAX = 200, 8_000
PRIORITY_MAX = 4
REASON_CHARS_MAX = 500
REPEAT_MS = 60_000
ID_PREFIX = "il-"
_ID_CHARS = 4
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


class WorkDraft(msgspec.Struct, frozen=True):
    title: str
    description: str = ""
    priority: int = 2
    depends_on: tuple[str, ...] = ()
    request_id: str = ""


class WorkItemUpdate(msgspec.Struct, frozen=True):
    """A change of a work item; None keeps the value."""

    status: WorkStatus | None = None
    reason: str = ""
    priority: int | None = None
    is_forced: bool = False
    """A person changes it, whoever works on it."""


def add(
    board: Board,
    draft: WorkDraft,
    by: str,
    done_ids: frozenset[str],
    *,
    caller: str = "",
    salt: str = "",
) -> tuple[ProjectChange | None, WorkItem] | WorkRefused | UnknownWork:
    """Plan a new item; the same one again within a minute is the one that is there.

    `done_ids` are those of what it depends on that are done. `caller` is whose request ids count;
    `salt` makes its id another one, if that was taken by one that is done.
    """
    if is_blank(draft.title) or len(draft.title) > TITLE_CHARS_MAX:
        return WorkRefused(f"A title has 1 to {TITLE_CHARS_MAX} characters", "Shorten it.")
    if len(draft.description) > DESCRIPTION_CHARS_MAX:
        reason = f"A description has no more than {DESCRIPTION_CHARS_MAX} characters"
        return WorkRefused(reason, "Write a note, and name it here.")
    if not 0 <= draft.priority <= PRIORITY_MAX:
        return WorkRefused("A priority is 0 (the most urgent) to 4", "2 is usual.")
    for name in draft.depends_on:
        if name not in board.work and name not in done_ids:
            return UnknownWork(name, similar_items(board, name))
    title = one_line(draft.title)
    named = named_id(caller, draft.request_id) if draft.request_id else ""
    if named in board.work:
        return None, board.work[named].value
    for recorded in board.work.values():
        item = recorded.value
        is_recent = board.now_ms - item.created_ms <= REPEAT_MS
        if item.title == title and is_recent and not named:
            return None, item
    free_ids = (name for name in _ids(f"{title}\0{salt}") if name not in board.work)
    item = WorkItem(
        named or next(free_ids),
        title,
        created_ms=board.now_ms,
        updated_ms=board.now_ms,
        priority=draft.priority,
        description=draft.description,
        depends_on=tuple(dict.fromkeys(draft.depends_on)),
    )
    is_free = (board.row_condition(WORK, item.id), RowCondition(DONE_WORK, item.id, 0))
    return ProjectChange((WorkItemChanged(item, "added", by),), is_free), item


def named_id(caller: str, request_id: str) -> str:
    """The id of the item that a call of somebody with this name adds."""
    names = _ids(f"{caller}\0{request_id}")
    return next(name for name in names if len(name) >= len(ID_PREFIX) + _ID_CHARS * 2)


def update(
    board: Board, item_id: str, change: WorkItemUpdate, by: Identity | None
) -> ProjectChange | UnknownWork | WorkHeld | WorkRefused | None:
    """Plan to change an item; None if nothing changes. Only its owner changes what is claimed."""
    recorded = board.work.get(item_id)
    if recorded is None:
        return UnknownWork(item_id, similar_items(board, item_id))
    item = recorded.value
    owner = item.assignee if item.status == "in_progress" else ""
    is_others = owner in board.identities and (by is None or owner != by.id)
    if is_others and not change.is_forced:
        return WorkHeld(item_id, owner, board.display(owner), board.now_ms - item.claimed_ms)
    if change.priority is not None and not 0 <= change.priority <= PRIORITY_MAX:
        return WorkRefused("A priority is 0 (the most urgent) to 4", "2 is usual.")
    status = change.status or item.status
    is_owned = status in ("in_progress", "done")
    if status == "in_progress" and item.status != "in_progress":
        return WorkRefused(f"`{item_id}` is in progress once somebody claims it", "Claim it.")
    changed = msgspec.structs.replace(
        item,
        status=status,
        reason=one_line(change.reason)[:REASON_CHARS_MAX] or item.reason,
        priority=item.priority if change.priority is None else change.priority,
        assignee=item.assignee if is_owned else "",
        claimed_ms=item.claimed_ms if is_owned else 0,
    )
    if changed == item:
        return None
    changed = msgspec.structs.replace(changed, updated_ms=board.now_ms)
    cause = "done" if status == "done" else "changed"
    fence = (board.fence(by.id),) if by else ()
    event = WorkItemChanged(changed, cause, by.id if by else "")
    return ProjectChange((event,), (board.row_condition(WORK, item_id), *fence))


def _ids(seed: str) -> Iterator[str]:
    """Short names for an item; longer ones where those are taken."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest())
    letters = ""
    while True:
        number, index = divmod(number, len(_LETTERS))
        letters += _LETTERS[index]
        if len(letters) >= _ID_CHARS:
            yield f"{ID_PREFIX}{letters}"
