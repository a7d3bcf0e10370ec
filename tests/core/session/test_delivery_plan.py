"""What of a result is delivered, what is left out and why, and what is in the way."""

from typing import Any

import msgspec
import pytest

from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.delivery_plan import (
    CommitFacts,
    PlannedDelivery,
    ending_of,
    objection_to,
    plan_deliveries,
)
from interlock.core.unattended.delivery import DeliveryRecord
from interlock.core.unattended.handed_work import HandedWork
from interlock.core.unattended.order import DeliveryWish, Limits, UnattendedOrder, UnattendedState
from tests.core.unattended.test_handed_work import HANDOFF

SESSION = SessionId("ses_0000000000000001")
BASE, COMMIT, OTHER = "b" * 40, "c" * 40, "d" * 40
ALL = DeliveryWish(("push", "request", "comment"), "ours", "group/name")
NAMED = HandedWork().with_output("notes", [HANDOFF])
FACTS = CommitFacts(COMMIT, parents=(BASE,), files=("a.py",))


def plan_for(
    wish: DeliveryWish | None, handed: HandedWork = NAMED, **changes: Any
) -> tuple[PlannedDelivery, ...]:
    commit, is_read_only = changes.get("commit", COMMIT), changes.get("is_read_only", False)
    order = UnattendedOrder(
        WorkflowId("line"),
        "Fix it",
        "/work",
        "here",
        base=BASE,
        is_read_only=is_read_only,
        delivery=wish,
    )
    state = UnattendedState(order, Limits(), "done", 1, 2, branch="interlock/x/work", commit=commit)
    return plan_deliveries(SESSION, state, handed)


def test_work_that_goes_nowhere_has_no_delivery() -> None:
    assert plan_for(None) == ()


def test_a_request_needs_a_push_and_is_said_in_all_its_words() -> None:
    (plan,) = plan_for(DeliveryWish(("request",), "ours", "group/name"))

    assert [part for part in ("push", "request", "comment") if plan.wants(part)] == [
        "push",
        "request",
    ]
    assert (plan.title, plan.files, plan.skipped) == ("Fix it", ("a.py",), {})
    assert msgspec.convert(msgspec.to_builtins(plan), PlannedDelivery) == plan


NO_HANDOFF = "no `coding_handoff` was submitted that names the files"
NOTHING = "there is no request to comment on"


@pytest.mark.parametrize(
    ("wish", "handed", "changes", "skipped"),
    [
        (ALL, HandedWork(), {}, {"push": NO_HANDOFF, "request": NO_HANDOFF, "comment": NOTHING}),
        (DeliveryWish(("push",)), HandedWork(), {}, {"push": NO_HANDOFF}),
        (DeliveryWish(("comment",), "ours", "g/n", 7), HandedWork(), {}, {}),
        (DeliveryWish(("comment",), "ours", "g/n"), NAMED, {}, {"comment": NOTHING}),
        (
            DeliveryWish(("push",)),
            NAMED,
            {"commit": BASE},
            {"push": "no file that was named has changed"},
        ),
        (
            DeliveryWish(("push", "comment"), "ours", "g/n", 7),
            NAMED,
            {"is_read_only": True},
            {"push": "it was work that only reads"},
        ),
    ],
)
def test_a_part_for_which_there_is_nothing_is_skipped_and_says_why(
    wish: DeliveryWish, handed: HandedWork, changes: dict[str, Any], skipped: dict[str, str]
) -> None:
    (plan,) = plan_for(wish, handed, **changes)

    assert plan.skipped == skipped


@pytest.mark.parametrize(
    ("changes", "objection"),
    [
        ({}, ""),
        ({"branch_commit": OTHER}, "HEAD is not cccccccccccc"),
        ({"branch_commit": ""}, "it is gone"),
        ({"is_genuine": False}, "leads to another repository"),
        ({"parents": (OTHER,)}, "is not one commit after bbbbbbbbbbbb"),
        ({"parents": (BASE, OTHER)}, "is not one commit after"),
        ({"files": ("a.py", "b.py")}, "files that the hand-off does not name: b.py"),
        ({"filtered": ("a.py",)}, "files that need one: a.py"),
        ({"secrets": ("a.py:3 (API key)",)}, "secrets in it: a.py:3 (API key). If that is"),
        ({"is_scanned": False}, "too much in it to look for secrets. If that is"),
    ],
)
def test_a_commit_that_is_not_what_was_agreed_is_not_pushed(
    changes: dict[str, Any], objection: str
) -> None:
    (plan,) = plan_for(ALL)
    facts = msgspec.structs.replace(FACTS, **changes)

    found = objection_to(plan, facts, accepts_secrets=False, session=SESSION)
    despite = objection_to(plan, facts, accepts_secrets=True, session=SESSION)

    assert objection in found
    assert bool(found) == bool(objection)
    assert despite == ("" if "secrets" in objection else found), "only secrets can be accepted"


def test_what_was_never_committed_is_not_pushed() -> None:
    (plan,) = plan_for(ALL, commit="")

    objection = objection_to(plan, CommitFacts(""), accepts_secrets=False, session=SESSION)

    assert objection == "what was changed is not committed"


DONE, SKIPPED = DeliveryRecord("push", "done"), DeliveryRecord("comment", "skipped", "closed")
CHECKED = DeliveryRecord("check", "done")


@pytest.mark.parametrize(
    ("records", "ending"),
    [
        ([CHECKED, DONE], ("delivered", "")),
        ([CHECKED, SKIPPED, DONE], ("delivered", "comment: closed")),
        ([CHECKED, SKIPPED], ("skipped", "comment: closed")),
        (
            [CHECKED, DONE, DeliveryRecord("request", "refused", "no", repository="web")],
            ("refused", "request of web: no"),
        ),
    ],
)
def test_a_delivery_ends_as_its_parts_did(
    records: list[DeliveryRecord], ending: tuple[str, str]
) -> None:
    assert ending_of(records) == ending
