"""Those who are silent: taken over, waited for, ignored, saved; and what is left to them."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from interlock.app.context import CoordinationCache, open_app
from interlock.app.coordination.attention import attend_to, beat
from interlock.app.coordination.holdings import (
    ReservedPaths,
    ReserveRequest,
    add_work,
    claim_work,
    find_work,
    release_paths,
    reserve_paths,
    update_work,
)
from interlock.app.coordination.mail import acknowledge_messages, read_inbox, send_message
from interlock.app.coordination.participants import register
from interlock.app.coordination.preflight import PreflightRequest, look_around, run_preflight
from interlock.app.coordination.takeovers import TakenOverIdentity, TakeoverWish, take_over
from interlock.core.coordination.messages import MessageDraft
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.records import SEEN, Identity, Message, WorkItem
from interlock.core.coordination.refusals import IdentityLost, SnapshotFailed, StillThere
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.core.ids import SessionId
from interlock.core.project_stream import ProjectPlan
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.store.log import Log
from interlock.workspace.machine import clients, processes, spool
from interlock.workspace.machine.spool import JournalLine
from tests.app.callers.conversations import begun
from tests.app.coordination.team import Team, expect, git, who
from tests.mcp.agent import Agent
from tests.scenes import install, linear

DRAFT = MessageDraft(("Bo",), "I am back")
WRITES: dict[str, Callable[[Team, str], object]] = {
    "reserve": lambda t, _: reserve_paths(t.app, t.desk, who("Ana"), ReserveRequest(("lib/**",))),
    "renew": lambda t, _: reserve_paths(t.app, t.desk, who("Ana"), ReserveRequest(("src/**",))),
    "release": lambda t, _: release_paths(t.app, t.desk, who("Ana"), ()),
    "claim": lambda t, item: claim_work(t.app, t.desk, who("Ana"), item),
    "close": lambda t, item: update_work(t.app, t.desk, who("Ana"), item, WorkItemUpdate("done")),
    "add": lambda t, _: add_work(t.app, t.desk, who("Ana"), WorkDraft("More")),
    "send": lambda t, _: send_message(t.app, t.desk, who("Ana"), DRAFT),
    "take over": lambda t, _: take_over(t.app, t.desk, who("Ana"), TakeoverWish("Cy")),
    "register unasked": lambda t, _: register(t.app, t.desk, who("Ana"), is_asked_for=False),
}


def taken_over(team: Team) -> WorkItem:
    """Bo has taken over from Ana, and Cy is silent, too."""
    team.join("Ana")
    team.join("Cy")
    item = team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/**")
    team.later(11)
    team.take_over("Bo", "Ana")
    return item


@pytest.mark.invariant("taken-over-is-fenced")
@pytest.mark.parametrize("write", WRITES)
def test_whatever_the_old_session_writes_is_refused_and_names_the_new_holder(
    team: Team, write: str
) -> None:
    """ST6: every write gets LEASE_LOST."""
    item = taken_over(team)
    end = team.app.reader.project_end(team.desk.project)

    refused = WRITES[write](team, item.id)

    assert isinstance(refused, IdentityLost)
    said = refused.explain()
    assert said.code == "lease_lost"
    assert f"{team.board().display('Bo-1735690260')} has taken over" in said.error
    assert team.app.reader.project_end(team.desk.project) == end


def test_the_old_session_may_read_and_registers_anew_with_a_higher_epoch(team: Team) -> None:
    """ST6: reads still work; it may start a new session."""
    item = taken_over(team)

    inbox = read_inbox(team.app, team.desk, who("Ana"))
    assert [one.message.subject.partition("]")[0] for one in inbox] == ["[TAKEOVER"]
    assert f"Open again: {item.id}" in inbox[0].message.body
    assert look_around(team.app, team.desk, who("Ana"), "").identity is None
    assert expect(WorkItem, find_work(team.app, team.desk, item.id)).status == "open"
    found = run_preflight(team.app, team.desk, who("Ana"), PreflightRequest())
    anew = expect(PreflightReport, found).identity
    assert anew is not None
    assert (anew.id, anew.epoch, anew.files_reserved) == ("Ana-1735690260", 2, ())
    expect(ReservedPaths, WRITES["reserve"](team, item.id))


def test_what_the_old_session_does_leaves_no_sign_of_life(team: Team) -> None:
    """ST6: a heartbeat of the old session does not bring it back; it is told once."""
    session = begun(team.app, team.root, "one")
    ana = team.join(session)
    assert attend_to(team.app, session) == ()
    team.later(11)
    team.take_over("Bo", ana.id)

    assert beat(team.app, session) == 300
    (told,) = attend_to(team.app, session)

    assert "[TAKEOVER]" in told
    assert told.startswith("From Interlock: ")
    rows = team.app.log.project_rows(team.desk.project, (SEEN,)).rows
    assert [row.key for row in rows] == ["Bo-1735690260"]


def test_waiting_mail_goes_along_a_chain_of_takeovers_and_names_its_first_recipient(
    team: Team,
) -> None:
    sessions = [begun(team.app, team.root, name) for name in ("one", "two", "three", "four")]
    ana, bo = (team.join(session) for session in sessions[:2])

    def delivered(session: SessionId) -> dict[str, str]:
        """The lines by their subjects, in their order."""
        app, found = team.process(), list[str]()
        while lines := attend_to(app, session):
            found += lines
        named = [(re.search(r"\bm-\w+", line), line) for line in found]
        assert len({match[0] for match, _ in named if match}) == len(
            [one for one in named if one[0]]
        )
        return {match[0]: line for match, line in named if match}

    for subject in ("m-asked", "m-answered"):
        draft = MessageDraft((ana.id,), subject, needs_answer=True)
        message = expect(Message, send_message(team.app, team.desk, who("Di"), draft))
    team.send("Di", ana.id, "m-read")
    assert [*delivered(sessions[0])] == ["m-asked", "m-answered", "m-read"]
    acknowledge_messages(team.app, team.desk, who(sessions[0]), [message.id])
    waiting = [f"m-{number:02}" for number in range(25)]
    for subject in waiting:
        team.send("Di", ana.id, subject)
    team.send(sessions[1], ana.id, "m-own")
    team.send("Di", "all", "m-all")
    team.later(11)

    team.take_over(sessions[1], ana.id)
    team.send("Di", ana.id, "m-late")
    found = delivered(sessions[1])
    assert [*found] == ["m-all", "m-asked", *waiting]
    assert [name for name, line in found.items() if f"(first to {ana.id}): " not in line] == [
        "m-all"
    ]
    team.later(11)
    team.take_over(sessions[2], bo.id)
    found = delivered(sessions[2])
    assert [*found] == ["m-all", "m-asked"], "the others were delivered and want no answer"
    assert f"(first to {ana.id}): " in found["m-asked"]

    again = team.join(sessions[0])
    assert [*delivered(sessions[0])] == ["m-late"]
    inbox = [one.message.subject for one in read_inbox(team.app, team.desk, who(sessions[0]))]
    assert {*waiting, "m-all", "m-late"} < {*inbox}, "it can still look"
    team.later(11)
    team.take_over(sessions[3], again.id)
    assert [*delivered(sessions[3])] == [], "its mail was passed on before"


def test_an_agent_without_hooks_that_takes_over_at_a_start_gets_the_mail(team: Team) -> None:
    install(team.app, team.root, linear())
    start = {"workflowId": "line", "workspacePath": str(team.root)}
    ana, bo = (Agent(McpProtocol(team.process(), TOOLS)) for _ in range(2))
    first = ana.ok("start_workflow", goal="One", **start)["introduction"]["session"]
    gone = expect(Identity, team.board().identity_of(first))
    for number in range(3):
        team.send("Di", gone.id, f"m-{number}")
    team.later(11)
    takeover = {**start, "goal": "Two", "takeover": gone.id}

    refused = bo.refused("start_workflow", takeover)["details"]["correctCall"]
    assert refused == {"tool": "start_workflow", "params": {**start, "goal": "Two"}}
    own = bo.ok("start_workflow", goal="Mine", **start)["introduction"]["session"]
    begun_after = bo.plain("start_workflow", takeover)["structuredContent"]

    assert begun_after["introduction"]["session"] == own
    # The name of an agent may end in "m", before the hyphen of its id.
    subjects = [re.findall(r"\bm-(\d+)$", line) for line in begun_after["news"]]
    assert subjects == [["0"], ["1"], ["2"]]
    (end,) = [one.value.end for one in team.board().ended.values()]
    assert end is not None
    assert end.by == expect(Identity, team.board().identity_of(own)).id


@pytest.mark.both_stores
def test_a_message_that_comes_during_a_takeover_is_passed_on(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = team.join("Ana")
    team.join("Di")
    team.later(11)
    append, sent = type(team.app.log).append_to_project, list[Message]()

    def append_to_project(log: Log, plan: ProjectPlan) -> bool:
        if not sent:
            with monkeypatch.context() as patch:
                patch.setattr(type(log), "append_to_project", append)
                draft = MessageDraft((ana.id,), "Just now")
                sent.append(expect(Message, send_message(other, team.desk, who("Di"), draft)))
        return append(log, plan)

    with closing(open_app(team.app.home)) as opened:
        other = msgspec.structs.replace(
            opened, clock=team.clock, store_clock=team.clock, coordination=CoordinationCache()
        )
        monkeypatch.setattr(type(team.app.log), "append_to_project", append_to_project)
        team.take_over("Bo", ana.id)

    (found,) = read_inbox(team.app, team.desk, who("Bo"))
    assert (found.message.id, found.message.first_to) == (sent[0].id, (ana.id,))


def test_who_speaks_while_one_waits_is_not_taken_over(team: Team) -> None:
    """ST4: [W] re-checks after 5 min; if the owner spoke meanwhile, nothing is taken."""
    team.join("Ana")
    team.later(11)
    team.join("Bo")
    team.later(5)
    team.send("Ana", "Bo", "[PING] I was thinking")

    refused = take_over(team.app, team.desk, who("Bo"), TakeoverWish("Ana-1735689600"))

    assert isinstance(refused, StillThere)
    assert refused.explain().code == "not_stale"
    assert team.preflight("Bo").questions == ()


@pytest.mark.parametrize("minutes", [15, 40])
def test_who_works_without_a_word_to_us_is_there_if_its_hooks_ran(team: Team, minutes: int) -> None:
    """DE3: whatever is seen of it counts, for its status, for a takeover and for the clean-up."""
    session = begun(team.app, team.root, "one")
    ana = team.join(session)
    team.later(minutes)
    line = JournalLine("1", team.clock.at_ms - 1_000, "claude-code", "pre-tool", "one")
    spool.append_line(team.app.home, line)

    found = team.preflight("Bo")

    assert [(one.id, one.status) for one in found.active_sessions] == [(ana.id, "active")]
    assert (found.questions, found.cleaned_up) == ((), ())
    refused = take_over(team.app, team.desk, who("Bo"), TakeoverWish(ana.id))
    assert isinstance(refused, StillThere)


def test_who_is_ignored_keeps_what_it_holds(team: Team) -> None:
    """ST5: [I] proceeds; the stale session's files and beads stay held."""
    team.join("Ana")
    item = team.add("Write it")
    team.claim("Ana", item.id)
    team.reserve("Ana", "src/**")
    team.later(11)
    request = PreflightRequest(("src/a.py",), (item.id,), ("Ana-1735689600",))

    found = expect(PreflightReport, run_preflight(team.app, team.desk, who("Bo"), request))

    assert (found.questions, len(found.stale_sessions)) == ((), 1)
    board = team.board()
    assert [one.pattern for one in board.live_reservations()] == ["src/**"]
    assert [one.id for one in board.claims_of("Ana-1735689600")] == [item.id]


