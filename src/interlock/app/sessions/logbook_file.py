"""The logbook of a session in its project: make it, find it, and write its region from the log."""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.core.ids import SessionId
from interlock.core.protocol import logbook
from interlock.core.session import state as states
from interlock.core.session.events import Envelope, ObservationRecorded, ProtocolStarted
from interlock.core.session.protocol_events import (
    ProtocolEnded,
    ProtocolEndRefused,
    SessionCompleted,
)
from interlock.core.session.requirements import Requirement, fact_of
from interlock.core.session.start_evidence import recorded_branch, recorded_logbook
from interlock.core.session.state import SessionState
from interlock.core.views.logbook_page import logbook_region, recorded_profile
from interlock.store.log_reader import LogReader
from interlock.workspace.failures import FolderFailure
from interlock.workspace.projects import logbooks, project
from interlock.workspace.projects.settings import protocol_in

_BRANCH_EVENTS = (ProtocolStarted, ObservationRecorded)
SEARCHED_MAX = 50  # newest logbooks in which one is searched that no event names


class SessionLog(msgspec.Struct, frozen=True):
    """The facts about a session that its logbook needs."""

    session: SessionId
    root: Path
    envelopes: tuple[Envelope, ...]
    state: SessionState

    @property
    def profile(self) -> str:
        return recorded_profile(self.envelopes)

    @property
    def last_branch(self) -> str:
        """The last known branch of the session; empty if unknown."""
        at_the_end = fact_of(self.state.protocol_end_evidence.get("branchReverified", "skipped: "))
        if at_the_end.status != "skipped":
            return at_the_end.evidence
        observed = [one.event for one in self.envelopes if isinstance(one.event, _BRANCH_EVENTS)]
        last = observed[-1] if observed else None
        if isinstance(last, ProtocolStarted):
            return recorded_branch(last.evidence)
        return (last.git_branch if last else None) or ""


class LogbookFile(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of writing a logbook."""

    path: str = ""
    """From the root of the project; empty if there is none."""
    fault: str = ""
    """Why it was not written; empty if it is as it should be."""
    is_changed: bool = False


def load_session_log(reader: LogReader, session: SessionId) -> SessionLog:
    envelopes = tuple(reader.history(session))
    state = states.fold(envelopes)
    return SessionLog(session, Path(state.worktree), envelopes, state)


def render_region(log: SessionLog, events: int | None = None) -> str:
    """Return the region of the logbook; after so many events, if a number is given.

    Raises:
        SettingsBroken: the end was tried, and the config of the project cannot be used.
    """
    envelopes = log.envelopes[:events]
    has_end = any(isinstance(one.event, ProtocolEnded | ProtocolEndRefused) for one in envelopes)
    added = added_requirements(log.root) if has_end else ()
    return logbook_region(log.session, envelopes, added)


def added_requirements(root: Path) -> tuple[Requirement, ...]:
    """Return the requirements that the project has added.

    Raises:
        SettingsBroken: its config cannot be used.
    """
    return protocol_in(root / project.CONFIG).requirements


def write_logbook(log: SessionLog) -> LogbookFile:
    """Write the region of the logbook; one that is missing is made. People's text stays.

    Raises:
        SettingsBroken: the end was tried, and the config of the project cannot be used.
    """
    if log.profile == "light":
        return LogbookFile(fault="the profile light has none")
    region = render_region(log)
    path = find_logbook(log)
    try:
        if not path or logbooks.read_logbook(log.root, path) is None:
            path = path or str(create_logbook(log.root, log.envelopes[0].at_ms))
        is_changed = logbooks.rewrite_logbook(
            log.root, path, lambda text: logbook.with_region(text or _new_text_for(path), region)
        )
    except (OSError, FolderFailure) as failure:
        return LogbookFile(path, _reason(failure))
    return LogbookFile(path, is_changed=is_changed)


def _new_text_for(path: str) -> str:
    """The text of a logbook that somebody has deleted, before its region is written."""
    day, _, number = Path(path).stem.partition("-session-")
    return logbook.empty_logbook(day, int(number) if number.isdigit() else 1)


def create_logbook(root: Path, at_ms: int) -> Path:
    """Make a logbook without a region, and return its path from the root.

    Raises:
        OSError: it cannot be written, or would not be in the project.
    """
    # In a clone nobody has run `init`, which does that too.
    project.exclude_from_git(root, f"{logbooks.DIRECTORY}/")
    day = logbook.day_of(at_ms)
    return logbooks.create_logbook(root, day, lambda number: logbook.empty_logbook(day, number))


def find_logbook(log: SessionLog) -> str:
    """Return the path of the logbook from the root of the project; empty if there is none."""
    if path := recorded_logbook(log.state.protocol_start_evidence):
        # It may come from an imported session, and name any file.
        return path if Path(path).parent == logbooks.DIRECTORY else ""
    for path in logbooks.list_logbooks(log.root)[:SEARCHED_MAX]:
        try:
            file = logbooks.read_logbook(log.root, path)
        except (OSError, FolderFailure):
            continue
        region = logbook.find_region(file.text) if file else None
        if region and region.session == log.session:
            return path
    return ""


def delete_untouched_logbook(log: SessionLog) -> None:
    """Delete the logbook if nobody has written into it; one that cannot be read stays."""
    path = find_logbook(log)
    try:
        file = logbooks.read_logbook(log.root, path) if path else None
        if file and logbook.is_untouched(file.text):
            logbooks.delete_logbook(log.root, path)
    except (OSError, FolderFailure):
        return


def refresh_logbook(app: App, session: SessionId) -> LogbookFile:
    """Write the logbook of a session from the log.

    One that was committed with the end of the session stays as it was committed.

    Raises:
        SettingsBroken: the end was tried, and the config of the project cannot be used.
    """
    log = load_session_log(app.reader, session)
    ends = [one.event for one in log.envelopes if isinstance(one.event, SessionCompleted)]
    is_committed = bool(ends and ends[-1].commit)
    return LogbookFile(find_logbook(log)) if is_committed else write_logbook(log)


def _reason(failure: OSError | FolderFailure) -> str:
    return (isinstance(failure, OSError) and failure.strerror) or str(failure)
