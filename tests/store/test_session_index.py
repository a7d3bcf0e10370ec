"""How sessions and runs are found, whatever holds them."""

import pytest

from interlock.core.ids import NodeId, SessionId
from interlock.core.session.events import SessionCreated
from interlock.core.session.plan import EventDraft, Stream
from interlock.core.session.plan import plan as plan_events
from interlock.core.views.resume_ranking import ResumeRow
from interlock.core.views.status import Status
from interlock.store.log import Log
from interlock.store.records import RunSearch
from tests.scenes import RUN, SESSION, after, noting, opening, random_session, run_in
from tests.store.session_plans import titled
from tests.store.test_log_contract import started


def test_runs_are_listed_newest_first(log: Log) -> None:
    older, newer = random_session(), random_session()
    started(log, newer)
    plan = started(log, older)
    log.append(noting(after(opening(newer)), "found it"))

    rows = log.newest_runs(limit=10)

    assert [row.session for row in rows] == [newer, older]
    assert rows[0] == ResumeRow(
        newer,
        "Try it",
        "line",
        Status("running", "The agent's next step is the pending step."),
        "",
        0,
        0,
        3,
        "found it",
        "/work",
        updated_ms=2_000,
        run=run_in(newer),
        tip=NodeId(""),
        git_branch=None,
        git_head=None,
        is_archived=False,
    )
    assert log.newest_runs(limit=1) == rows[:1]
    assert plan.session == older


def test_sessions_without_runs_hide_no_run(log: Log) -> None:
    plan = started(log, random_session())
    for _ in range(3):
        session = random_session()
        created = EventDraft(f"session:{session}", SessionCreated("/work"))
        log.append(plan_events(Stream(session), (created,), blobs={}, at_ms=9_000))

    assert [row.session for row in log.newest_runs(limit=2)] == [plan.session]


def test_sessions_are_found_by_the_start_of_their_id(log: Log) -> None:
    names = [SessionId(f"ses_{name}") for name in ("aa11", "aa22", "bb33")]
    for name in names:
        started(log, name)

    assert log.find_session("ses_aa") == names[:2]
    assert log.find_session("ses_bb33") == names[2:]
    assert log.find_session("ses_%") == []


def test_sessions_are_found_by_their_words_in_any_script(log: Log) -> None:
    sessions = [random_session() for _ in range(3)]
    texts = [("Mend the parser", "a loop"), ("Разбор ошибок", "цикл"), ("修复 解析器", "循环")]
    for session, (title, notes) in zip(sessions, texts, strict=True):
        log.append(titled(session, title, notes))

    def found(*words: str, all_of: bool = True) -> list[SessionId]:
        return [row.session for row in log.find_runs(RunSearch(words, all_of), limit=9)]

    assert found("parser", "loop") == [sessions[0]]
    assert found("pars") == [sessions[0]]
    assert found("разбор") == [sessions[1]]
    assert found("修复") == [sessions[2]]
    assert found("parser", "цикл") == []
    assert set(found("parser", "цикл", all_of=False)) == set(sessions[:2])


@pytest.mark.parametrize("word", ['"', "a OR b", "NEAR(", "*", "title:x", "-", "^", "'; DROP"])
def test_what_is_typed_is_never_query_syntax(log: Log, word: str) -> None:
    log.append(titled(SESSION, "Mend the parser", "a loop"))

    assert log.find_runs(RunSearch((word,)), limit=9) == []


def test_changed_notes_are_found_by_their_new_words_only(log: Log) -> None:
    first = titled(SESSION, "Mend", "apples")
    log.append(first)
    log.append(noting(after(first), "pears"))

    assert log.find_runs(RunSearch(("apples",)), limit=9) == []
    assert [row.session for row in log.find_runs(RunSearch(("pears",)), limit=9)] == [SESSION]


def test_sessions_are_found_by_branch_and_commit(log: Log) -> None:
    log.append(titled(SESSION, "Mend", "x"))

    for search in (RunSearch(git_branch="main"), RunSearch(git_head="c0ffee")):
        assert [row.session for row in log.find_runs(search, limit=9)] == [SESSION]
    elsewhere = (RunSearch(git_branch="other"), RunSearch(git_head="other"))
    assert log.find_runs(*elsewhere, limit=9) == []


def test_runs_are_found_by_the_start_of_their_id(log: Log) -> None:
    started(log)

    assert (log.find_run(RUN[:8]), log.find_run("run_none")) == ([(RUN, SESSION)], [])
