"""Who is there, by the messages of a mail server, whatever their order and layout."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.coordination.inbox_sessions import fold_inbox
from interlock.core.coordination.session_record import ObservedSession, SessionRecord

START_S = 1_735_689_600
NOW_MS = (START_S + 1_800) * 1_000
BLUE, GREEN = f"BlueLake-{START_S}", f"GreenCastle-{START_S - 60}"


def message(
    subject: str, ago_s: float = 60, body: object = "", sender: str = BLUE
) -> dict[str, Any]:
    sent_s = NOW_MS / 1_000 - ago_s
    return {"sender": sender, "subject": subject, "body": body, "created_ts": sent_s}


def fold(*messages: object, own: str = "") -> tuple[ObservedSession, ...]:
    return fold_inbox(messages, own=own, now_ms=NOW_MS)


def only(*messages: object) -> ObservedSession:
    (session,) = fold(*messages)
    return session


def statuses(*messages: object) -> list[str]:
    return [one.record.status for one in fold(*messages)]


def test_a_record_has_exactly_the_fields_of_the_protocol_id6() -> None:
    session = only(
        message("[SESSION START] BlueLake", 120, "Track: api\nBeads: bd-1\nFiles: src/**\nEpoch: 2")
    )

    assert session == ObservedSession(
        SessionRecord(
            id=BLUE,
            display="BlueLake (session 00:00)",
            base_agent="BlueLake",
            created_ts=START_S,
            track="api",
            beads_claimed=("bd-1",),
            files_reserved=("src/**",),
            last_heartbeat=START_S + 1_680,
            status="active",
            epoch=2,
        ),
        silent_ms=120_000,
    )


KINDS = ("[SESSION START] x", "[HEARTBEAT] Track a", "[SESSION END] x", "[PROGRESS] 1/2", "Re: hi")
BODIES = ("", f"ID: {BLUE}\nTrack: b", "- **Track**: c\n- **Epoch**: 2", "Epoch: 3", "{broken")


@given(
    st.lists(
        st.builds(
            message,
            subject=st.sampled_from((*KINDS, "[TAKEOVER] x")),
            ago_s=st.integers(-300, 2_000),
            body=st.sampled_from((*BODIES, f"ID: {GREEN}")),
            sender=st.sampled_from((BLUE, "BlueLake", "GreenCastle", "")),
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_messages_does_not_matter_de1(
    messages: list[dict[str, Any]], random: Any
) -> None:
    shuffled = [*messages]
    random.shuffle(shuffled)

    assert fold(*shuffled) == fold(*messages)


def test_an_end_anywhere_means_ended_de2() -> None:
    """The first defect: an inbox returns the newest message first."""
    start, beat = message("[SESSION START] x", 600), message("[HEARTBEAT] x", 300)
    end = message("[SESSION END] x", 200)

    assert statuses(end, beat, start) == ["ended"]
    assert statuses(start, end, message("[HEARTBEAT] x", 100)) == ["ended"]


def test_a_later_start_in_a_higher_epoch_revives_a_session_de2() -> None:
    end = message("[SESSION END] x", 200, "Epoch: 1")

    assert statuses(message("[SESSION START] x", 100, "Epoch: 2"), end) == ["active"]
    assert statuses(message("[SESSION START] x", 100, "Epoch: 1"), end) == ["ended"]
    assert statuses(message("[SESSION START] x", 300, "Epoch: 2"), end) == ["ended"]


def test_the_newest_message_counts_in_whatever_order_de3() -> None:
    """The second defect: a start of 20 minutes ago hid the heartbeat of 2 minutes ago."""
    session = only(message("[HEARTBEAT] x", 120), message("[SESSION START] x", 1_200))

    assert (session.record.status, session.minutes_silent) == ("active", 2)


@pytest.mark.parametrize(
    "subject", ["[TRACK COMPLETE] Track 1", "[PROGRESS] Track 1: 2/5", "Re: your question", ""]
)
def test_any_kind_of_message_is_a_sign_of_life_de3(subject: str) -> None:
    """The seventh defect: anything but a heartbeat was ignored."""
    session = only(message("[HEARTBEAT] x", 1_000), message(subject, 30, sender="BlueLake"))

    assert (session.record.status, session.silent_ms) == ("active", 30_000)


def test_a_message_that_only_chats_makes_no_session() -> None:
    assert fold(message("Re: lunch?", sender="a person")) == ()


def test_thirty_minutes_ago_counts_and_a_moment_earlier_does_not_de4() -> None:
    """The fourth defect: a heartbeat of ten hours ago was listed as active."""
    assert statuses(message("[HEARTBEAT] x", 1_800)) == ["stale"]
    assert statuses(message("[HEARTBEAT] x", 1_800.001)) == []
    assert statuses(message("[HEARTBEAT] x", 36_000)) == []


def test_the_own_session_is_never_listed_de7() -> None:
    """The sixth defect: a session was in conflict with itself."""
    named, unnamed = message("[HEARTBEAT] x"), message("[HEARTBEAT] x", sender="BlueLake")

    assert fold(named, unnamed, own=BLUE) == ()
    assert fold(unnamed, own=BLUE) == ()


VALUES = {
    "track": "api",
    "beads_claimed": ("bd-1", "bd-2"),
    "files_reserved": ("src/{a,b}/**", "x"),
}
LAYOUTS = {
    "lines": f"ID: {BLUE}\nTrack: api\nBeads: bd-1, bd-2\nFiles: src/{{a,b}}/**, x\n",
    "bullets": f"Hello!\n\n- **ID**: {BLUE}\n- **Track**: `api`\n- **Beads**: bd-1 (in_progress)"
    ", bd-2\n- **Files:** `src/{a,b}/**`, x\n",
    "lists": f"* **ID**: {BLUE}\n* **Track**: api\n* **Beads**:\n  - bd-1\n  - bd-2\n"
    "* **Files**:\n  - src/{a,b}/**\n  - x\n",
    "record": json.dumps({"id": BLUE, **VALUES}),
    "fence": f"```json\n{json.dumps({'session_id': BLUE, **VALUES})}\n```",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_a_body_says_the_same_de8(layout: str) -> None:
    """The third defect: the layout that the documents prescribed was not understood."""
    record = only(message("[HEARTBEAT] hi", 60, LAYOUTS[layout], sender="BlueLake")).record

    assert (record.id, record.track) == (BLUE, "api")
    assert (record.beads_claimed, record.files_reserved) == (
        VALUES["beads_claimed"],
        VALUES["files_reserved"],
    )


@pytest.mark.parametrize(
    "body",
    [
        *(None, 7, [], {"track": 1.5}, "", "????", "{" * 20_000, '{"track": {"a": []}}'),
        *("Track:", "\x00" * 9, "```json\n```", "**Track**", ":::"),
    ],
)
def test_what_cannot_be_read_is_not_known_de8(body: object) -> None:
    record = only(message("[HEARTBEAT] x", body=body)).record

    assert (record.id, record.track, record.beads_claimed) == (BLUE, None, ())


def test_what_is_no_message_is_passed_over_de8() -> None:
    assert fold(None, 3, "x", [], {}, {"sender": 3, "subject": [], "created_ts": {}}) == ()


@pytest.mark.parametrize(
    ("created_ts", "status", "reason"),
    [
        (None, "stale", "no_heartbeat"),
        ("", "stale", "no_heartbeat"),
        ("yesterday", "stale", "invalid_timestamp"),
        ("2025-13-01T00:00:00Z", "stale", "invalid_timestamp"),
        (-5, "stale", "invalid_timestamp"),
        (True, "stale", "invalid_timestamp"),
        ("nan", "stale", "invalid_timestamp"),
        ("1e400", "stale", "invalid_timestamp"),
        ([], "stale", "invalid_timestamp"),
        (NOW_MS / 1_000 + 120, "active", ""),
        (NOW_MS / 1_000 + 120.001, "stale", "clock_skew"),
        ("2025-01-01T00:29:00Z", "active", ""),
        ("2025-01-01 01:29:00.5+01:00", "active", ""),
        ("2024-12-31T19:29:00-0500", "active", ""),
        (str(NOW_MS), "active", ""),
    ],
)
def test_a_time_that_cannot_be_used_makes_a_session_stale_de9(
    created_ts: object, status: str, reason: str
) -> None:
    session = only({"from": BLUE, "subject": "[HEARTBEAT] x", "created_ts": created_ts})

    assert (session.record.status, session.reason) == (status, reason)


def test_a_good_time_counts_more_than_a_broken_one_de9() -> None:
    broken = {"from": BLUE, "subject": "[HEARTBEAT] x", "created_ts": "?"}

    assert statuses(broken, message("[HEARTBEAT] x"), message("[PROGRESS] x", -500)) == ["active"]


def test_what_is_kept_of_ten_thousand_messages_grows_with_the_sessions_de10() -> None:
    """How long it takes is no test; 0.17 s where this was written."""
    body = "- **Track**: api\n- **Beads**: bd-1\n- **Files**: src/**"
    messages = (
        message("[HEARTBEAT] x", at % 1_700, body, sender=f"Agent{at % 10}-{START_S}")
        for at in range(10_000)
    )
    tracemalloc.start()

    sessions = fold_inbox(messages, own="", now_ms=NOW_MS)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(sessions) == 10
    assert peak < 200_000


def test_nobody_speaks_for_another_session() -> None:
    said = message("[SESSION END] x", body=f"ID: {GREEN}")
    there = message("[HEARTBEAT] x", sender=GREEN)

    assert {one.record.id: one.record.status for one in fold(said, there)} == {
        BLUE: "ended",
        GREEN: "active",
    }


def test_who_was_taken_over_has_ended() -> None:
    notice = message("[TAKEOVER] GreenCastle", body=f"ID: {GREEN}", sender="BlueLake")
    there = message("[HEARTBEAT] x", 900, sender=GREEN)

    assert {one.record.id: one.record.status for one in fold(notice, there)} == {GREEN: "ended"}


def test_an_end_from_before_a_session_is_not_its_end() -> None:
    """A message without an id belongs to the newest session of its sender, but not to its past."""
    earlier = message("[SESSION END] x", 1_795, sender="BlueLake")
    began_later = f"BlueLake-{START_S + 600}"

    assert statuses(earlier, message("[HEARTBEAT] x", 300, sender=began_later)) == ["active"]


def test_the_newest_value_of_each_field_holds_and_nothing_is_a_value() -> None:
    record = only(
        message("[HEARTBEAT] x", 30, "Track: none"),
        message("[HEARTBEAT] Track old", 300, "Beads: bd-1"),
    ).record

    assert (record.track, record.beads_claimed) == (None, ("bd-1",))


def test_a_heartbeat_names_its_track_in_its_subject() -> None:
    assert only(message("[HEARTBEAT] Track cc-v2")).record.track == "cc-v2"
