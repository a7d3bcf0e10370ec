"""The briefing for an agent that begins or resumes a session: its state, the project's knowledge.

It stays within a budget and says what was left out. What a conversation was told before is not
repeated, as long as it still remembers: after it was cleared or compacted, all is new to it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.agents.hosts.claude_code_shell import CONFINED_TOOL, is_confined
from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.callers import session_record
from interlock.app.callers.agent_detection import can_ask, can_elicit
from interlock.app.context import App
from interlock.app.coordination.presence_lines import others_here, own_holdings
from interlock.app.failures import SettingsBroken
from interlock.app.gate import integrity
from interlock.app.gate.notes_location import BUDGET_TOKENS_DEFAULT
from interlock.app.gate.policy import load_effective_policy, policy_remarks
from interlock.app.protocol.carry_over import left_open_lines_here
from interlock.app.protocol.feature_reviews import settle_if_overdue
from interlock.app.protocol.presence import sessions_in_use
from interlock.app.refusals import ProjectNotOptedIn
from interlock.app.sessions.resume_check import changes_to_verify
from interlock.app.sessions.statuses import Observer
from interlock.app.sessions.workspace_snapshot import present_evidence
from interlock.core import ids
from interlock.core.gate.state import Mode, Policy, coding_advice
from interlock.core.ids import CHECKPOINTS, SessionId
from interlock.core.notes.budget import Briefing, BriefingPart, assemble_briefing
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.requirements import judge, profile_named, requirements_of
from interlock.core.session.start_evidence import (
    recorded_logbook,
    recorded_start_facts,
)
from interlock.core.session.state import HostSession, SessionState
from interlock.core.views.counting import progress_text
from interlock.core.views.delegated_work import decision_lines, delegation_lines
from interlock.core.views.progress_lines import SHOWN_BY, lost_parts, progress_parts
from interlock.store.failures import StoreFailure
from interlock.workspace.machine import disclosure_log

PROGRESS_TOKENS_MAX = 900  # in addition; some clients cut hook output at 2,500 tokens
PROGRESS_WHOLE_TOKENS_MAX = 8_000  # if the agent requests it
RECENT_RUNS_MAX = 50
SUMMARY_TOKENS_MAX = 1_000
CONFINED_SHELL = (
    "Other commands run too: before coding, shell commands run in a sandbox. They can write only to"
    " $TMPDIR, and only commands that read a remote or a daemon have network access."
)
_UNCONFINED_SHELL = (
    "Shell commands are not confined in this client on this machine. Before coding,"
    " {0} every command that is not known to be read-only."
)
ASKED_SHELL = _UNCONFINED_SHELL.format("the user is asked about")
DENIED_SHELL = _UNCONFINED_SHELL.format("Interlock denies")
FORGETTING_SOURCES = ("startup", "clear", "compact")
"""Sources after which a conversation has lost its briefing."""

CUTS_MARK = "cuts:"
"""The prefix of the entry that counts a conversation's compactions, among its digests."""

NO_CLIENT = (
    "This session has no connected client, so nothing enforces its mode. To connect one, run"
    f" `interlock install HOST` (HOST: {', '.join(NAMES)})."
)

_MODE_MEANINGS: Mapping[Mode, str] = {
    "analysis": "you can read, search, and run commands that only read; files cannot be edited",
    "planning": "you can read, plan, and run commands that only read; files cannot be edited",
    "coding": "you can edit files, within the rules of the project",
    "disabled": "Interlock restricts nothing",
}
_STRICT_ANALYSIS = "you can read and search; for commands, change to planning with `session`"


def mode_meaning(home: Path, worktree: Path, mode: Mode, *, at_ms: int) -> str:
    """Return what an agent can do in a mode, which depends on the profile of the project."""
    runs_none = mode == "analysis" and not runs_commands(home, worktree, mode, at_ms=at_ms)
    return _STRICT_ANALYSIS if runs_none else _MODE_MEANINGS[mode]


