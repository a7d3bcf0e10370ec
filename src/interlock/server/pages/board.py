"""Board: who works on each project, who holds what, where two of them meet, and what they write."""

import hashlib
from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec
from starlette.routing import Route

from interlock.app.context import App
from interlock.app.coordination import holdings, mail
from interlock.app.coordination.boards import ProjectBoard, find_board, list_boards
from interlock.app.runs.board_agents import BoardAgent, list_agents
from interlock.core.coordination.board import Board
from interlock.core.coordination.conflicts import (
    ReservationOverlap,
    SharedTrack,
    reservation_overlaps,
    shared_tracks,
)
from interlock.core.coordination.holdings import open_dependencies, ready_items
from interlock.core.coordination.messages import BODY_CHARS_MAX, SUBJECT_CHARS_MAX, MessageDraft
from interlock.core.coordination.records import (
    EVERYBODY,
    INTERLOCK,
    OVERSEER,
    TRACK_MAILBOX,
    Message,
    WorkItem,
)
from interlock.core.coordination.refusals import MessageRefused, UnknownProject
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.server.console import Console, Page, PageRedirect, PageRequest
from interlock.server.pages.session_place import INBOX

BOARD = "/board"
PROJECTS_MAX, AGENTS_MAX, ITEMS_MAX, MESSAGES_MAX = 20, 100, 50, 30
THREAD_SEARCHED_MAX = 1_000
KEY_CHARS = 8


class WorkRow(msgspec.Struct, frozen=True):
    item: WorkItem
    word: str
    holder: str
    """The name of who works on it."""
    waits_for: tuple[str, ...]


class MessageRow(msgspec.Struct, frozen=True):
    message: Message
    sender: str
    recipients: tuple[str, ...]
    is_waiting: bool
    """Whether it is for the person, who has not acknowledged it."""
    reply: str
    """The address at which the person answers; empty where nobody would read it."""
    thread: str
    """The address of its thread; empty if it has none."""


class Compose(msgspec.Struct, frozen=True):
    """A message of the person, as far as it is written."""

    project: str = ""
    to: str = ""
    thread: str = ""
    subject: str = ""
    body: str = ""
    why: str = ""
    """The reason why it was not sent."""


class BoardSection(msgspec.Struct, frozen=True):
    """A project on the page."""

    at: ProjectBoard
    key: str
    """Tells its ids on the page from those of others."""
    agents: list[BoardAgent]
    overlaps: list[ReservationOverlap]
    tracks: list[SharedTrack]
    work: list[WorkRow]
    messages: list[MessageRow]
    recipients: list[tuple[str, str]]
    """Whom the person can write to, and how they are called."""


def routes(console: Console) -> list[Route]:
    return [
        console.page(BOARD, board),
        console.action(f"{BOARD}/messages", send),
        console.action(f"{BOARD}/acknowledge", acknowledge),
        console.action(f"{BOARD}/release", release),
    ]


def board_address(project: str = "", **more: str) -> str:
    query = {name: value for name, value in {"project": project, **more}.items() if value}
    return f"{BOARD}?{urlencode(query)}" if query else BOARD


def board(request: PageRequest) -> Page | Explanation:
    names = ("project", "to", "thread")
    return _board_page(request, Compose(*(request.query.get(name, "") for name in names)))


def send(request: PageRequest) -> PageRedirect | Page | Explanation:
    found = find_board(request.app, request.word("project"))
    if isinstance(found, UnknownProject):
        return found.explain()
    names = ("project", "to", "thread", "subject", "body")
    compose = Compose(*(request.word(name) for name in names))
    draft = MessageDraft(
        (compose.to,),
        compose.subject,
        compose.body.strip(),
        compose.thread,
        needs_answer=request.word("needs_answer") == "yes",
    )
    outcome = mail.send_as_overseer(request.app, found.desk, draft)
    if isinstance(outcome, MessageRefused):
        compose = msgspec.structs.replace(compose, why=f"{outcome.reason}. Nothing was sent.")
        return _board_page(request, compose, status=400)
    address = board_address(compose.project if compose.thread else "", thread=compose.thread)
    return PageRedirect(address, "message_sent", f"messages-{section_key(compose.project)}")


def acknowledge(request: PageRequest) -> PageRedirect | Explanation:
    found = find_board(request.app, request.word("project"))
    if isinstance(found, UnknownProject):
        return found.explain()
    outcome = mail.acknowledge_messages(request.app, found.desk, None, (request.word("message"),))
    return outcome.explain() if isinstance(outcome, Refusal) else _back(request, "acknowledged")


def release(request: PageRequest) -> PageRedirect | Explanation:
    found = find_board(request.app, request.word("project"))
    if isinstance(found, UnknownProject):
        return found.explain()
    pattern = request.word("pattern")
    outcome = holdings.release_as_overseer(
        request.app, found.desk, request.word("identity"), (pattern,) if pattern else ()
    )
    return outcome.explain() if isinstance(outcome, Refusal) else _back(request, "paths_released")


