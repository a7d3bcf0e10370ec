"""Whatever a team does, in whatever order: what must never be, and rows as entries add up to."""

import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.context import Attention
from interlock.app.coordination.attention import attend_to
from interlock.app.coordination.holdings import (
    ReserveRequest,
    add_work,
    claim_work,
    release_paths,
    reserve_paths,
    update_work,
)
from interlock.app.coordination.mail import acknowledge_messages, read_inbox, send_message
from interlock.app.coordination.participants import end_participation, register
from interlock.app.coordination.project_desk import ProjectDesk, read_board
from interlock.app.coordination.takeovers import TakeoverWish, clean_up_orphans, take_over
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.path_patterns import overlap
from interlock.core.coordination.records import (
    ACKNOWLEDGED,
    DONE_WORK,
    ENDED_IDENTITY,
    IDENTITY,
    MAILBOX,
    RESERVATION,
    WORK,
    IdentityChanged,
    Message,
    PathsReserved,
    decode_entry,
    row_changes,
)
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.core.ids import ProjectId, SessionId
from interlock.core.refusal import Refusal
from tests.app.coordination.team import Team, who
from tests.effort import scale
from tests.scenes import random_session

NAMES = ("Ana", "Bo", "Cy")
PATHS = ("src/**", "src/a.py", "docs/*.md", "docs/{a,b}.md", "**/x.py")
MINUTES = (1, 5, 11, 16, 31, 61)
ACTS = (
    *("register", "track", "reserve", "reserve", "proceed", "share", "release", "add", "claim"),
    *("claim", "open", "done", "block", "send", "take over", "clean up", "end", "wait", "wait"),
)
MOVES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(ACTS), st.integers(0, 5)),
    min_size=5,
    max_size=30,
)


def act(team: Team, desk: ProjectDesk, name: str, what: str, number: int) -> object:
    app, own = team.app, who(name)
    path = PATHS[number % len(PATHS)]
    items = sorted(read_board(app, desk).work)
    item = items[number % len(items)] if items else "il-none"
    match what:
        case "register" | "track":
            track = ("shop", "docs")[number % 2] if what == "track" else None
            return register(app, desk, who(name, track))
        case "reserve" | "proceed" | "share":
            wish = ReserveRequest((path,), proceeds=what == "proceed", is_shared=what == "share")
            return reserve_paths(app, desk, own, wish)
        case "release":
            return release_paths(app, desk, own, (path,) if number % 2 else ())
        case "add":
            return add_work(app, desk, own, WorkDraft(f"Item {number}"))
        case "claim":
            return claim_work(app, desk, own, item)
        case "open" | "done" | "block":
            status = {"open": "open", "done": "done", "block": "blocked"}[what]
            change = msgspec.convert({"status": status}, WorkItemUpdate)
            return update_work(app, desk, own, item, change)
        case "send":
            to = ("all", "track:shop", *NAMES)[number % 5]
            return send_message(app, desk, own, MessageDraft((to,), f"Number {number}"))
        case "take over":
            ids = sorted(read_board(app, desk).identities) or ["nobody"]
            return take_over(app, desk, own, TakeoverWish(ids[number % len(ids)]))
        case "clean up":
            return clean_up_orphans(app, desk)
        case "end":
            return end_participation(app, SessionId(own.key), team.root, "done")
        case _:
            return team.later(MINUTES[number])


def check(team: Team, desk: ProjectDesk) -> None:
    board = read_board(team.app, desk)
    entries = [decode_entry(one.body) for one in team.app.log.project_entries(desk.project)]
    events = [event for entry in entries for event in entry.events]
    everybody = {one.identity.id for one in events if isinstance(one, IdentityChanged)}
    despite = {
        one.reservation.key: one.reservation.despite
        for one in events
        if isinstance(one, PathsReserved)
    }
    live = board.live_reservations()
    for at, one in enumerate(live):
        for other in live[at + 1 :]:
            is_exclusive = one.is_exclusive or other.is_exclusive
            if one.holder != other.holder and is_exclusive:
                assert (
                    overlap(one.path_set, other.path_set) is None
                    or one.holder in despite[other.key]
                    or other.holder in despite[one.key]
                )
    holders = {one.value.holder for one in board.reservations.values()}
    working = {
        one.value.assignee for one in board.work.values() if one.value.status == "in_progress"
    }
    assert holders | working <= board.identities.keys(), "who has ended holds nothing"
    assert holders | working <= everybody
    assert not board.identities.keys() & board.ended.keys()
    sessions = [one.value.session for one in board.identities.values()]
    assert len(set(sessions)) == len(sessions), "a session has one identity"
    assert board.seen_ms.keys() <= board.identities.keys()


def check_rows(team: Team, desk: ProjectDesk) -> None:
    """Rows are a fold of the entries."""
    folded: dict[tuple[str, str], bytes] = {}
    for entry in team.app.log.project_entries(desk.project):
        for event in decode_entry(entry.body).events:
            for row in row_changes(event):
                folded.pop((row.kind, row.key), None)
                if row.content is not None:
                    folded[row.kind, row.key] = row.content
    log = team.app.log
    mailboxes = [
        kind for prefix in (MAILBOX, ACKNOWLEDGED) for kind in log.row_kinds(desk.project, prefix)
    ]
    kinds = (IDENTITY, ENDED_IDENTITY, RESERVATION, WORK, DONE_WORK, *mailboxes)
    rows = log.project_rows(desk.project, kinds).rows
    assert {(row.kind, row.key): row.content for row in rows} == folded


