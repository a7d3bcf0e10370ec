"""The end of a session: what it is judged by, and the single effects of it.

`check_end` observes everything at once and writes nothing. The effects are in
`app.protocol.session_files`; whoever carries out the end does them one after the other, each as
often as it likes, and records what came of them (`end_evidence`).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.protocol.session_files import PeopleText, lint_people_text, people_texts
from interlock.app.runs.evidence import command_record
from interlock.app.sessions.logbook_file import (
    LogbookFile,
    SessionLog,
    added_requirements,
    find_logbook,
    load_session_log,
)
from interlock.app.sessions.workspace_snapshot import present_evidence
from interlock.core.ids import SessionId
from interlock.core.protocol import end_facts, logbook
from interlock.core.protocol.end_facts import WorktreeState
from interlock.core.session.evidence import CommandRecord
from interlock.core.session.requirements import (
    CheckedRequirement,
    CommandVerifier,
    Fact,
    ProtocolProfile,
    Requirement,
    evidence_text,
    fact_of,
    judge,
    profile_named,
    requirements_of,
)
from interlock.core.session.start_evidence import open_at_start, recorded_start_facts
from interlock.core.views.logbook_page import starting_commit
from interlock.workspace.failures import FolderFailure
from interlock.workspace.git import changed_files, state
from interlock.workspace.projects import logbooks

AT_THE_END = Fact("open", "written when the session ends", is_pending=True)


class EndReport(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that the end of a session is judged by, as it is now."""

    session: SessionId
    profile: ProtocolProfile
    requirements: tuple[CheckedRequirement, ...]

    @property
    def blockers(self) -> tuple[str, ...]:
        """All that stands in the way, each with its remedy."""
        return tuple(
            f"{one.id}: {one.evidence}. {one.remedy}".rstrip()
            for one in self.requirements
            if one.is_blocking
        )


def check_end(
    app: App, session: SessionId, summary: str = "", profile: ProtocolProfile | None = None
) -> EndReport:
    """Judge whether the session could end now. Nothing is written.

    `summary` is what the caller says was done. Without a profile it is the one under which the
    session began.

    Raises:
        SettingsBroken: the config of the project cannot be used.
    """
    log = load_session_log(app.reader, session)
    chosen = profile or profile_named(log.profile)
    requirements = requirements_of(chosen, "end", added_requirements(log.root))
    texts = people_texts(app, log)
    log_fact = _log_fact(log, summary)
    facts = {
        "sessionLogValidated": log_fact,
        "validationPassed": log_fact if log_fact.status == "skipped" else AT_THE_END,
        "brainMemoryUpdated": _note_fact(app, log),
        "secretsScanned": end_facts.secrets_fact(
            {"the summary": summary, **{one.path: one.text for one in texts}}
        ),
        "markdownLintRan": _lint_fact(texts),
        **_work_facts(app, log, requirements),
    }
    waived = ((key, fact_of(text)) for key, text in log.state.protocol_end_evidence.items())
    facts |= {key: fact for key, fact in waived if fact.is_waived}
    return EndReport(session, chosen, judge(requirements, facts))


def _log_fact(log: SessionLog, summary: str) -> Fact:
    if log.profile == "light":
        return Fact("skipped", "the profile has none")
    path = find_logbook(log)
    try:
        file = logbooks.read_logbook(log.root, path) if path else None
    except (OSError, FolderFailure) as failure:
        return Fact("open", f"{path} cannot be read: {failure}")
    is_said = summary.strip() or end_facts.tells_what_was_done(log.envelopes)
    if not is_said and not (file and logbook.text_under(file.text, logbook.DONE_HEADING)):
        return Fact("open", f"nothing says what was done ({path or 'there is no logbook'})")
    return AT_THE_END


