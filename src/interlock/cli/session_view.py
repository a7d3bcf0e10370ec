"""A session in a terminal: its status, each run step by step, and its other events."""

from collections.abc import Sequence

from interlock.app.sessions.lookup import SessionView
from interlock.cli.terminal import print_lines, print_table
from interlock.core.session.events import Envelope
from interlock.core.session.requirements import evidence_text, fact_of
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState, fold
from interlock.core.views.counting import pluralise, progress_text
from interlock.core.views.delegated_work import review_line
from interlock.core.views.delivery import delivery_line
from interlock.core.views.events import event_summary
from interlock.core.views.logbook_page import checked_at_start, recorded_profile
from interlock.core.views.path import PathStep, path_of
from interlock.core.views.progress_lines import progress_parts
from interlock.core.views.status import Status, self_attested_text
from interlock.core.workflow.operators import clip

NOTES_CHARS_MAX = 80  # a glance at them; `run notes` prints them whole
PROGRESS_LINES_MAX = 40  # of a plan, a task list or the subagents


def print_session_view(view: SessionView, *, is_full: bool) -> None:
    print_lines(f"{view.session}  {view.head.workspace}")
    shown = filter(None, (view.status.main, view.status.beside))
    print_lines(*(f"{status.word}: {status.reason}" for status in shown))
    print_lines(*([f"client: {view.client}"] if view.client else []))
    if view.head.imported_from:
        print_lines(f"imported from {view.head.imported_from}, checked for damage, not for forgery")
    if view.health.state != "healthy":
        print_lines(
            f"{view.health.state}: {view.health.reason};"
            f" {pluralise(view.health.valid, 'sound event')}"
        )
    unattended = view.head.unattended
    if unattended and unattended.delivery:
        print_lines(delivery_line(unattended.delivery))
    for run, status in zip(view.runs, view.run_statuses, strict=True):
        _print_run(run, status, view.events)
    state = fold(view.events) if view.events else None
    if state and state.mode_history:
        print_lines(*_requirement_lines(state, recorded_profile(view.events)))
    reviews = state.work.feature_reviews if state else ()
    print_lines(*map(review_line, reviews))
    for part in progress_parts(state.progress if state else None):
        shown = part.items if is_full else part.items[:PROGRESS_LINES_MAX]
        if shown:
            print_lines("", part.heading, *(f"  {item}" for item in shown))
        if len(shown) < len(part.items):
            left_out = pluralise(len(part.items) - len(shown), "more line")
            print_lines(f"  … {left_out}: `interlock session show {view.session} --full`")
    own_events = [event for event in view.events if event.run is None]
    print_lines("")
    print_table([(str(event.seq), event_summary(event.event)) for event in own_events])
    print_lines(
        "",
        f"{pluralise(len(view.events), 'event')} in all: `interlock session events {view.session}`",
    )


def _requirement_lines(state: SessionState, profile: str) -> list[str]:
    """The requirements of the start that are open or waived; the others need no attention."""
    return [
        f"{one.status} at the start: {one.id}, {one.evidence}. {one.remedy}".rstrip()
        for one in checked_at_start(state, profile)
        if one.is_blocking or fact_of(evidence_text(one)).is_waived
    ]


def _print_run(run: RunHead, status: Status, events: Sequence[Envelope]) -> None:
    """Print the status of a run, and the steps on its path with the beginning of their notes."""
    progress = progress_text(run.steps_done, run.steps_skipped, run.step_count)
    at = f" at `{run.pending_title}`" if run.pending_title else ""
    gaps = f", {pluralise(run.gaps_open, 'gap')} open" if run.gaps_open else ""
    print_lines(
        "",
        f"{run.run}  {run.workflow_id} {run.workflow_version}  {run.goal}",
        f"{progress}, {status.word}{at}{gaps}",
        *filter(None, (self_attested_text(run.self_attested),)),
    )
    print_table(
        [
            (f"  {step.number}", _step_name(step), step.badge, clip(step.notes, NOTES_CHARS_MAX))
            for step in path_of(run, events).steps
            if step.step_id
        ]
    )


def _step_name(step: PathStep) -> str:
    passes = ".".join(map(str, step.passes)) if any(number > 1 for number in step.passes) else ""
    return f"{step.title}, pass {passes}" if passes else step.title
