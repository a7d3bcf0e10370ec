"""Brief the model of a driver as an attended agent is, and record the start of its session.

Both are about the user's checkout: the worktree has only what is committed, and the model can write
there. The branch is that of the worktree.
"""

from pathlib import Path

import msgspec

from interlock.app.append_loop import append_plan
from interlock.app.callers.session_record import effective_policy_in, state_of
from interlock.app.callers.start_evidence import observe_start
from interlock.app.context import App
from interlock.app.gate.notes_location import BUDGET_TOKENS_DEFAULT
from interlock.app.notes.knowledge import project_knowledge
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.protocol.carry_over import left_open_lines_here
from interlock.app.refusals import NoSuchSession
from interlock.app.sessions.lookup import find_session
from interlock.app.sessions.workspace_snapshot import observe_workspace
from interlock.core.ids import SessionId
from interlock.core.notes.budget import BriefingPart, assemble_briefing
from interlock.core.protocol import gated_session
from interlock.core.session.plan import Plan
from interlock.core.session.requirements import Fact
from interlock.core.session.start_evidence import open_at_start, renew_evidence
from interlock.core.session.unattended_control import NotUnattended
from interlock.store.failures import StoreFailure
from interlock.workspace.projects import project

INSTRUCTIONS = "instructions.md"
"""The file in the data home in which the user instructs every model of a driver."""
INSTRUCTIONS_CHARS_MAX = 16_000
_LOGBOOK = Fact("skipped", "the driver's journal is the record of an unattended session")


class DriverBriefing(msgspec.Struct, frozen=True, rename="camel"):
    constraints: str
    """The part that every conversation gets."""
    knowledge: str
    """The whole briefing, constraints included."""
    instructions: str
    """The user's own, for every project."""
    blockers: tuple[str, ...] = ()
    """The requirements of the session's start that must be met and are not."""


def brief_driver(
    app: App, session_id: str, worktree: Path
) -> DriverBriefing | NoSuchSession | NotUnattended:
    """Return what the model of a session is told, after recording the evidence of its start."""
    session = find_session(app.reader, session_id)
    if isinstance(session, NoSuchSession):
        return session
    head = app.reader.head(session)
    if head.unattended is None:
        return NotUnattended(session)
    checkout = Path(head.unattended.order.repository)
    root = project.root_of(checkout)
    is_governed = root is not None and (root / project.CONFIG).exists()
    blockers = _record_start(app, session, root, worktree) if root and is_governed else ()
    parts, budget = _knowledge(app, session, checkout)
    return DriverBriefing(
        constraints=assemble_briefing(parts[:1], budget=budget).text,
        knowledge=assemble_briefing(parts, budget=budget).text,
        instructions=_instructions(app.home),
        blockers=blockers,
    )


def _record_start(app: App, session: SessionId, root: Path, worktree: Path) -> tuple[str, ...]:
    """Record what has changed in the evidence; return the open requirements with their remedies."""
    facts = observe_start(
        *(app, root, None, observe_workspace(worktree)), session=session, keeps_logbook=False
    )
    recorded = state_of(app, session, app.log).protocol_start_evidence
    evidence = renew_evidence(recorded, {**facts, "sessionLogCreated": _LOGBOOK})
    profile = effective_policy_in(app, root).policy.profile
    if evidence != recorded:

        def decide() -> Plan:
            stream = app.log.known_stream(session)
            return gated_session.restart(stream, evidence, profile, at_ms=app.clock.now_ms())

        append_plan(app, decide)
    return tuple(
        f"{one.step} ({one.id}: {one.evidence}). {one.remedy}"
        for one in open_at_start(evidence, profile)
    )


def _knowledge(app: App, session: SessionId, checkout: Path) -> tuple[list[BriefingPart], int]:
    """Return the parts of the briefing, the constraints first, and its budget in tokens."""
    state, budget = state_of(app, session), BUDGET_TOKENS_DEFAULT
    parts = [BriefingPart("Constraints", ())]
    try:
        notes = open_notes(app, checkout)
        if isinstance(notes, OpenedNotes):
            budget = notes.budget
            knowledge = project_knowledge(app, notes, state)
            parts = knowledge if isinstance(knowledge, list) else parts
    except StoreFailure as failure:  # of the index, most likely: the work begins nevertheless
        parts.append(BriefingPart("Notes", (f"The notes cannot be read now: {failure}.",)))
    left_open = tuple(left_open_lines_here(app, state, goes_on=False))
    return [*parts, BriefingPart("Left open in the user's checkout", left_open)], budget


def _instructions(home: Path) -> str:
    try:
        with open(home / INSTRUCTIONS, encoding="utf-8", errors="replace") as file:
            return file.read(INSTRUCTIONS_CHARS_MAX).strip()
    except OSError:
        return ""
