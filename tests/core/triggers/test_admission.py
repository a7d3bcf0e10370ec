"""Which occasions start work, which work that is, and which are the same."""

from typing import Any

import msgspec
import pytest

from interlock.core.ids import triggered_session_id
from interlock.core.triggers.admission import (
    AdmittedWork,
    IgnoredOccasion,
    admit_event,
    admit_message,
    admit_time,
)
from interlock.core.triggers.forge_event import ForgeEvent
from interlock.core.triggers.trigger import Trigger
from interlock.core.unattended.order import DeliveryWish, ForgeSubject
from tests.core.triggers.test_trigger import NIGHTLY, REVIEW

URL = "https://gitlab.example.org"
OPENED = ForgeEvent(
    kind="request",
    action="opened",
    repository="group/name",
    number=7,
    is_open=True,
    author="ana",
    sender="ana",
    labels=("backend",),
    assignees=("bo",),
    head="c" * 40,
    title="Add a cache",
    url=f"{URL}/group/name/-/merge_requests/7",
    is_draft=False,
    changes_code=True,
    is_fork=False,
    target="release/2",
)


def admit(event: ForgeEvent = OPENED, **changed: Any) -> AdmittedWork | IgnoredOccasion:
    trigger = msgspec.convert({**REVIEW, **changed}, Trigger)
    return admit_event(trigger, event, {"user": {"name": "Ana"}}, forge_url=URL)


def altered(**changes: Any) -> ForgeEvent:
    return msgspec.structs.replace(OPENED, **changes)


def test_a_request_that_counts_starts_work_about_its_commit() -> None:
    goal = "Review !{{ event.number }} for {{ event.target }}"
    assert admit(quote="{{ user.name }}: {{ event.title }}", goal=goal) == AdmittedWork(
        identity=(URL, "group/name", "request", "7", "c" * 40, "code-review"),
        goal="Review !7 for release/2",
        quoted="Ana: Add a cache",
        subject=ForgeSubject("work", "group/name", 7, "request", OPENED.url),
        base="c" * 40,
        fetch="refs/merge-requests/7/head",
        target="release/2",
        delivery=DeliveryWish(("comment",), "work", "group/name", 7, "release/2"),
    )


@pytest.mark.parametrize(
    ("target", "ref"), [({}, "HEAD"), ({"target": "release/2"}, "refs/heads/release/2")]
)
def test_work_that_no_request_asked_for_starts_from_the_branch_on_the_remote(
    target: dict[str, str], ref: str
) -> None:
    issue = admit(altered(kind="issue", action="opened", target=""), events=["issue"], **target)
    nightly = msgspec.convert({**NIGHTLY, **target}, Trigger)
    works = (
        issue,
        admit_time(nightly, place="p/nightly", at_ms=1),
        admit_message(nightly, {}, place="p/nightly", message_id="1"),
    )

    for work in works:
        assert isinstance(work, AdmittedWork), work
        assert (work.base, work.fetch, work.target) == ("", ref, target.get("target", ""))


@pytest.mark.parametrize(
    ("event", "changed", "reason"),
    [
        (altered(repository="group/other"), {}, "it is about `group/other`"),
        (altered(kind="issue"), {}, "it is about an issue"),
        (altered(kind="push"), {}, "it is about a push"),
        (altered(is_open=False, action="merged"), {}, "the request is merged"),
        (altered(action="labeled", changes_code=False), {}, "`labeled` brings nothing new"),
        (altered(action="updated"), {"actions": ["opened"]}, "`updated` brings nothing new"),
        (altered(is_draft=True), {}, "it is a draft"),
        (altered(is_fork=True), {}, "it comes from another repository"),
        (altered(author="mallory"), {}, "`mallory` is not among `authors`"),
        (altered(author=""), {}, "whom nobody names"),
        (OPENED, {"labels": ["frontend"]}, "none of the `labels`"),
        (OPENED, {"assignees": ["ana"]}, "none of the `assignees`"),
        (altered(head=""), {}, "it names no commit"),
        (altered(target="--upload-pack=x"), {}, "its target is not the name of a branch"),
        (OPENED, {"goal": "{{ event.nothing }}"}, "no value at `event.nothing`"),
        (altered(title=" "), {"goal": "{{ event.title }}"}, "the goal would be empty"),
    ],
)
def test_what_does_not_count_is_ignored_with_the_reason(
    event: ForgeEvent, changed: dict[str, Any], reason: str
) -> None:
    decision = admit(event, **changed)

    assert isinstance(decision, IgnoredOccasion)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (altered(author="mallory"), {"authors": ["*"]}),
        (altered(is_draft=True), {"drafts": True}),
        (altered(is_fork=True), {"forks": True}),
        (altered(action="labeled", changes_code=False), {"labels": ["backend"]}),
        (altered(repository="Group/Name"), {}),
        (altered(kind="issue", action="opened"), {"events": ["issue"]}),
    ],
)
def test_what_is_allowed_counts(event: ForgeEvent, changed: dict[str, Any]) -> None:
    assert isinstance(admit(event, **changed), AdmittedWork)


def identity(decision: AdmittedWork | IgnoredOccasion) -> str:
    assert isinstance(decision, AdmittedWork), decision
    return triggered_session_id(decision.identity)


def test_the_same_commit_is_the_same_work_whoever_tells_of_it() -> None:
    opened = identity(admit())

    assert identity(admit(altered(action="updated", title="Renamed"))) == opened
    assert identity(admit(source="gitlab-poll", goal="Look at {{ event.number }}")) == opened
    assert identity(admit(altered(repository="Group/Name"))) == opened
    again = admit_event(msgspec.convert(REVIEW, Trigger), OPENED, {}, forge_url=f"{URL.upper()}/")
    assert identity(again) == opened
    assert identity(admit(altered(head="d" * 40))) != opened
    assert identity(admit(altered(number=8))) != opened
    assert identity(admit(workflow="hello")) != opened


def test_messages_and_times_are_named_by_their_senders_and_the_clock() -> None:
    nightly = msgspec.convert(NIGHTLY, Trigger)
    any_program = msgspec.convert({**REVIEW, "source": "webhook", "goal": "{{ what }}"}, Trigger)

    def message(name: str) -> AdmittedWork | IgnoredOccasion:
        return admit_message(any_program, {"what": "Look"}, place="p/t", message_id=name)

    assert identity(message("m1")) == identity(message("m1")) != identity(message("m2"))
    first = admit_time(nightly, place="p/t", at_ms=1)
    assert first.goal == NIGHTLY["goal"]
    assert first.identity != admit_time(nightly, place="p/t", at_ms=2).identity
    assert first.identity != admit_time(nightly, place="q/t", at_ms=1).identity
