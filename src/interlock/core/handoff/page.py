"""A session as a hand-off file: a HANDOFF.md for people who want one.

The file reads back as it was written: `parse_handoff` gives the same items.
"""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.core.handoff.parse import (
    HandoffContent,
    HandoffSection,
    HandoffStep,
    is_none_placeholder,
    strip_emphasis,
)
from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head
from interlock.core.session.run_head import RunHead
from interlock.core.session.state import SessionState, timestamp
from interlock.core.views.counting import progress_text
from interlock.core.views.status import run_status
from interlock.core.workflow.operators import clip

STEP_CHARS_MAX = 300


def handoff_of(
    session: SessionId,
    head: Head,
    all_runs: Sequence[RunHead],
    state: SessionState | None,
    gaps: Sequence[GapRecorded],
) -> HandoffContent:
    """Return a session as a hand-off. `gaps` are those that nobody has closed."""
    runs = tuple(run for run in all_runs if run.status != "abandoned")
    blockers = [
        *_waiting_runs(runs, head),
        *(_gap_text(gap) for gap in gaps if gap.severity == "critical"),
    ]
    return HandoffContent(
        feature=_feature(runs, state),
        progress=(
            *(HandoffStep(_describe_run(run), _is_done(run)) for run in runs),
            *_agent_steps(state),
        ),
        decisions=tuple(_decisions(state)),
        blockers=tuple(blockers),
        next_steps=tuple(_next_steps(runs, state, gaps)),
        other=(_session_section(session, head), *_recap_sections(runs)),
    )


def merge_handoffs(handoff: HandoffContent, from_notes: HandoffContent) -> HandoffContent:
    """Return what the session itself says, followed by what only its notes say."""
    return msgspec.structs.replace(
        handoff,
        progress=(*handoff.progress, *from_notes.progress),
        decisions=_merge_unique(handoff.decisions, from_notes.decisions),
        blockers=_merge_unique(handoff.blockers, from_notes.blockers),
        next_steps=_merge_unique(handoff.next_steps, from_notes.next_steps),
    )


def _merge_unique(existing: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Append the texts that are new.

    The task of a session is a next step of its note, cut where it is long: both are one text.
    """
    cut_texts = tuple(text.removesuffix("…") for text in existing if text.endswith("…"))
    new = (text for text in more if not (cut_texts and text.startswith(cut_texts)))
    return tuple(dict.fromkeys((*existing, *new)))


def handoff_page(handoff: HandoffContent) -> str:
    """Return the file. Open items get a box, so that no text of theirs is read as a mark."""
    first, *others = handoff.other
    parts = [
        _section_text(first),
        *([f"## Active Feature\n\n- {handoff.feature}"] if handoff.feature else []),
        _list_section("Progress", [_step_text(step) for step in handoff.progress]),
        _list_section("Decisions", handoff.decisions),
        _list_section("Blockers", [f"[ ] {text}" for text in handoff.blockers]),
        _list_section("Next Steps", [f"[ ] {text}" for text in handoff.next_steps]),
        *map(_section_text, others),
    ]
    return "\n\n".join(parts) + "\n"


def _step_text(step: HandoffStep) -> str:
    if step.is_done is None:
        return step.text
    return f"[{'x' if step.is_done else ' '}] {step.text}"


def _list_section(heading: str, items: Sequence[str]) -> str:
    return f"## {heading}\n\n" + ("\n".join(f"- {item}" for item in items) or "None")


def _section_text(section: HandoffSection) -> str:
    return f"{'#' * section.level} {section.heading}\n\n{section.text}"


def _session_section(session: SessionId, head: Head) -> HandoffSection:
    facts = [
        f"- Session: {session}",
        f"- Begun: {timestamp(head.created_ms)}",
        f"- Last change: {timestamp(head.updated_ms)}",
        f"- In: {one_line(head.workspace)}",
        *([f"- Branch: {one_line(head.git_branch)}"] if head.git_branch else []),
    ]
    return HandoffSection("Handoff", 1, "\n".join(facts))


def _feature(runs: Sequence[RunHead], state: SessionState | None) -> str:
    """The feature of the session; where none is set, the goal of the newest unfinished run."""
    open_goals = [run.goal for run in runs if not _is_done(run)]
    feature = (state.active_feature if state else None) or (open_goals[-1] if open_goals else "")
    text = one_line(feature)
    # As `parse_handoff` reads it: without emphasis around words, however deep.
    while (plain := strip_emphasis(text)) != text:
        text = plain
    return "" if is_none_placeholder(text) else text


def _decisions(state: SessionState | None) -> Iterator[str]:
    orchestration = state.orchestrator_workflow if state else None
    for decision in orchestration.decisions if orchestration else ():
        rationale = f" ({one_line(decision.rationale)})" if decision.rationale.strip() else ""
        yield one_line(f"{decision.type}: {decision.description}{rationale}")


def _agent_steps(state: SessionState | None) -> Iterator[HandoffStep]:
    """The delegations, the approved plan and the tasks of a session."""
    work, progress = (state.orchestrator_workflow, state.progress) if state else (None, None)
    for compaction in work.compaction_history if work else ():
        yield HandoffStep(f"Delegated earlier: {compaction.agents_summary}", is_done=True)
    for one in work.agent_history if work else ():
        result = f": {one_line(one.output.summary)}" if one.output else ""
        text = f"{one.agent}, “{one_line(one.input.prompt)}”{result}"
        yield HandoffStep(clip(text, STEP_CHARS_MAX), one.status == "completed")
    if progress and progress.plan:
        yield HandoffStep(clip(f"Plan: {one_line(progress.plan.text)}", STEP_CHARS_MAX), None)
    for task in progress.tasks if progress else ():
        yield HandoffStep(one_line(task.title), task.is_done)


def _waiting_runs(runs: Sequence[RunHead], head: Head) -> Iterator[str]:
    for run in runs:
        status = run_status(run, head)
        if status.needs_user:
            yield f"{_run_name(run)} is {status.word}: {status.reason}"


def _next_steps(
    runs: Sequence[RunHead], state: SessionState | None, gaps: Sequence[GapRecorded]
) -> Iterator[str]:
    task = one_line(state.active_task or "") if state else ""
    if not is_none_placeholder(task):
        yield task
    for run in runs:
        if not _is_done(run) and run.pending_title:
            yield f"Step “{one_line(run.pending_title)}” of {_run_name(run)}"
    yield from (_gap_text(gap) for gap in gaps if gap.severity != "critical")


def _gap_text(gap: GapRecorded) -> str:
    return f"Left undone: {one_line(gap.summary)} ({gap.severity})"


def _describe_run(run: RunHead) -> str:
    progress = progress_text(run.steps_done, run.steps_skipped, run.step_count)
    return f"{_run_name(run)} ({run.workflow_id}, {progress})"


def _recap_sections(runs: Sequence[RunHead]) -> Iterator[HandoffSection]:
    texts = [
        f"{_run_name(run)}{f', on “{one_line(run.recap_step)}”' if run.recap_step else ''}:\n\n"
        + "\n".join(f"> {line}".rstrip() for line in run.recap.splitlines())
        for run in runs
        if run.recap
    ]
    if texts:
        yield HandoffSection("Newest Notes", 2, "\n\n".join(texts))


def _run_name(run: RunHead) -> str:
    return f"“{one_line(run.goal) or run.workflow_id}”"


def _is_done(run: RunHead) -> bool:
    return run.status in ("complete", "complete_with_gaps")
