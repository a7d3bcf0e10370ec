"""The report of a preflight as text: boxes for people, and lines for agents, who pay by the word.

All lines of a box are equally wide wherever they are shown, whatever others have called themselves:
their text is made visible, cut to its place, and measured as a terminal does. The plain form is
ASCII, for where nothing else can be shown.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from interlock.core.coordination.conflicts import Conflicts
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.session_record import ObservedSession, SessionRecord
from interlock.core.counting import pluralise
from interlock.core.visible_text import make_visible_line


def report_boxes(report: PreflightReport, *, is_plain: bool = False) -> str:
    return "\n".join(_boxes(report, is_plain=is_plain))


def _boxes(report: PreflightReport, *, is_plain: bool) -> Iterator[str]:
    own = report.identity
    if own:
        track = make_visible_line(own.track or "none")
        yield f"You are {own.display}, {own.id}; track: {track}."
    yield from (f"warning: {make_visible_line(warning)}" for warning in report.warnings)
    yield from map(make_visible_line, report.cleaned_up)
    observed = observe_sessions(report)
    if not observed:
        yield "no active sessions"
        return
    yield active_sessions_box(observed, is_plain=is_plain)
    if report.conflicts.has_conflicts:
        yield conflicts_box(report.conflicts, is_plain=is_plain)
    asked = {question.about for question in report.questions}
    for one in observed:
        if one.record.status == "stale" and one.record.id in asked:
            yield stale_session_box(one, is_plain=is_plain)
    yield from (f"- {make_visible_line(line)}" for line in report.recommendations)


def observe_sessions(report: PreflightReport) -> list[ObservedSession]:
    """The sessions of a report, with what is known of their silence."""
    stale = {one.id: one for one in report.stale_sessions}
    return [
        ObservedSession(
            record,
            (report.checked_ts - (record.last_heartbeat or report.checked_ts)) * 1_000,
            process=stale[record.id].process if record.id in stale else "",
        )
        for record in report.active_sessions
    ]


BOX_COLUMNS = 78
TEXT_COLUMNS = BOX_COLUMNS - 4
ROWS_MAX = 40
_LINES, _PLAIN_LINES = "┌─┐│└┘", "+-+|++"
_ICONS = {"active": "🟢", "stale": "🟡", "disconnected": "⚪", "ended": "⚪"}
_PLAIN_ICONS = {"active": "*", "stale": "!", "disconnected": ".", "ended": "."}
_WARNING, _PLAIN_WARNING = "❗", "!"
_UNDRAWN = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))
"""They would join or widen pictures in some terminals and not in others."""


def active_sessions_box(sessions: Sequence[ObservedSession], *, is_plain: bool = False) -> str:
    """Everybody who is there, the silent ones too."""
    icons = _PLAIN_ICONS if is_plain else _ICONS
    rows: list[str] = [""]
    for session in sessions:
        record = session.record
        minutes = session.minutes_silent
        silence = f" ({minutes} min)" if record.status == "stale" and minutes is not None else ""
        rows.append(f"{icons[record.status]} {record.display} - {record.status}{silence}")
        rows.append(f"   Track: {record.track or 'none'}")
        rows.extend(f"   {row}" for row in _holdings(record, "Beads", "Files"))
        if record.status != "stale" and minutes is not None:
            rows.append(f"   Last seen: {minutes} min ago")
        rows.extend([f"   Process: {session.process}"] if session.process else [])
        rows.append("")
    return _draw(
        "ACTIVE SESSIONS", rows if sessions else ["", "no active sessions", ""], is_plain=is_plain
    )


def conflicts_box(conflicts: Conflicts, *, is_plain: bool = False) -> str:
    """The conflicts, and the choices that there are about them."""
    mark = _PLAIN_WARNING if is_plain else _WARNING
    rows: list[str] = [""]
    if conflicts.track_conflicts:
        rows.append(f"{mark} TRACK CONFLICT")
        rows += [f"   {x.display} is already on {x.track}" for x in conflicts.track_conflicts]
    if conflicts.file_conflicts:
        rows.append(f"{mark} FILE CONFLICT")
        rows += [f"   {x.display} has reserved {x.pattern}" for x in conflicts.file_conflicts]
    if conflicts.bead_conflicts:
        rows.append(f"{mark} BEAD CONFLICT")
        rows += [f"   {x.bead_id} is claimed by {x.display}" for x in conflicts.bead_conflicts]
    if not conflicts.has_conflicts:
        return _draw("CONFLICTS DETECTED", ["", "none", ""], is_plain=is_plain)
    switch = ["[S]witch track - pick a different track"] if conflicts.track_conflicts else []
    choices = [
        "Options:",
        "[P]roceed anyway - work on different files/beads",
        *switch,
        "[W]ait - let the other session finish first",
    ]
    return _draw("CONFLICTS DETECTED", [*rows[:ROWS_MAX], "", *choices], is_plain=is_plain)


def stale_session_box(session: ObservedSession, *, is_plain: bool = False) -> str:
    """Somebody who has fallen silent, what they hold, and the choices about that."""
    record, minutes = session.record, session.minutes_silent
    mark = _PLAIN_WARNING if is_plain else _WARNING
    silence = (
        f"inactive for {pluralise(minutes, 'minute')}"
        if minutes is not None
        else "inactive since ?"
    )
    rows = ["", f"{record.display} {silence}"]
    rows += [f"Silent, {session.process}"] if session.process else []
    rows += ["", *_holdings(record, "Claimed beads", "Reserved files"), ""]
    choices = (
        f"{mark} Warning: May have uncommitted work",
        "",
        "[T]ake over - release reservations, reset beads to open",
        "[W]ait - check again in 5 min",
        "[I]gnore - proceed without their files/beads",
    )
    return _draw("STALE SESSION DETECTED", [*rows, *choices], is_plain=is_plain)


def _holdings(record: SessionRecord, beads: str, files: str) -> Iterator[str]:
    claimed = ", ".join(f"{bead} (in_progress)" for bead in record.beads_claimed)
    if claimed:
        yield f"{beads}: {claimed}"
    yield f"{files}: {', '.join(record.files_reserved) or 'none'}"


def _draw(title: str, rows: Iterable[str], *, is_plain: bool) -> str:
    top, across, corner, side, low, end = _PLAIN_LINES if is_plain else _LINES
    heading = f"{top}{across} {title} "
    lines = [heading + across * (BOX_COLUMNS - len(heading) - 1) + corner]
    for row in rows:
        text = fit(row, TEXT_COLUMNS, is_plain=is_plain)
        lines.append(f"{side} {text}{' ' * (TEXT_COLUMNS - columns_of(text))} {side}")
    return "\n".join([*lines, low + across * (BOX_COLUMNS - 2) + end])


def fit(text: str, columns: int, *, is_plain: bool = False) -> str:
    """The text as one visible line of so many columns at the most, with a mark where it is cut."""
    visible = make_visible_line(text[: columns * 4]).translate(_UNDRAWN)
    if is_plain:
        visible = visible.encode("ascii", "backslashreplace").decode("ascii")
    mark = "..." if is_plain else "…"
    width, room_ends = 0, 0
    for at, character in enumerate(visible):
        width += _columns_of_character(character)
        if width <= columns - len(mark):
            room_ends = at + 1
        if width > columns or at > columns * 2:
            return f"{visible[:room_ends]}{mark}"
    return visible


def columns_of(text: str) -> int:
    """The columns that a terminal gives to a text."""
    return sum(map(_columns_of_character, text))


def _columns_of_character(character: str) -> int:
    if " " <= character <= "~":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def report_lines(report: PreflightReport) -> str:
    """Everything that is in the report, for an agent."""
    return "\n".join(_lines(report))


def _lines(report: PreflightReport) -> Iterator[str]:
    if report.identity:
        yield f"You are {_session_line(report.identity)}."
    yield from (f"warning: {warning}" for warning in report.warnings)
    yield from report.cleaned_up
    yield "Others here:" if report.active_sessions else "no active sessions"
    yield from (f"- {_session_line(one)}" for one in report.active_sessions)
    for one in report.stale_sessions:
        yield (
            f"- stale: {one.id} ({one.display}), silent for {one.stale_minutes} min"
            f" ({one.stale_reason}), {one.process}, uncommitted work: {one.uncommitted}"
            f" in {one.worktree}"
        )
    conflicts = report.conflicts
    for one in conflicts.track_conflicts:
        yield f"TRACK CONFLICT: {one.id} is on {one.track}, seen {one.last_seen}."
    for one in conflicts.file_conflicts:
        yield (
            f"FILE CONFLICT: {one.id} holds {one.pattern}, you want {one.requested}:"
            f" {one.overlap}. {one.next_action}"
        )
    for one in conflicts.bead_conflicts:
        yield f"{one.bead_id} is claimed by {one.id}, {one.since}. {one.next_action}"
    for one in report.questions:
        yield f"To decide: {one.prompt} ({', '.join(one.options)}; usually {one.default})"
    yield from (f"- {line}" for line in report.recommendations)
    yield f"Mode: {report.mode}."


def _session_line(record: SessionRecord) -> str:
    parts = (
        f"{record.id} ({record.display}, {record.base_agent}), {record.status}",
        f"track {record.track}" if record.track else "",
        f"works on {', '.join(record.beads_claimed)}" if record.beads_claimed else "",
        f"holds {', '.join(record.files_reserved)}" if record.files_reserved else "",
    )
    return ", ".join(filter(None, parts))
