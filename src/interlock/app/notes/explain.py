"""Explain refusals about notes in words: an error and a hint for each."""

from typing import assert_never

from interlock.app.explain import explain
from interlock.app.explanation import Explanation
from interlock.app.notes.refusals import (
    BadNoteName,
    EmptyEdit,
    FolderNotTrusted,
    FolderOutsideProject,
    FrontmatterUnreadable,
    HandoffFileUnusable,
    NoProject,
    NoSuchNote,
    NoteChanged,
    NoteExists,
    NoteNotWritten,
    NotePathTaken,
    NoteRefusal,
    NotesConfigUnreadable,
    PublishPathTaken,
    SeveralNotes,
    SimilarNoteExists,
    TooManyFilterValues,
    UnexpectedEditArgument,
    VersionRequired,
)
from interlock.app.notes.wording import TOOL_WORDING, Wording
from interlock.app.refusals import NoSuchDirectory, RequestReused
from interlock.core.notes.edits import (
    AmbiguousSection,
    EditRefusal,
    EmptySearchText,
    FrontmatterConflict,
    MatchCountMismatch,
    NoSuchSection,
    TextNotFound,
)
from interlock.core.notes.frontmatter_values import BadValue
from interlock.core.notes.fts_query import label, one_line
from interlock.core.notes.operations import operations_taking


def explain_note_refusal(refusal: NoteRefusal, wording: Wording = TOOL_WORDING) -> Explanation:
    match refusal:
        case NoSuchDirectory() | RequestReused():
            return explain(refusal)
        case NoProject() | FolderOutsideProject() | FolderNotTrusted():
            return _explain_location(refusal, wording)
        case NotesConfigUnreadable():
            hint = "Correct the file, or move it away; an agent asks the user to."
            return Explanation("settings_broken", refusal.reason, hint)
        case NoSuchNote() | SeveralNotes():
            return _explain_missing_note(refusal)
        case (
            NoteExists() | NotePathTaken() | SimilarNoteExists() | NoteChanged() | VersionRequired()
        ):
            return _explain_conflict(refusal, wording)
        case BadNoteName():
            return Explanation(
                "note_refused",
                f"`{refusal.name}` cannot be a note: {refusal.reason}",
                "Choose a path below the notes folder, such as `decisions/use-sqlite.md`.",
            )
        case PublishPathTaken():
            return Explanation(
                "note_exists",
                f"`{refusal.path}` is somebody's own note, and was left alone",
                "Give that note another name; its place is where sessions are published.",
            )
        case NoteNotWritten():
            return Explanation("note_not_written", refusal.reason, refusal.hint)
        case FrontmatterUnreadable():
            return Explanation(
                "note_refused",
                f"The frontmatter of `{refusal.path}` cannot be read: {one_line(refusal.reason)}",
                "It was left as it is. Correct the block between the two `---` lines first.",
            )
        case BadValue():
            error = f"Nothing was written: {refusal.reason}"
            return Explanation("note_refused", error, refusal.instead)
        case HandoffFileUnusable():
            return Explanation(
                "invalid_arguments",
                f"`{refusal.path}` cannot be taken over: {refusal.reason}",
                "Name the hand-off file of the project, such as `HANDOFF.md`.",
            )
        case EmptyEdit():
            return Explanation(
                "invalid_arguments",
                f"The edit names neither an operation nor {wording.frontmatter}",
                f"Say what to change: an operation such as append, or {wording.frontmatter}.",
            )
        case UnexpectedEditArgument():
            return _explain_unexpected_argument(refusal, wording)
        case TooManyFilterValues():
            return Explanation(
                "invalid_arguments",
                f"{refusal.count} {refusal.filter_name} are more than can be looked for at once",
                f"Name at most {refusal.maximum}.",
            )
        case _:
            return _explain_edit_refusal(refusal, wording)


def _explain_unexpected_argument(refusal: UnexpectedEditArgument, wording: Wording) -> Explanation:
    argument = wording.arguments[refusal.argument]
    takers = " or ".join(wording.operation(name) for name in operations_taking(refusal.argument))
    if refusal.operation is None:
        error = f"{argument} comes with no operation, and nothing was changed"
        hint = f"Name one that takes it: {takers}."
    else:
        operation = wording.operation(refusal.operation)
        error = f"{operation} takes no {argument}, and nothing was changed"
        hint = f"{argument} goes with {takers}. Take one of these, or leave it out."
        if refusal.operation == "find_replace":
            hint += " More of the text says which place is meant."
    return Explanation("invalid_arguments", error, hint)


def _explain_location(
    refusal: NoProject | FolderOutsideProject | FolderNotTrusted, wording: Wording
) -> Explanation:
    if isinstance(refusal, NoProject):
        return Explanation(
            "no_project",
            f"`{refusal.path}` is in no project, and notes belong to one",
            f"{wording.place} `interlock init`, or `git init`, makes a directory a project.",
        )
    if isinstance(refusal, FolderNotTrusted):
        return Explanation(
            "not_allowed",
            f"The project's config puts its notes into `{refusal.folder}`, which nobody trusts",
            "The user looks at .interlock/config.toml and runs `interlock trust`.",
        )
    return Explanation(
        "no_project",
        f"The notes folder `{refusal.folder}` is not in the project, or is a link or behind one",
        "Make it a directory of the project. Only the user can put notes elsewhere: in config.toml"
        " of the data home, under [notes.folders], the project's directory = the folder.",
    )


