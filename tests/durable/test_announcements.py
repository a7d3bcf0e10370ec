"""Each event of the session protocol has somebody who emits it and somebody who reads it."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from interlock.core.ids import ApprovalId, DelegationId, NodeId, SessionId, StepId
from interlock.core.session.announcements import Topic, decode_announcement, messages_about
from interlock.core.session.approval_events import SessionApprovalRequested, SessionApprovalResolved
from interlock.core.session.delivery_events import DeliveryEnded, DeliveryRequested
from interlock.core.session.events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    SessionEvent,
)
from interlock.core.session.protocol_events import ProtocolEndRequested, SessionCompleted
from interlock.core.session.review_events import FeatureReviewRequested, RequiredReviewer
from interlock.core.session.unattended_events import UnattendedMoved
from interlock.core.unattended.order import Spent
from interlock.durable.catalogue import JOBS, jobs_for

APPROVAL = ApprovalId("apr_1")
ANNOUNCED: list[tuple[SessionEvent, Topic, str]] = [
    (ProtocolEndRequested("job_1"), "session/protocol.end", "protocol-end"),
    (SessionCompleted("job_1", "abc"), "session/complete", "notify"),
    (
        ApprovalRequested(APPROVAL, "human_approval", StepId("s"), "Ship?"),
        "approval/requested",
        "notify",
    ),
    (
        SessionApprovalRequested(APPROVAL, "request", "Ship?", "it", "0"),
        "approval/requested",
        "notify",
    ),
    (
        ApprovalResolved(APPROVAL, "granted", "user", "", NodeId("node_1")),
        "approval/granted",
        "notify",
    ),
    (SessionApprovalResolved(APPROVAL, "denied", "user"), "approval/denied", "notify"),
    (
        FeatureReviewRequested(
            "rev_1", "Export", (RequiredReviewer("qa", DelegationId("dlg_1")),), 1
        ),
        "feature/completion.requested",
        "notify",
    ),
    (UnattendedMoved("parked", Spent(), "limit", "200 turns"), "unattended/parked", "notify"),
    (UnattendedMoved("working", Spent(), detail="80%"), "unattended/limit-near", "notify"),
    (
        UnattendedMoved("working", Spent(), "stuck", "no call"),
        "unattended/stuck",
        "notify",
    ),
    (UnattendedMoved("done", Spent(), outcome="success"), "unattended/done", "notify"),
    (DeliveryRequested("job_1"), "unattended/deliver", "deliver"),
    (DeliveryEnded("job_1", "refused", "HEAD"), "unattended/undelivered", "notify"),
]


@pytest.mark.parametrize(("event", "topic", "job"), ANNOUNCED, ids=lambda one: str(one)[:30])
def test_what_starts_a_job_is_announced_with_its_event(
    event: SessionEvent, topic: Topic, job: str, home: Path
) -> None:
    home.mkdir()
    topics = list(get_args(Topic))
    (home / "config.toml").write_text(f'[notify]\ncommand = ["true"]\nevents = {topics}\n')
    (message,) = messages_about([Envelope(1, SessionId("ses_1"), 3, 5, "key", event)])

    assert (message.topic, message.key) == (topic, f"{topic}:ses_1:3")
    assert decode_announcement(message.content).topic == topic
    assert job in [one.name for one in jobs_for(topic, JOBS, home)]


def test_the_end_of_a_session_says_which_and_with_which_commit() -> None:
    event = SessionCompleted("job_1", "abc")
    (message,) = messages_about([Envelope(1, SessionId("ses_1"), 3, 5, "key", event)])

    told = msgspec.json.decode(message.content)

    assert (told["sessionId"], told["commitSha"]) == ("ses_1", "abc")


def test_every_topic_has_an_emitter() -> None:
    assert {topic for _, topic, _ in ANNOUNCED} | {"retention/due"} == set(get_args(Topic))
