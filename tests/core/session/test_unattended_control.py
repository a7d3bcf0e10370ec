"""The states of unattended work: which wishes and reports make sense when."""

from typing import Any

import msgspec
import pytest

from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.announcements import decode_announcement
from interlock.core.session.delivery_control import plan_end, plan_record
from interlock.core.session.events import decode_envelope
from interlock.core.session.plan import Plan, Stream, fold
from interlock.core.session.unattended_control import (
    ControlNotPossible,
    NotUnattended,
    plan_control,
    plan_delivery,
    plan_limits,
    plan_move,
    plan_order,
    plan_steer,
)
from interlock.core.session.unattended_events import Control, UnattendedMoved
from interlock.core.unattended.delivery import DeliveryRecord, DeliveryState
from interlock.core.unattended.order import (
    DeliveryWish,
    Limits,
    LimitsWish,
    Spent,
    UnattendedOrder,
    UnattendedState,
)
from tests.scenes import refusal_code

SESSION = SessionId("ses_0000000000000001")
ORDER = UnattendedOrder(WorkflowId("line"), "See to it", "/work", "here")
WHO: dict[str, Any] = {"who": "Ana, in a test", "at_ms": 9}


def append(stream: Stream, plan: object) -> Stream:
    assert isinstance(plan, Plan), plan
    envelopes = [decode_envelope(link.body) for link in plan.links]
    head, _ = fold(stream, envelopes)
    assert head == plan.head
    return Stream(SESSION, stream.version + len(plan.links), plan.end, head)


def ordered() -> Stream:
    return append(Stream(SESSION), plan_order(SESSION, ORDER, Limits(), who="Ana", at_ms=1))


def moved(stream: Stream, moved_to: UnattendedMoved) -> Stream:
    return append(stream, plan_move(stream, moved_to, at_ms=5))


def state(stream: Stream) -> UnattendedState:
    assert stream.head is not None
    assert stream.head.unattended is not None
    return stream.head.unattended


WORKING = UnattendedMoved("working", Spent())
STREAMS = {
    "queued": ordered(),
    "working": moved(ordered(), WORKING),
    "parked": moved(ordered(), UnattendedMoved("parked", Spent(turns=3), "limit", "10 turns")),
    "paused": moved(ordered(), UnattendedMoved("paused", Spent())),
    "done": moved(ordered(), UnattendedMoved("done", Spent(), outcome="success")),
}


@pytest.mark.parametrize(
    ("before", "control", "status", "wish"),
    [
        ("queued", "pause", "paused", "pause"),
        ("queued", "cancel", "done", "run"),
        ("working", "pause", "working", "pause"),
        ("working", "pause_now", "working", "pause_now"),
        ("working", "cancel", "working", "cancel"),
        ("parked", "resume", "queued", "run"),
        ("parked", "cancel", "done", "run"),
        ("parked", "pause", "paused", "pause"),
        ("paused", "resume", "queued", "run"),
        ("paused", "cancel", "done", "run"),
    ],
)
def test_a_wish_is_followed_at_once_where_nobody_works(
    before: str, control: Control, status: str, wish: str
) -> None:
    stream = STREAMS[before]
    result = append(stream, plan_control(stream, control, **WHO))

    assert (state(result).status, state(result).wish) == (status, wish)
    if status == "done":
        assert state(result).outcome == "cancelled"


@pytest.mark.parametrize(
    ("before", "control"),
    [("queued", "resume"), ("working", "resume"), ("paused", "pause"), ("done", "cancel")],
)
def test_what_is_so_already_is_not_recorded_again(before: str, control: Control) -> None:
    assert plan_control(STREAMS[before], control, **WHO) is None


def test_what_is_over_stays_over() -> None:
    stream = STREAMS["done"]

    for outcome in (
        plan_control(stream, "resume", **WHO),
        plan_steer(stream, "s1", "Hello", **WHO),
        plan_limits(stream, LimitsWish(turns=5), **WHO),
        plan_move(stream, WORKING, at_ms=9),
    ):
        assert refusal_code(outcome) == "unattended_over"


def test_a_session_of_a_person_is_not_controlled() -> None:
    stream = ordered()
    assert stream.head is not None
    attended = msgspec.structs.replace(
        stream, head=msgspec.structs.replace(stream.head, unattended=None)
    )

    assert plan_control(attended, "cancel", **WHO) == NotUnattended(SESSION)


def test_raising_a_limit_lets_go_on_what_it_has_stopped_and_nothing_else() -> None:
    raised = append(STREAMS["parked"], plan_limits(STREAMS["parked"], LimitsWish(turns=500), **WHO))
    paused = append(STREAMS["paused"], plan_limits(STREAMS["paused"], LimitsWish(turns=500), **WHO))

    assert (state(raised).status, state(raised).limits.turns) == ("queued", 500)
    assert state(paused).status == "paused"
    assert plan_limits(raised, LimitsWish(turns=500), **WHO) is None


