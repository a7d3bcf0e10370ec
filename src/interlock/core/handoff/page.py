"""A session as a hand-off file: a HANDOFF.md for people who want one.

What is written here is read back as it was: `parse_handoff` gives the same items.
"""

from collections.abc import Iterator, Sequence

import msgspec

from interlock.core.handoff.parse import Handoff, Section, Step, is_nothing, unmarked
from interlock.core.ids import SessionId
from interlock.core.notes.fts_query import one_line
from interlock.core.session.events import GapRecorded
from interlock.core.session.head import Head, RunHead
from interlock.core.session.state import SessionState, timestamp
from interlock.core.views.status import run_status


def handoff_of(
    session: SessionId, head: Head, state: SessionState | None, gaps: Sequence[GapRecorded]
) -> Handoff:
    """`gaps` are those that nobody has closed."""
    blockers = [*_waiting(head.runs), *(_gap(gap) for gap in gaps if gap.severity == "critical")]
    return Handoff(
        feature=_feature(head, state),
        progress=tuple(Step(_described(run), _is_done(run)) for run in head.runs),
        decisions=tuple(_decisions(state)),
        blockers=tuple(blockers),
        next_steps=tuple(_next(head.runs, state, gaps)),
        other=(_about(session, head), *_recaps(head.runs)),
    )


def joined(handoff: Handoff, noted: Handoff) -> Handoff:
    """What the session itself says, and behind it what only its notes say."""
    return msgspec.structs.replace(
        handoff,
        progress=(*handoff.progress, *noted.progress),
        decisions=_each_once(handoff.decisions, noted.decisions),
        blockers=_each_once(handoff.blockers, noted.blockers),
        next_steps=_each_once(handoff.next_steps, noted.next_steps),
    )


def _each_once(said: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """The task of a session is a next step of its note, cut where it is long."""
    begun = tuple(text.removesuffix("…") for text in said if text.endswith("…"))
    new = (text for text in more if not (begun and text.startswith(begun)))
    return tuple(dict.fromkeys((*said, *new)))


def handoff_page(handoff: Handoff) -> str:
    """The file. Boxes before what is open: a text that looks like a mark is then none."""
    first, *others = handoff.other
    parts = [
        _section(first),
        *([f"## Active Feature\n\n- {handoff.feature}"] if handoff.feature else []),
        _list("Progress", [_step(step) for step in handoff.progress]),
        _list("Decisions", handoff.decisions),
        _list("Blockers", [f"[ ] {text}" for text in handoff.blockers]),
        _list("Next Steps", [f"[ ] {text}" for text in handoff.next_steps]),
        *map(_section, others),
    ]
    return "\n\n".join(parts) + "\n"


def _step(step: Step) -> str:
    if step.is_done is None:
        return step.text
    return f"[{'x' if step.is_done else ' '}] {step.text}"


def _list(heading: str, items: Sequence[str]) -> str:
    return f"## {heading}\n\n" + ("\n".join(f"- {item}" for item in items) or "None")


def _section(section: Section) -> str:
    return f"{'#' * section.level} {section.heading}\n\n{section.text}"


def _about(session: SessionId, head: Head) -> Section:
    facts = [
        f"- Session: {session}",
        f"- Begun: {timestamp(head.created_ms)}",
        f"- Last change: {timestamp(head.updated_ms)}",
        f"- In: {one_line(head.workspace)}",
        *([f"- Branch: {one_line(head.git_branch)}"] if head.git_branch else []),
    ]
    return Section("Handoff", 1, "\n".join(facts))


def _feature(head: Head, state: SessionState | None) -> str:
    """What the session is about; where nobody said, the newest run that goes on."""
    going_on = [run.goal for run in head.runs if not _is_done(run)]
    named = (state.active_feature if state else None) or (going_on[-1] if going_on else "")
    text = one_line(named)
    # As a reader takes it: without marks around words, however many.
    while (plain := unmarked(text)) != text:
        text = plain
    return "" if is_nothing(text) else text


def _decisions(state: SessionState | None) -> Iterator[str]:
    work = state.orchestrator_workflow if state else None
    for decision in work.decisions if work else ():
        why = f" ({one_line(decision.rationale)})" if decision.rationale.strip() else ""
        yield one_line(f"{decision.type}: {decision.description}{why}")


def _waiting(runs: Sequence[RunHead]) -> Iterator[str]:
    for run in runs:
        status = run_status(run)
        if status.needs_you:
            yield f"{_name(run)} {status.word}: {status.meaning}"


def _next(
    runs: Sequence[RunHead], state: SessionState | None, gaps: Sequence[GapRecorded]
) -> Iterator[str]:
    task = one_line(state.active_task or "") if state else ""
    if not is_nothing(task):
        yield task
    for run in runs:
        if not _is_done(run) and run.pending_title:
            yield f"Step “{one_line(run.pending_title)}” of {_name(run)}"
    yield from (_gap(gap) for gap in gaps if gap.severity != "critical")


def _gap(gap: GapRecorded) -> str:
    return f"Left undone: {one_line(gap.summary)} ({gap.severity})"


def _described(run: RunHead) -> str:
    return f"{_name(run)} ({run.workflow_id}, {run.steps_done} of {run.step_count} steps)"


def _recaps(runs: Sequence[RunHead]) -> Iterator[Section]:
    texts = [
        f"{_name(run)}:\n\n" + "\n".join(f"> {line}".rstrip() for line in run.recap.splitlines())
        for run in runs
        if run.recap
    ]
    if texts:
        yield Section("Newest Notes", 2, "\n\n".join(texts))


def _name(run: RunHead) -> str:
    return f"“{one_line(run.goal) or run.workflow_id}”"


def _is_done(run: RunHead) -> bool:
    return run.status in ("complete", "complete_with_gaps")