def runs_commands(home: Path, worktree: Path, mode: Mode, *, at_ms: int) -> bool:
    """Whether an agent can run commands in a mode. In strict, analysis runs none."""
    if mode != "analysis":
        return True
    try:
        root = integrity.governed_root(home, worktree)
        policy = load_effective_policy(home, root or worktree, at_ms=at_ms).policy
    except SettingsBroken:  # reported elsewhere
        return True
    return policy.profile != "strict"


def assemble_bootstrap(
    app: App,
    state: SessionState,
    remarks: Sequence[str] = (),
    *,
    already_told: frozenset[str] = frozenset(),
    goes_on: bool = False,
    progress_budget: int = PROGRESS_WHOLE_TOKENS_MAX,
) -> Briefing:
    """Return the briefing. `remarks` are about the project; parts in `already_told` are left out.

    `goes_on`: the session had work before, so the briefing lists the changes since. Plan, tasks and
    subagents have their own budget, so that a project's notes cannot displace them.
    """
    # Imported here: only this function needs these parts of the package.
    from interlock.app.notes.knowledge import project_knowledge  # noqa: PLC0415
    from interlock.app.notes.project_notes import OpenedNotes, open_notes  # noqa: PLC0415

    if settle_if_overdue(app, SessionId(state.session_id)):
        state = session_record.state_of(app, SessionId(state.session_id), app.log)
    parts, budget = list(_session_parts(app, state, remarks)), BUDGET_TOKENS_DEFAULT
    if goes_on:
        parts.insert(1, BriefingPart("Verify before you continue", _changed_lines(app, state)))
    try:
        notes = open_notes(app, Path(state.worktree))
        if isinstance(notes, OpenedNotes):
            budget = notes.budget
            knowledge = project_knowledge(app, notes, state)
            parts += knowledge if isinstance(knowledge, list) else []
    except StoreFailure as failure:
        # Of the index, most likely: a session begins nevertheless.
        parts.append(BriefingPart("Notes", (f"The notes cannot be read now: {failure}.",)))
    parts.append(
        BriefingPart("Earlier work here", tuple(left_open_lines_here(app, state, goes_on=goes_on)))
    )
    parts.append(BriefingPart("Who else is here", tuple(_other_session_lines(app, state))))
    briefing = assemble_briefing(parts, budget=budget, told_digests=already_told)
    progress = progress_briefing(state, already_told, budget=progress_budget)
    return msgspec.structs.replace(
        briefing,
        text="\n\n".join(filter(None, (briefing.text, progress.text))),
        shown_digests=(*briefing.shown_digests, *progress.shown_digests),
    )


def progress_briefing(
    state: SessionState,
    already_told: frozenset[str] = frozenset(),
    *,
    budget: int = PROGRESS_TOKENS_MAX,
) -> Briefing:
    """Return the plan, tasks and subagents of a session, for a compacted or new conversation.

    A conversation that was briefed and not compacted since made that progress itself.
    """
    has_memory = any(not mark.startswith(CUTS_MARK) for mark in already_told)
    return assemble_briefing(
        (lost_parts if has_memory else progress_parts)(state.progress),
        budget=budget,
        told_digests=already_told,
        shown_by=SHOWN_BY,
    )


def preview_bootstrap(app: App, workspace: Path, host: Host) -> Briefing | ProjectNotOptedIn:
    """Return the briefing that a new session in a project would get, without recording anything.

    A real session gets its id when it begins; here it is zeros. Whether its commands will be
    confined depends on how the client is started; the preview assumes that they are not.

    Raises:
        SettingsBroken: the project's config cannot be used.
    """
    root = integrity.governed_root(app.home, workspace)
    if root is None:
        return ProjectNotOptedIn(str(workspace))
    state = session_record.unrecorded_state(
        *(app, root, Conversation(host.name, ""), ids.session_id(bytes(ids.RANDOM_BYTES))),
        session_record.effective_policy_in(app, root).policy.first_mode,
    )
    remarks = policy_remarks(app.home, root, at_ms=app.clock.now_ms())
    return assemble_bootstrap(app, state, (describe_shell(host, {}, app.home), *remarks))