def test_a_driver_that_comes_too_late_does_not_begin_what_was_paused() -> None:
    assert isinstance(plan_move(STREAMS["paused"], WORKING, at_ms=9), ControlNotPossible)
    assert plan_move(STREAMS["working"], WORKING, at_ms=9) is None, "nothing has changed"


def test_a_notice_about_work_that_goes_on_changes_nothing_but_what_is_said() -> None:
    working = state(STREAMS["working"])
    noticed = plan_move(
        STREAMS["working"], UnattendedMoved("working", Spent(), "stuck", "no call"), at_ms=7
    )

    after = state(append(STREAMS["working"], noticed))

    assert after == msgspec.structs.replace(working, detail="no call")


def test_messages_wait_until_the_driver_says_that_they_were_told() -> None:
    stream = STREAMS["working"]
    for name in ("a", "b"):
        stream = append(stream, plan_steer(stream, name, f"Word {name}", **WHO))
    assert state(stream).steers == ("a", "b")

    told = moved(stream, UnattendedMoved("working", Spent(turns=1), steered=("a",)))

    assert state(told).steers == ("b",)
    too_long = plan_steer(stream, "c", "x" * 4_001, **WHO)
    assert isinstance(too_long, ControlNotPossible)


DONE = UnattendedMoved("done", Spent(), outcome="success", commit="c" * 40)


def delivered_order() -> Stream:
    order = msgspec.structs.replace(ORDER, delivery=DeliveryWish(("push",)))
    return append(Stream(SESSION), plan_order(SESSION, order, Limits(), who="Ana", at_ms=1))


def delivery(stream: Stream) -> DeliveryState:
    found = state(stream).delivery
    assert found is not None
    return found


def test_the_report_that_it_is_done_starts_the_delivery_in_the_same_breath() -> None:
    plan = plan_move(delivered_order(), DONE, at_ms=5)
    assert isinstance(plan, Plan)

    stream = append(delivered_order(), plan)

    topics = [decode_announcement(message.content) for message in plan.outbox]
    assert [one.topic for one in topics] == ["unattended/done", "unattended/deliver"]
    assert topics[1].subject == delivery(stream).job
    assert (state(stream).commit, state(stream).is_undelivered) == ("c" * 40, True)


@pytest.mark.parametrize(
    ("stream", "report"),
    [
        (ordered(), DONE),
        (delivered_order(), UnattendedMoved("done", Spent(), outcome="gave_up")),
        (delivered_order(), WORKING),
    ],
)
def test_nothing_else_does(stream: Stream, report: UnattendedMoved) -> None:
    assert state(moved(stream, report)).delivery is None


def test_what_was_cancelled_meanwhile_is_not_delivered() -> None:
    stream = moved(delivered_order(), WORKING)
    cancel = plan_control(stream, "cancel", who="ana", at_ms=4)
    assert isinstance(cancel, Plan)

    done = moved(append(stream, cancel), DONE)

    assert (state(done).outcome, state(done).delivery) == ("cancelled", None)


def test_parts_and_the_end_are_told_and_only_of_the_newest_delivery() -> None:
    stream = moved(delivered_order(), DONE)
    first, pushed = delivery(stream).job, DeliveryRecord("push", "done", "there", commit="c")
    stream = append(stream, plan_record(stream, first, pushed, at_ms=6))
    assert delivery(stream).records == (pushed,)
    stream = append(stream, plan_end(stream, first, "failed", "no network", at_ms=7))
    assert (delivery(stream).needs_user, state(stream).is_undelivered) == (True, True)

    stream = append(stream, plan_delivery(stream, accepts_secrets=True, **WHO))
    second = delivery(stream).job
    stream = append(stream, plan_end(stream, first, "refused", "late", at_ms=9))

    assert second != first
    assert (delivery(stream).outcome, delivery(stream).records) == (None, ())
    stream = append(stream, plan_end(stream, second, "delivered", "", at_ms=9))
    assert not state(stream).is_undelivered


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (STREAMS["done"], "Its order does not say where the result goes"),
        (delivered_order(), "The work is not over"),
        (
            moved(delivered_order(), UnattendedMoved("done", Spent(), outcome="gave_up")),
            "The work has no result (gave_up)",
        ),
        (moved(delivered_order(), DONE), "It is being delivered now"),
    ],
)
def test_what_cannot_be_delivered_is_refused_with_what_to_do(stream: Stream, why: str) -> None:
    refusal = plan_delivery(stream, accepts_secrets=False, **WHO)

    assert isinstance(refusal, ControlNotPossible)
    assert (refusal.why, bool(refusal.hint)) == (why, True)


def test_a_delivery_of_which_nothing_is_heard_can_be_wanted_again() -> None:
    stream = moved(delivered_order(), DONE)

    late = plan_delivery(stream, accepts_secrets=False, who="Ana", at_ms=11 * 60_000)

    assert isinstance(late, Plan)
