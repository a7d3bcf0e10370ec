"""The report of a preflight as text: boxes for people."""

from collections.abc import Iterator

from interlock.core.coordination.boxes import (
    active_sessions_box,
    conflicts_box,
    stale_session_box,
)
from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.session_record import ObservedSession
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
    stale = {one.session_id: one for one in report.stale_sessions}
    return [
        ObservedSession(
            record,
            (report.checked_ts - (record.last_heartbeat or report.checked_ts)) * 1_000,
            process=stale[record.id].process if record.id in stale else "",
        )
        for record in report.active_sessions
    ]