def _explain_missing_note(refusal: NoSuchNote | SeveralNotes) -> Explanation:
    if isinstance(refusal, SeveralNotes):
        return Explanation(
            "several_notes",
            f"{'More than ' if refusal.has_more else ''}{len(refusal.paths)} notes are called"
            f" `{refusal.identifier}`",
            "Name one by its path.",
            refusal.paths,
        )
    return Explanation(
        "unknown_note",
        f"There is no note `{refusal.identifier}`",
        "Name one of those, or search for it." if refusal.similar else "Search for it.",
        refusal.similar,
    )


def _explain_conflict(
    refusal: NoteExists | NotePathTaken | SimilarNoteExists | NoteChanged | VersionRequired,
    wording: Wording,
) -> Explanation:
    match refusal:
        case NoteExists():
            return Explanation(
                "note_exists",
                f"`{refusal.path}` is there already, and nothing was written. From it to yours:"
                f"\n{refusal.diff}\n",
                f"Edit it ({wording.operation('append')}, {wording.operation('replace_section')},"
                f" …). To write over it, {wording.overwrite.format(refusal.version)}.",
            )
        case NotePathTaken():
            return Explanation(
                "note_exists",
                f"`{refusal.path}` is there already, and nothing was moved",
                "Choose another path.",
            )
        case SimilarNoteExists():
            return Explanation(
                "note_exists",
                f"`{refusal.path}` (“{label(refusal.title)}”) is about the same, and nothing"
                " was written",
                f"Read it and edit it. If yours is about something else, {wording.separate}.",
            )
        case NoteChanged():
            comparison = (
                f"There now:\n{refusal.current_text}"
                if refusal.current_text
                else f"The difference:\n{refusal.diff}"
            )
            return Explanation(
                "note_changed",
                f"`{refusal.path}` is not what you have read: somebody changed it, and nothing was"
                f" written. {comparison}\n",
                f"Bring the two together, and {wording.again.format(refusal.version)}."
                if refusal.version
                else "It is gone. Write it anew if it is still wanted.",
            )
        case VersionRequired():
            return Explanation(
                "note_refused",
                f"{wording.operation(refusal.action)} replaces what is there, so it needs the"
                " version you have read",
                f"Read `{refusal.path}`, and {wording.version}.",
            )
        case _:
            assert_never(refusal)


def _explain_edit_refusal(refusal: EditRefusal, wording: Wording) -> Explanation:
    match refusal:
        case EmptySearchText():
            error = f"{wording.operation('find_replace')} was given nothing to find"
            hint = f"Say which text is replaced: {wording.arguments['find']}."
        case TextNotFound():
            error = f"The note does not contain `{label(refusal.find, _TEXT_MAX)}`"
            hint = "Read the note and copy the text as it stands there."
            if refusal.closest:
                closest = label(refusal.closest, _TEXT_MAX)
                hint = f"Line {refusal.line} is like it: `{closest}`. Copy it."
        case MatchCountMismatch():
            is_one = refusal.found == 1
            error = f"The text is there {'once' if is_one else f'{refusal.found} times'}"
            error += f" ({_line_numbers(refusal)})"
            hint = f"{wording.arguments['expected']} {refusal.found} changes"
            hint += " it." if is_one else " all; more of the text, one of them."
        case NoSuchSection():
            sections = ", ".join(
                f"“{label(name, _TEXT_MAX)}”" for name in refusal.existing_sections[:_NAMES_MAX]
            )
            error = f"The note has no section “{label(refusal.section, _TEXT_MAX)}”"
            hint = f"It has {sections}." if sections else "It has no sections; append to it."
            suggestions = (one_line(refusal.closest),) if refusal.closest else ()
            return Explanation("note_refused", error, hint, suggestions)
        case AmbiguousSection():
            name = label(refusal.section, _TEXT_MAX)
            error = f"{refusal.found} sections are called “{name}” ({_line_numbers(refusal)})"
            find_replace = wording.operation("find_replace")
            hint = f"Name it with its hashes (`## Name`), or use {find_replace}."
            if not refusal.is_distinct_by_level:
                hint = (
                    f"Some have the same hashes too, so use {find_replace}: find the heading"
                    " together with the line above or below it, which no other has."
                )
        case FrontmatterConflict():
            error = "The text would become frontmatter, or make some of what is there"
            hint = f"Leave the `---` lines out; frontmatter is changed by {wording.frontmatter}."
        case _:
            assert_never(refusal)
    return Explanation("note_refused", error, hint)


_NAMES_MAX = 12
_TEXT_MAX = 120


def _line_numbers(refusal: MatchCountMismatch | AmbiguousSection) -> str:
    more = " and more" if refusal.found > len(refusal.lines) else ""
    lines = "line" if refusal.found == 1 else "lines"
    return f"{lines} {', '.join(map(str, refusal.lines))}{more}"
