"""The report of a preflight as lines for an agent, who pays by the word."""

from collections.abc import Iterator

from interlock.core.coordination.preflight import PreflightReport
from interlock.core.coordination.session_record import SessionRecord


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
            f"- stale: {one.session_id} ({one.display}), silent for {one.stale_minutes} min"
            f" ({one.stale_reason}), {one.process}, uncommitted work: {one.uncommitted}"
            f" in {one.worktree}"
        )
    conflicts = report.conflicts
    for one in conflicts.track_conflicts:
        yield f"TRACK CONFLICT: {one.session_id} is on {one.track}, seen {one.last_seen}."
    for one in conflicts.file_conflicts:
        yield (
            f"FILE CONFLICT: {one.session_id} holds {one.pattern}, you want {one.requested}:"
            f" {one.overlap}. {one.next_action}"
        )
    for one in conflicts.bead_conflicts:
        yield f"{one.bead_id} is claimed by {one.session_id}, {one.since}. {one.next_action}"
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