def section_key(project: str) -> str:
    return hashlib.sha256(project.encode()).hexdigest()[:KEY_CHARS]


def _back(request: PageRequest, message_key: str) -> PageRedirect:
    """To the page whose form it was: what is answered on one is gone from the other."""
    if request.word("view") == INBOX.strip("/"):
        return PageRedirect(INBOX, message_key)
    return PageRedirect(
        board_address(request.word("only"), thread=request.word("thread")), message_key
    )


def _board_page(request: PageRequest, compose: Compose, *, status: int = 200) -> Page | Explanation:
    boards = list_boards(request.app)
    only = request.query.get("project", "")
    chosen = [one for one in boards if one.desk.project == only] if only else boards
    if only and not chosen:
        return UnknownProject(only).explain()
    chosen.sort(key=lambda one: not _overlaps(one))
    facts = {
        "sections": [_section(request.app, one, compose) for one in chosen[:PROJECTS_MAX]],
        "more_projects": chosen[PROJECTS_MAX:],
        "address": board_address,
        "only": only,
        "compose": compose,
        "thread": compose.thread if only else "",
        "agents_max": AGENTS_MAX,
        "items_max": ITEMS_MAX,
        "subject_max": SUBJECT_CHARS_MAX,
        "body_max": BODY_CHARS_MAX,
    }
    # What came of a form is not asked for again by itself: it would be another request.
    live = None if compose.why else ""
    return Page("board.html", "Board", facts, live=live, status=status)


def _section(app: App, at: ProjectBoard, compose: Compose) -> BoardSection:
    project, shown = at.desk.project, at.board
    thread = compose.thread if compose.project == project else ""
    limit = THREAD_SEARCHED_MAX if thread else MESSAGES_MAX
    recent = mail.recent_messages(app, at.desk, limit=limit)
    messages = [one for one in recent if not thread or thread in (one.thread, one.id)]
    waiting = {one.message.id for one in mail.read_inbox(app, at.desk, None)}
    agents = list_agents(app, shown)
    return BoardSection(
        at,
        section_key(project),
        agents,
        _overlaps(at),
        shared_tracks(shown),
        _work_rows(shown),
        [_message_row(project, shown, one, waiting) for one in messages[:MESSAGES_MAX]],
        _recipients(agents, compose.to if compose.project == project else ""),
    )


def _overlaps(at: ProjectBoard) -> list[ReservationOverlap]:
    return reservation_overlaps(at.board, folds_case=at.desk.path_rules.folds_case)


def _work_rows(board: Board) -> list[WorkRow]:
    """The items: first those that can be begun, then what somebody does, then what waits."""
    ready = ready_items(board)
    names = {item.id for item in ready}
    others = sorted(
        (one.value for one in board.work.values() if one.value.id not in names),
        key=lambda item: (item.status != "in_progress", item.priority, item.created_ms),
    )
    rows = [WorkRow(item, "ready", "", ()) for item in ready]
    for item in others:
        word = {"in_progress": "claimed", "open": "waits"}.get(item.status, item.status)
        holder = board.display(item.assignee) if item.assignee else ""
        rows.append(WorkRow(item, word, holder, open_dependencies(board, item)))
    return rows


def _message_row(project: str, board: Board, message: Message, waiting: set[str]) -> MessageRow:
    is_answerable = message.sender not in (OVERSEER, INTERLOCK)
    thread = message.thread or message.id
    return MessageRow(
        message,
        {OVERSEER: "you", INTERLOCK: "Interlock"}.get(message.sender)
        or board.display(message.sender),
        tuple(_recipient_name(board, name) for name in message.to),
        message.id in waiting,
        board_address(project, thread=thread, to=message.sender) if is_answerable else "",
        board_address(project, thread=message.thread) if message.thread else "",
    )


def _recipient_name(board: Board, name: str) -> str:
    if name in (EVERYBODY, OVERSEER):
        return "everybody" if name == EVERYBODY else "you"
    if name.startswith(TRACK_MAILBOX):
        return f"track {name.removeprefix(TRACK_MAILBOX)}"
    last = board.last_identity_of(name)
    return board.display(last.id if last else name)


def _recipients(agents: Sequence[BoardAgent], to: str) -> list[tuple[str, str]]:
    tracks = sorted({one.identity.track for one in agents if one.identity.track.strip()})
    found = [
        (EVERYBODY, "Everybody"),
        *((one.identity.id, one.display) for one in agents),
        *((f"{TRACK_MAILBOX}{track}", f"Track {track}") for track in tracks),
    ]
    is_listed = not to or to in (name for name, _ in found)
    return found if is_listed else [*found, (to, to)]
