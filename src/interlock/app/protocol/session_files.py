"""The single effects of the end of a session on its own files: each may be repeated.

The files are its logbook and its summary note. Only what people wrote in them is linted: the rest
is ours, and is written again from the log.
"""

from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.gate.notes_location import NotesLocation, notes_location
from interlock.app.gate.trust import trust_status
from interlock.app.sessions.logbook_file import (
    LogbookFile,
    SessionLog,
    find_logbook,
    load_session_log,
    refresh_logbook,
)
from interlock.core.ids import SessionId
from interlock.core.protocol import logbook
from interlock.core.session.protocol_events import SessionCompleted
from interlock.core.session.requirements import Fact
from interlock.core.views.logbook_page import cell, done_items, open_item_lines
from interlock.core.views.session_note import session_note_name, user_text_in
from interlock.core.views.session_summary import summary_page
from interlock.store.failures import StoreFailure
from interlock.workspace.failures import FolderFailure
from interlock.workspace.files import markdown_lint
from interlock.workspace.files.atomic_file import FileContent
from interlock.workspace.files.markdown_lint import LinterFailed
from interlock.workspace.git.changed_files import GIT_SECONDS, uncommitted_files
from interlock.workspace.git.commits import CommitOutcome, commit_files
from interlock.workspace.projects import logbooks, project
from interlock.workspace.projects.notes_folder import NotesFolder
from interlock.workspace.projects.settings import protocol_in

NAMED_PROBLEMS_MAX = 5
_LIGHT = "the profile has none"


class PeopleText(msgspec.Struct, frozen=True):
    """A text that people wrote into a file of the session."""

    path: str
    """From the root of the project, where it is in it."""
    text: str
    is_logbook: bool = False
    lines_before: int = 0
    """Lines of ours that stand before it, or in it."""


def write_logbook(app: App, session: SessionId) -> LogbookFile:
    """Write the generated region of the logbook, and fill sections that people left empty.

    One that was committed with the end of the session stays as it was committed.

    Raises:
        SettingsBroken: the config of the project cannot be used.
    """
    written = refresh_logbook(app, session)
    log = load_session_log(app.reader, session)
    if written.fault or any(
        isinstance(one.event, SessionCompleted) and one.event.commit for one in log.envelopes
    ):
        return written
    sections = ((logbook.DONE_HEADING, done_items(log.state, log.envelopes)),)
    sections += ((logbook.OPEN_HEADING, _left_open(log)),)

    def fill(text: str | None) -> str:
        filled = text or ""
        for heading, items in sections:
            filled = logbook.with_text_under(filled, heading, items)
        return filled

    try:
        is_filled = logbooks.rewrite_logbook(log.root, written.path, fill)
        file = logbooks.read_logbook(log.root, written.path)
    except (OSError, FolderFailure) as failure:
        return LogbookFile(written.path, str(failure))
    text = file.text if file else ""
    empty = [heading for heading, _ in sections if not logbook.text_under(text, heading)]
    fault = f"nothing is under {' and '.join(empty)}" if empty else ""
    return LogbookFile(written.path, fault, is_changed=written.is_changed or is_filled)


def _left_open(log: SessionLog) -> tuple[str, ...]:
    items = [one.removeprefix("- ") for one in open_item_lines(log.state, log.envelopes)]
    files = uncommitted_files(log.root, seconds=GIT_SECONDS)
    if files:
        items.append(cell(f"Not committed: {', '.join(files)}"))
    nothing = "Nothing: no run, gap, review, delegation, hand-off or uncommitted file is open."
    return tuple(items) or (nothing,)


def write_summary_note(app: App, session: SessionId) -> Fact:
    """Publish the summary of the session as a note of the project; a failure is only told."""
    # Imported here: notes need more of the package than the rest of this module.
    from interlock.app.notes.project_notes import OpenedNotes, open_notes  # noqa: PLC0415
    from interlock.app.notes.results import NoteChangeResult  # noqa: PLC0415
    from interlock.app.protocol.publish import publish_page  # noqa: PLC0415

    log = load_session_log(app.reader, session)
    if log.profile == "light":
        return Fact("skipped", _LIGHT)
    page = summary_page(session, log.state, log.envelopes, _written_text(log))
    try:
        notes = open_notes(app, log.root)
        result = publish_page(app, notes, page) if isinstance(notes, OpenedNotes) else notes
    except StoreFailure as failure:
        return Fact("skipped", f"not written: {failure}")
    if isinstance(result, NoteChangeResult):
        return Fact("done", page.name)
    return Fact("skipped", f"not written: {result.explain().error}")


