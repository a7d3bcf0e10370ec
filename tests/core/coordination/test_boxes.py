"""The boxes: equally wide whatever is in them, and readable in ASCII."""

import unicodedata
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.coordination.conflicts import (
    BeadConflict,
    Conflicts,
    FilesConflict,
    TrackConflict,
)
from interlock.core.coordination.report_boxes import (
    BOX_COLUMNS,
    active_sessions_box,
    columns_of,
    conflicts_box,
    stale_session_box,
)
from interlock.core.coordination.session_record import ObservedSession, SessionRecord

RECORD = SessionRecord(
    *("BlueLake-1735689600", "BlueLake (session 10:30)", "BlueLake", 1_735_689_600),
    *("cc-v2", ("bd-101",), ("src/api/**",), 1_735_690_200, "active", 1),
)
ACTIVE = ObservedSession(RECORD, 120_000)
STALE = ObservedSession(
    msgspec.structs.replace(RECORD, display="GreenCastle (session 09:15)", status="stale"), 720_000
)
TRACK = TrackConflict("b", "BlueLake (session 10:30)", "cc-v2", "2 min ago", "")
FILE = FilesConflict("b", "BlueLake (session 10:30)", "src/**", "src/a", "src/a", 60, "")
BEAD = BeadConflict("b", "BlueLake (session 10:30)", "bd-101", "2 min ago", "")


def named(text: str) -> ObservedSession:
    record = msgspec.structs.replace(RECORD, display=text, track=text, files_reserved=(text, text))
    return msgspec.structs.replace(STALE, record=record, process=text)


BOXES: dict[str, Callable[[str, bool], str]] = {
    "active": lambda text, is_plain: active_sessions_box([named(text), ACTIVE], is_plain=is_plain),
    "stale": lambda text, is_plain: stale_session_box(named(text), is_plain=is_plain),
    "conflicts": lambda text, is_plain: conflicts_box(
        Conflicts(
            has_conflicts=True,
            track_conflicts=(msgspec.structs.replace(TRACK, display=text),),
            bead_conflicts=(msgspec.structs.replace(BEAD, bead_id=text),),
        ),
        is_plain=is_plain,
    ),
}


def width_on_a_terminal(line: str) -> int:
    """Measured apart from the boxes' own measure."""
    wide = sum(unicodedata.east_asian_width(x) in ("W", "F") for x in line)
    drawn = sum(unicodedata.category(x) not in ("Mn", "Me", "Cf") for x in line)
    return wide + drawn


def assert_even(box: str) -> None:
    assert {width_on_a_terminal(line) for line in box.split("\n")} == {BOX_COLUMNS}
    assert {columns_of(line) for line in box.split("\n")} == {BOX_COLUMNS}
    assert box.encode("utf-8").decode("utf-8") == box


def test_who_is_there_is_shown_with_what_they_hold_op2() -> None:
    lines = [line.strip("│ ") for line in active_sessions_box([ACTIVE, STALE]).split("\n")]

    assert lines[1:-1] == [
        "",
        "🟢 BlueLake (session 10:30) - active",
        "Track: cc-v2",
        "Beads: bd-101 (in_progress)",
        "Files: src/api/**",
        "Last seen: 2 min ago",
        "",
        "🟡 GreenCastle (session 09:15) - stale (12 min)",
        "Track: cc-v2",
        "Beads: bd-101 (in_progress)",
        "Files: src/api/**",
        "",
    ]
    assert "no active sessions" in active_sessions_box([])


def test_a_track_conflict_lets_the_user_switch_and_a_file_conflict_does_not() -> None:
    about_track = conflicts_box(Conflicts(has_conflicts=True, track_conflicts=(TRACK,)))
    about_file = conflicts_box(Conflicts(has_conflicts=True, file_conflicts=(FILE,)))

    assert "TRACK CONFLICT" in about_track
    assert "BlueLake (session 10:30) is already on cc-v2" in about_track
    assert [key for key in "PSW" if f"[{key}]" in about_track] == ["P", "S", "W"]
    assert [key for key in "PSW" if f"[{key}]" in about_file] == ["P", "W"]
    assert "none" in conflicts_box(Conflicts())


def test_a_stale_session_is_asked_about_with_all_that_is_at_stake() -> None:
    box = stale_session_box(msgspec.structs.replace(STALE, process="process alive"))

    for text in (
        *("STALE SESSION DETECTED", "GreenCastle (session 09:15) inactive for 12 minutes"),
        *("Reserved files: src/api/**", "Claimed beads: bd-101", "Silent, process alive"),
        *("uncommitted work", "[T]ake over", "[W]ait", "[I]gnore"),
    ):
        assert text in box


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("kind", BOXES)
@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x" * 5_000,
            "漢字" * 90,
            "👩‍👩‍👧‍👦⚠️",
            "\x1b[2J\x1b[31m",
            "a\nb\r\nc\td",
            "\u202eabc",
        ),
        *("e" + "\u0301" * 900, "│ ok │", "ÄÖÜ", "\ud800"[:0] + "\ue000", "ﾊﾝｶｸ", "\x00" * 400),
    ],
)
def test_every_line_of_a_box_is_equally_wide_op2(kind: str, text: str, *, is_plain: bool) -> None:
    box = BOXES[kind](text, is_plain)

    assert_even(box)
    assert "\x1b" not in box
    assert box.isascii() or not is_plain


@given(st.text(max_size=120), st.sampled_from(sorted(BOXES)), st.booleans())
def test_no_text_gets_a_box_out_of_shape_op2(text: str, kind: str, is_plain: bool) -> None:  # noqa: FBT001
    box = BOXES[kind](text, is_plain)

    assert_even(box)
    assert box.isascii() or not is_plain
