"""A model asks the user: the work waits in the inbox, and the answer is the model's next turn."""

from pathlib import Path

from interlock.app.runs.inbox import list_cards
from interlock.app.runs.waiting import ParkedWork, count_waiting
from interlock.app.unattended import orders
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import MessageAdded, ModelAnswered, ToolEnded
from interlock.core.unattended.order import UnattendedState
from interlock.driver.model_loop import ANSWERED, NOT_ANSWERED
from tests.driver.stage import PLACE, Stage, call, one_step
from tests.scenes import linear

QUESTION = "Postgres or SQLite? I would take SQLite."
ASK = call("ask_user", question=QUESTION)
KILLED_AFTER_QUESTION = """
import os, signal
from interlock.app.unattended.driver_files import DriverJournal
from interlock.driver.__main__ import main
append = DriverJournal.append
def append_and_die(self, session, seq, entry, *, at_ms):
    append(self, session, seq, entry, at_ms=at_ms)
    if getattr(entry, "kind", "") == "question":
        os.kill(os.getpid(), signal.SIGKILL)
DriverJournal.append = append_and_die
raise SystemExit(main())
"""


def asked_work(stage: Stage) -> tuple[SessionId, UnattendedState]:
    session = stage.order(workflow="one", script=one_step(ASK))
    return session, stage.wait_for(session, "parked", "done")


def last_result(stage: Stage, session: SessionId) -> ToolEnded:
    return stage.results(session)[0]


def test_a_question_is_in_the_inbox_and_its_answer_is_the_next_turn(busy_stage: Stage) -> None:
    app = busy_stage.app
    count = count_waiting(app)
    session, state = asked_work(busy_stage)

    assert (state.status, state.reason, state.detail) == ("parked", "question", QUESTION)
    (card,) = [one for one in list_cards(app) if session in one.id]
    assert isinstance(card.content, ParkedWork)
    assert QUESTION in card.question
    assert count_waiting(app) == count + 1

    said = orders.steer_work(app, session, "SQLite, please", place=PLACE)
    assert isinstance(said, UnattendedState)
    state = busy_stage.wait_for(session, "done")

    assert state.outcome == "success"
    assert count_waiting(app) == count
    assert last_result(busy_stage, session).result.text == ANSWERED
    told = [one for one in busy_stage.entries(session) if isinstance(one, MessageAdded)]
    assert [one.text.endswith("says: SQLite, please") for one in told] == [True]
    answers = [one for one in busy_stage.entries(session) if isinstance(one, ModelAnswered)]
    assert len(answers) == 2, "no turn was paid for while it waited"


def test_who_resumes_without_an_answer_lets_the_model_decide(busy_stage: Stage) -> None:
    session, _ = asked_work(busy_stage)

    assert isinstance(
        orders.control_work(busy_stage.app, session, "resume", place=PLACE), UnattendedState
    )
    busy_stage.wait_for(session, "done")

    assert last_result(busy_stage, session).result.text == NOT_ANSWERED


def test_a_driver_that_dies_with_a_question_asks_it_and_takes_nothing_for_an_answer(
    tmp_path: Path,
) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        session = stage.order(workflow="one", script=one_step(ASK))
        died = stage.start_driver("-c", KILLED_AFTER_QUESTION)
        stage.wait_until(lambda: not died.is_running, "the driver's end")
        assert stage.state(session).status == "working"

        stage.start_driver()

        state = stage.wait_for(session, "parked", "done")
        assert (state.status, state.detail) == ("parked", QUESTION)
        assert stage.results(session) == []