def _note_fact(app: App, log: SessionLog) -> Fact:
    if log.profile == "light":
        return Fact("skipped", "the profile has none")
    location = notes_location(app.home, log.root)
    if isinstance(location, NotesLocation):
        return AT_THE_END
    # It is published later, once somebody has put that right.
    return Fact("skipped", f"not written: {location.explain().error}")


def _lint_fact(texts: list[PeopleText]) -> Fact:
    fact, _ = lint_people_text(texts)
    return AT_THE_END if fact.status == "done" else fact


def _work_facts(
    app: App, log: SessionLog, requirements: tuple[Requirement, ...]
) -> dict[str, Fact]:
    """The facts that depend on what was done: git, commands, verdicts, files."""
    verdicts = log.state.work.verdicts
    tree = observe_worktree(log)
    record = CommandRecord()
    if any(isinstance(one.verifier, CommandVerifier) for one in requirements):
        record = command_record(app, app.reader.head(log.session))
    start = present_evidence(log.state)
    on_branch = recorded_start_facts(start).get("notOnMain", Fact("skipped", "no git"))
    is_there = any(_has_file(log.root, f"{at}{end_facts.HANDOFF_FILE}") for at in ("", ".agents/"))
    facts = {
        "checklistComplete": end_facts.checklist_fact(tree, open_at_start(start, log.profile)),
        "handoffPreserved": end_facts.handoff_fact(tree, is_there=is_there),
        "branchReverified": end_facts.branch_fact(tree, on_branch),
        "gitCommitted": end_facts.commit_fact(tree),
        "qaValidation": end_facts.qa_fact(tree, verdicts),
        "criticValidation": end_facts.verdict_fact("critic", verdicts),
    }
    for one in requirements:
        if one.verifier:
            facts[one.id] = end_facts.added_fact(
                one,
                record=record,
                verdicts=verdicts,
                has_file=lambda name: _has_file(log.root, name),
            )
    return facts


def observe_worktree(log: SessionLog) -> WorktreeState:
    """Observe what git says about the work of a session."""
    git = state.observe(log.root)
    if git is None:
        changed_ms = changed_files.last_change_ms(log.root, end_facts.is_code)
        return WorktreeState(code_changed_ms=changed_ms)
    return WorktreeState(
        git.head or "",
        changed_files.files_changed_since(log.root, starting_commit(log.envelopes)),
        changed_files.uncommitted_files(log.root, seconds=changed_files.GIT_SECONDS),
        changed_files.last_change_ms(log.root, end_facts.is_code),
    )


def _has_file(root: Path, name: str) -> bool:
    """Whether the file is in the project, and not merely behind a link that leads out of it."""
    with suppress(OSError, RuntimeError, ValueError):
        path = (root / name).resolve()
        return path.is_relative_to(root.resolve()) and path.is_file()
    return False


def end_evidence(
    report: EndReport, *, log: LogbookFile, problems: Sequence[str], note: Fact, lint: Fact
) -> dict[str, str]:
    """Return the evidence to record, from what came of the effects.

    `problems` are what `interlock check session-log` finds in the logbook that was written.

    The commit of the session's own files comes after it: it holds what is written from it.
    """
    checked = {one.id: Fact(one.status, one.evidence) for one in report.requirements}
    found = Fact("open", "; ".join(problems)) if problems else Fact("done", "no findings")
    done: Mapping[str, Fact] = {
        "sessionLogValidated": Fact("open", log.fault) if log.fault else Fact("done", log.path),
        "validationPassed": found,
        "brainMemoryUpdated": note,
        "markdownLintRan": lint,
    }
    if report.profile == "light":
        done = {"brainMemoryUpdated": note}
    facts = {**checked, **{key: fact for key, fact in done.items() if _may_tell(checked, key)}}
    return {key: evidence_text(fact) for key, fact in facts.items()}


def _may_tell(checked: Mapping[str, Fact], key: str) -> bool:
    """Whether the result of an effect is evidence: not for a waived requirement."""
    return key in checked and not checked[key].is_waived