def describe_shell(host: Host, environment: Mapping[str, str], home: Path) -> str:
    """Return how shell commands are restricted before coding in this client, on this machine."""
    if is_confined(environment, CONFINED_TOOL, str(home)):
        return CONFINED_SHELL
    return ASKED_SHELL if host.asks else DENIED_SHELL


def session_summary(app: App, state: SessionState, remarks: Sequence[str] = ()) -> str:
    """Return the state of the session, without the project's notes."""
    return assemble_briefing(_session_parts(app, state, remarks), budget=SUMMARY_TOKENS_MAX).text


def tell_conversation(
    app: App, state: SessionState, remarks: Sequence[str], conversation: Conversation
) -> str:
    """Return the text for a conversation that begins or continues; empty if nothing is new."""
    host, name = conversation.host, conversation.id
    is_new = conversation.source in FORGETTING_SOURCES
    told = frozenset[str]() if is_new else disclosure_log.load_disclosed(app.home, host, name)
    goes_on = conversation.source != "startup" and state.version > 0
    briefing = assemble_bootstrap(
        *(app, state, remarks),
        already_told=told,
        goes_on=goes_on,
        progress_budget=PROGRESS_TOKENS_MAX,
    )
    with suppress(OSError):  # then the text is repeated next time
        digests = (*told, *briefing.shown_digests)
        disclosure_log.save_disclosed(app.home, host, name, digests, now_ms=app.clock.now_ms())
    return briefing.text


def forget_what_was_told(home: Path, conversation: Conversation) -> None:
    """Repeat the whole briefing after this point: the conversation was compacted."""
    with suppress(OSError):
        disclosure_log.forget_disclosed(home, conversation.host, conversation.id)


def notice_cuts(home: Path, conversation: Conversation, count: int) -> None:
    """Record how often the conversation was compacted; a new compaction resets the briefing."""
    host, name = conversation.host, conversation.id
    told = disclosure_log.load_disclosed(home, host, name)
    mark = f"{CUTS_MARK}{count}"
    if mark not in told:
        with suppress(OSError):
            disclosure_log.save_disclosed(home, host, name, (mark,), now_ms=0)


def _session_parts(app: App, state: SessionState, remarks: Sequence[str]) -> list[BriefingPart]:
    return [
        BriefingPart("Interlock session", tuple(_session_lines(app, state, remarks))),
        BriefingPart("Open runs", tuple(_open_run_lines(app, state))),
        BriefingPart("Delegated work", tuple(delegation_lines(state.work))),
        BriefingPart("Decisions", tuple(decision_lines(state.work))),
        BriefingPart("You hold", own_holdings(app, state)),
    ]


def _changed_lines(app: App, state: SessionState) -> tuple[str, ...]:
    stream = app.reader.stream(SessionId(state.session_id))
    head = stream.head if stream else None
    return changes_to_verify(head, state.work) if head else ()


def _session_lines(app: App, state: SessionState, remarks: Sequence[str]) -> Iterator[str]:
    yield f"Project: {state.project}. Where a tool asks for `sessionId`: {state.session_id}."
    mode, worktree, now_ms = state.current_mode, Path(state.worktree), app.clock.now_ms()
    meaning = "the project has not opted in, so Interlock restricts nothing"
    if integrity.governed_root(app.home, worktree):
        meaning = mode_meaning(app.home, worktree, mode, at_ms=now_ms)
    yield f"Mode: {mode} ({meaning})."
    is_shell_restricted = mode in ("analysis", "planning")
    if is_shell_restricted:
        yield _coding_line(app, state)
    if not is_shell_restricted or not runs_commands(app.home, worktree, mode, at_ms=now_ms):
        shell = (CONFINED_SHELL, ASKED_SHELL, DENIED_SHELL)
        remarks = [remark for remark in remarks if remark not in shell]
    if not state.host_sessions:
        yield NO_CLIENT
    if state.active_feature:
        yield f"Feature: {state.active_feature}."
    if state.active_task:
        yield f"Task: {state.active_task}."
    if phase := state.work.known_phase:
        yield f"Phase: {phase}."
    if logbook := recorded_logbook(state.protocol_start_evidence):
        yield f"Logbook: {logbook}."
    yield from _open_requirement_lines(app, state)
    yield from remarks


