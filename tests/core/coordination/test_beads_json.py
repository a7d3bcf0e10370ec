"""Work items, written as Beads writes them and read back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.coordination.beads_json import from_beads_json, to_beads_json
from interlock.core.coordination.records import WORK_STATUSES, WorkItem, WorkStatus

TIMES = st.integers(0, 4_102_444_800_000)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@st.composite
def work_items(draw: st.DrawFn) -> WorkItem:
    """Items as they occur: one that is open or worked on has no reason."""
    status: WorkStatus = draw(st.sampled_from(WORK_STATUSES))
    return WorkItem(
        draw(NAMES),
        draw(NAMES),
        draw(TIMES),
        draw(TIMES),
        status,
        draw(st.integers(0, 4)),
        draw(st.text(st.characters(exclude_categories=["Cs"]))),
        draw(st.just("") | NAMES),
        draw(TIMES),
        tuple(draw(st.lists(NAMES, max_size=4))),
        draw(st.just("") | NAMES) if status in ("done", "blocked") else "",
    )


@given(work_items())
def test_an_item_survives_the_way_to_beads_and_back(item: WorkItem) -> None:
    encoded = msgspec.json.encode(to_beads_json(item, "BlueLake (session 10:30)"))

    assert from_beads_json(msgspec.json.decode(encoded)) == item


def test_an_item_of_the_real_one_is_read() -> None:
    """Times with nanoseconds and a zone, links that do not block, fields that we do not know."""
    bead: dict[str, Any] = {
        "id": "bd-a3f8.1",
        "title": "Parse it",
        "description": "",
        "status": "closed",
        "priority": 1,
        "issue_type": "bug",
        "assignee": "ana",
        "created_at": "2026-01-02T03:04:05.123456789-07:00",
        "updated_at": "2026-01-02T10:04:06Z",
        "closed_at": "2026-01-02T10:04:06Z",
        "close_reason": "Done",
        "labels": None,
        "dependencies": [
            {"issue_id": "bd-a3f8.1", "depends_on_id": "bd-b1", "type": "blocks"},
            {"issue_id": "bd-a3f8.1", "depends_on_id": "bd-a3f8", "type": "parent-child"},
            {"id": "bd-c2", "title": "As `show` has it", "dependency_type": "waits-for"},
        ],
    }

    assert from_beads_json(bead) == WorkItem(
        "bd-a3f8.1",
        "Parse it",
        created_ms=1_767_348_245_123,
        updated_ms=1_767_348_246_000,
        status="done",
        priority=1,
        assignee="ana",
        depends_on=("bd-b1", "bd-c2"),
        reason="Done",
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("open", "open"),
        ("in_progress", "in_progress"),
        ("blocked", "blocked"),
        ("closed", "done"),
        ("deferred", "blocked"),
        ("pinned", "blocked"),
        ("hooked", "blocked"),
        ("in-review-by-ana", "blocked"),
    ],
)
def test_a_status_of_beads_that_is_not_ours_is_one_that_nobody_begins_with(
    theirs: str, ours: str
) -> None:
    assert from_beads_json({"id": "bd-1", "title": "t", "status": theirs}).status == ours


@pytest.mark.parametrize(
    "bead",
    [{}, {"id": "bd-1"}, {"id": 1, "title": "t"}, {"id": "a", "title": "t", "created_at": "soon"}],
)
def test_what_is_no_bead_is_refused(bead: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_beads_json(bead)