@settings(max_examples=scale(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_whatever_a_team_does_nobody_has_what_is_anothers(
    team: Team, moves: list[tuple[str, str, int]]
) -> None:
    desk = msgspec.structs.replace(team.desk, project=ProjectId(random_session()))
    team.app.coordination.projects[str(team.root)] = (desk.project, team.root)
    team.app.coordination.recorded_ms.clear()
    for name, what, number in moves:
        outcome = act(team, desk, name, what, number)
        if isinstance(outcome, Refusal):
            said = outcome.explain()
            assert said.error
            assert said.hint
        check(team, desk)
    check_rows(team, desk)


class MailModel:
    """Who must get which message, without any mailboxes and cursors."""

    def __init__(self, team: Team, desk: ProjectDesk) -> None:
        self.team, self.desk = team, desk
        self.processes = [team.process() for _ in range(2)]
        for app in self.processes:
            app.coordination.projects[str(team.root)] = (desk.project, team.root)
            for name in NAMES:
                seen = Attention(desk.project, str(team.root))
                app.coordination.looked_at[SessionId(f"ses_{name}")] = seen
        self.sent: dict[str, Message] = {}
        self.due: set[tuple[str, str]] = set()
        """The messages that wait, and the names of those who must get them."""
        self.delivered: list[tuple[str, str]] = []
        self.acknowledged: set[tuple[str, str]] = set()
        self.has_passed = False

    def send(self, name: str, number: int) -> None:
        board = read_board(self.team.app, self.desk)
        ids = {one: board.identities_of(f"ses_{one}")[-1].id for one in NAMES}
        to = (*ids.values(), *NAMES, "ses_Ana", "all", "track:shop", "all")[number]
        more = ("track:shop",) if number % 3 == 0 else ()
        draft = MessageDraft((to, *more), f"#{len(self.sent)}", needs_answer=number % 2 == 0)
        message = send_message(self.team.app, self.desk, who(name), draft)
        if not isinstance(message, Message):
            return
        self.sent[message.subject] = message
        for other in {*NAMES} - {name}:
            groups = {"all", "track:shop"} if other == "Ana" else {"all"}
            if {other, f"ses_{other}", ids[other], *groups}.intersection(message.to):
                self.due.add((message.subject, other))

    def deliver(self, name: str, number: int) -> int:
        lines = attend_to(self.processes[number % 2], SessionId(f"ses_{name}"))
        found = [match[0] for line in lines if (match := re.search(r"#\d+", line))]
        assert found == sorted(found, key=lambda one: int(one[1:])) or self.has_passed
        assert {(subject, name) for subject in found} <= self.due
        self.delivered += [(subject, name) for subject in found]
        self.due -= {*self.delivered}
        return len(lines)

    def take_over(self, name: str, number: int) -> None:
        board = read_board(self.team.app, self.desk)
        target = (
            sorted(board.identities)[number % len(board.identities)] if board.identities else ""
        )
        other = board.identities[target].value.base if target else ""
        outcome = take_over(self.team.app, self.desk, who(name), TakeoverWish(target))
        if isinstance(outcome, Refusal):
            return
        self.has_passed = True
        waiting = {subject for subject, whose in self.due if whose == other}
        waiting |= {
            subject
            for subject, whose in {*self.delivered} - self.acknowledged
            if whose == other and self.sent[subject].needs_answer
        }
        self.due -= {(subject, other) for subject in waiting}
        sender = {subject for subject in waiting if self.sent[subject].sender.startswith(name)}
        self.due |= {(subject, name) for subject in waiting - sender} - {*self.delivered}

    def acknowledge(self, name: str, number: int) -> None:
        inbox = read_inbox(self.team.app, self.desk, who(name))
        chosen = [one.message for one in inbox if one.message.subject in self.sent][:number]
        assert acknowledge_messages(
            self.team.app, self.desk, who(name), [one.id for one in chosen]
        ) == [*chosen]
        self.acknowledged |= {(one.subject, name) for one in chosen}

    def check(self) -> None:
        """Everybody comes back and calls until nothing is left."""
        for name in NAMES:
            register(self.team.app, self.desk, who(name))
            while self.deliver(name, 0):
                pass
            inbox = [one.message.subject for one in read_inbox(self.team.app, self.desk, who(name))]
            own = {subject for subject, whose in self.delivered if whose == name}
            read = {subject for subject, whose in self.acknowledged if whose == name}
            assert own - read <= {*inbox}
            assert not read.intersection(inbox)
        assert self.due == set()
        assert len({*self.delivered}) == len(self.delivered), "nothing is delivered twice"


MAIL_ACTS = (
    "register",
    "send",
    "send",
    "send",
    "deliver",
    "acknowledge",
    "take over",
    "end",
    "wait",
)


@pytest.mark.invariant("news-told-once")
@settings(max_examples=scale(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    moves=st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(MAIL_ACTS), st.integers(0, 9)),
        min_size=5,
        max_size=60,
    )
)
def test_whatever_a_team_does_each_message_is_delivered_once_and_listed_until_acknowledged(
    team: Team, moves: list[tuple[str, str, int]]
) -> None:
    desk = msgspec.structs.replace(team.desk, project=ProjectId(random_session()))
    team.app.coordination.projects[str(team.root)] = (desk.project, team.root)
    team.app.coordination.recorded_ms.clear()
    model = MailModel(team, desk)
    for name in NAMES:
        register(team.app, desk, who(name, "shop" if name == "Ana" else None))
    for name, what, number in moves:
        match what:
            case "send":
                model.send(name, number)
            case "deliver":
                model.deliver(name, number)
            case "acknowledge":
                model.acknowledge(name, number)
            case "take over":
                model.take_over(name, number)
            case _:
                act(team, desk, name, what, number % len(MINUTES))
    model.check()
    check_rows(team, desk)