def _coding_line(app: App, state: SessionState) -> str:
    """Return how this session gets to coding."""
    try:
        policy = session_record.effective_policy_at(app, Path(state.worktree)).policy
    except SettingsBroken:  # reported elsewhere
        policy = Policy()
    stream = app.reader.stream(SessionId(state.session_id))
    attended = stream.head.attended if stream and stream.head else None
    asks = any(_asks(app, bound) for bound in state.host_sessions)
    return coding_advice(policy, can_ask=asks, may_code=bool(attended and attended.may_code))


def _asks(app: App, bound: HostSession) -> bool:
    """Whether a client can ask its user. A preview assumes that it can."""
    host = host_named(bound.host)
    if not bound.session:
        return host.asks or host.elicits
    who = (host, app.environment, app.process)
    return can_ask(*who) or can_elicit(*who)


def _open_requirement_lines(app: App, state: SessionState) -> Iterator[str]:
    """Yield the open requirements of the start, each with its remedy."""
    facts = recorded_start_facts(present_evidence(state))
    if all(fact.status != "open" for fact in facts.values()):
        return
    try:
        effective = session_record.effective_policy_at(app, Path(state.worktree))
        profile = profile_named(effective.policy.profile)
    except SettingsBroken:  # reported elsewhere
        profile = profile_named("")
    known = [one for one in requirements_of(profile, "start") if one.id in facts]
    for checked in judge(known, facts):
        if checked.is_blocking:
            when = "" if state.current_mode == "coding" else "In mode coding: "
            yield f"Required: {checked.step} ({checked.evidence}). {when}{checked.remedy}"
        elif checked.id == "notOnMain" and checked.status == "open" and profile != "light":
            yield (
                f"You are on `{checked.evidence}`: in mode coding, create a branch before you"
                " edit, unless the user wants none."
            )


def _open_run_lines(app: App, state: SessionState) -> Iterator[str]:
    rows = [
        row
        for row in app.reader.newest_runs(limit=RECENT_RUNS_MAX)
        if row.workspace == state.worktree and row.is_open and row.is_offered
    ]
    rows.sort(key=lambda row: row.session != state.session_id)
    holders = sessions_in_use(app, None).holders if rows else {}
    for row in rows:
        whose = "Your run" if row.session == state.session_id else "Open run"
        call = msgspec.json.encode({"runId": row.run}).decode()
        progress = progress_text(row.steps_done, row.steps_skipped, row.step_count)
        to_go_on = f"To continue: resume_session {call}"
        if row.session != state.session_id and (holder := holders.get(row.session)):
            # The call would make two agents work on the same step.
            to_go_on = f"{holder} works on it: leave it to that agent."
        what = f"{row.title}; at “{row.step}”, {progress}, {row.status.word}"
        of = f"of {row.workflow}"
        if row.workflow == CHECKPOINTS:
            of, what = "without a workflow", f"checkpoint “{row.title}”"
        yield f"{whose} {of}: {what}. {to_go_on}"
    if rows and (stream := app.reader.stream(rows[0].session, rows[0].run)):
        autonomy = stream.runs[rows[0].run].preferences.autonomy
        yield f"Autonomy: {autonomy}. Only the user changes it, with `/autonomy`."


def _other_session_lines(app: App, state: SessionState) -> Iterator[str]:
    """Yield the other agents on the project, then the sessions here without a registration."""
    registered = others_here(app, Path(state.worktree), state.session_id)
    yield from registered.lines
    observer = Observer(app)
    for other in app.reader.attended_sessions_in(state.worktree):
        attended = other.head.attended
        if other.session == state.session_id or not attended or attended.status != "active":
            continue
        if other.session in registered.sessions:
            continue
        status = observer.status(other.session, other.head, None).main
        if status.word in ("active", "idle"):
            task = f", task: {attended.task}" if attended.task else ""
            yield f"{other.session} in mode {attended.mode}{task}."