def test_who_is_silent_but_runs_is_waited_for(team: Team, child: int) -> None:
    """ST8: shown as silent with a process that is alive, and [T] is not the default."""
    session = begun(team.app, team.root, "one")
    team.join(session)
    client = processes.ancestors(child)[0]
    now_ms = team.clock.at_ms
    clients.remember(team.app.home, client, "claude-code", "one", now_ms=now_ms)
    team.later(11)

    found = team.preflight("Bo")

    assert [one.process for one in found.stale_sessions] == ["process alive"]
    (question,) = found.questions
    assert question.default == "wait"
    assert question.prompt.endswith("has been silent for 11 min, but its process is alive")


def test_uncommitted_work_is_saved_before_a_takeover_and_nothing_is_changed(team: Team) -> None:
    """ST7: tracked, staged and new files."""
    team.join("Ana")
    (team.root / "a.py").write_text("changed\n")
    (team.root / "b.py").write_text("staged\n")
    git(team.root, "add", "b.py")
    (team.root / "new.py").write_text("new\n")
    before = git(team.root, "status", "--porcelain"), git(team.root, "ls-files", "--stage")
    head = git(team.root, "rev-parse", "HEAD")
    team.later(11)

    taken = team.take_over("Bo", "Ana")

    assert taken.snapshot == "refs/interlock/taken-over/Ana-1735689600"
    shown = [
        git(team.root, "show", f"{taken.snapshot}:{name}") for name in ("a.py", "b.py", "new.py")
    ]
    assert shown == ["changed\n", "staged\n", "new\n"]
    assert git(team.root, "rev-parse", f"{taken.snapshot}^", "HEAD") == head * 2
    assert before == (
        git(team.root, "status", "--porcelain"),
        git(team.root, "ls-files", "--stage"),
    )
    assert git(team.root, "branch", "--all", "--contains", taken.snapshot) == ""


def test_a_takeover_without_a_snapshot_has_to_be_wanted(team: Team) -> None:
    """ST7: if that fails, takeover needs an explicit second confirmation."""
    team.join("Ana")
    (team.root / "a.py").write_text("changed\n")
    objects = team.root / ".git" / "objects"
    objects.rename(team.root / ".git" / "away")
    team.later(11)

    refused = take_over(team.app, team.desk, who("Bo"), TakeoverWish("Ana-1735689600"))

    assert isinstance(refused, SnapshotFailed)
    assert refused.explain().code == "needs_answer"
    assert [*team.board().identities] == ["Ana-1735689600"]
    wish = TakeoverWish("Ana-1735689600", needs_snapshot=False)
    taken = take_over(team.app, team.desk, who("Bo"), wish)
    assert expect(TakenOverIdentity, taken).snapshot == ""
    assert Path(team.root / "a.py").read_text() == "changed\n"