def _written_text(log: SessionLog) -> str:
    try:
        path = find_logbook(log)
        file = logbooks.read_logbook(log.root, path) if path else None
    except (OSError, FolderFailure):
        return ""
    return logbook.text_under(file.text, logbook.DONE_HEADING) if file else ""


def lint_session_files(app: App, session: SessionId) -> Fact:
    """Repair the Markdown that people wrote into the logbook; tell what is left to be done."""
    log = load_session_log(app.reader, session)
    texts = people_texts(app, log)
    fact, repaired = lint_people_text(texts)
    for before, after in zip(texts, repaired, strict=True):
        if before.is_logbook and after != before.text:
            try:
                logbooks.rewrite_logbook(
                    log.root,
                    before.path,
                    lambda text, fixed=after, old=before.text: _with_people_text(text, old, fixed),
                )
            except (OSError, FolderFailure) as failure:
                return Fact("open", f"{before.path} cannot be written: {failure}")
    return fact


def people_texts(app: App, log: SessionLog) -> list[PeopleText]:
    """Read what people wrote into the files of the session; what cannot be read is left out."""
    texts: list[PeopleText] = []
    try:
        path = find_logbook(log)
        file = logbooks.read_logbook(log.root, path) if path else None
        if file and not logbook.is_untouched(file.text):
            region = logbook.find_region(file.text)
            lines = region.text.count("\n") - 1 if region else 0
            people = logbook.outside_region(file.text)
            texts.append(PeopleText(path, people, is_logbook=True, lines_before=lines))
        if note := _summary_file(app, log):
            folder, name = note
            content = folder.read(name)
            text = user_text_in(content.text) if isinstance(content, FileContent) else ""
            if text and isinstance(content, FileContent):
                lines = content.text[: content.text.rfind(text)].count("\n")
                texts.append(PeopleText(name, f"{text}\n", lines_before=lines))
    except (OSError, FolderFailure):
        return texts
    return texts


def lint_people_text(texts: list[PeopleText]) -> tuple[Fact, list[str]]:
    """Lint the texts; return the fact about what is left, and each text repaired."""
    if not texts:
        return Fact("done", "nobody has written into them"), []
    try:
        linted = markdown_lint.lint_texts([one.text for one in texts])
    except LinterFailed as failure:
        reason = f"the linter could not be run: {failure}"
        return Fact("skipped", reason), [one.text for one in texts]
    problems = [
        f"{one.path}:{problem.line + one.lines_before}: {problem.rule} {problem.description}"
        for one, result in zip(texts, linted, strict=True)
        for problem in result.problems
    ]
    repaired = [result.text for result in linted]
    if not problems:
        return Fact("done", f"clean: {', '.join(one.path for one in texts)}"), repaired
    more = len(problems) - NAMED_PROBLEMS_MAX
    named = "; ".join(problems[:NAMED_PROBLEMS_MAX])
    return Fact("open", f"{named}{f' and {more} more' if more > 0 else ''}"), repaired


def _with_people_text(text: str | None, old: str, new: str) -> str:
    """The file with the repaired text, unless somebody has changed it since it was linted."""
    if text is None or logbook.outside_region(text) != old:
        return text or old
    region = logbook.find_region(text)
    return logbook.with_region(new, region.text) if region else new


def commit_session_files(app: App, session: SessionId, job: str) -> CommitOutcome:
    """Commit the session's own files, if the project wants that, and nothing else.

    Raises:
        SettingsBroken: the config of the project cannot be used.
    """
    log = load_session_log(app.reader, session)
    if not protocol_in(log.root / project.CONFIG).commits:
        return CommitOutcome(
            reason="the project does not ask for it ([protocol] commit)", is_wanted=False
        )
    if not trust_status(app.home, log.root).is_trusted:
        # It makes the session's files public, which a clone must not decide.
        return CommitOutcome(reason="[protocol] commit is not trusted: `interlock trust`")
    paths = [path for path in (find_logbook(log), _summary_path(app, log)) if path]
    own = [path for path in paths if (log.root / path).is_file() and _is_inside(log.root, path)]
    if not own:
        return CommitOutcome(reason="there are none in the project")
    return commit_files(log.root, own, f"chore: session {session} artifacts", job)


def _is_inside(root: Path, path: str) -> bool:
    return (root / path).resolve() == root.resolve() / path


def _summary_path(app: App, log: SessionLog) -> str:
    found = _summary_file(app, log)
    path = found[0].root / found[1] if found else None
    return str(path.relative_to(log.root)) if path and path.is_relative_to(log.root) else ""


def _summary_file(app: App, log: SessionLog) -> tuple[NotesFolder, str] | None:
    location = notes_location(app.home, log.root)
    if not isinstance(location, NotesLocation):
        return None
    return NotesFolder(location.folder), f"{session_note_name(log.session)}-summary.md"
