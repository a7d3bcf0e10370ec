"""A hand-off file is taken over: as notes, with a session that goes on, once."""

import os
from pathlib import Path

import pytest

from interlock.app.callers import session_record
from interlock.app.callers.caller import local_caller
from interlock.app.context import App, open_app
from interlock.app.handoff.export import session_handoff
from interlock.app.handoff.migrate import MigrationReport, migrate_handoff
from interlock.app.notes.check import check_notes
from interlock.app.notes.project_notes import OpenedNotes, open_notes
from interlock.app.notes.refusals import BadNoteName, NoteNotWritten
from interlock.app.notes.results import NotesCheckReport
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.bootstrap import assemble_bootstrap
from interlock.core.handoff.page import handoff_page
from interlock.core.handoff.parse import HandoffStep, parse_handoff
from interlock.core.ids import SessionId
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.note import Note
from interlock.core.protocol.delegation import DelegationRequest
from interlock.core.protocol.gated_session import WorkUpdate
from interlock.core.refusal import PlainRefusal
from interlock.core.session.state import SessionState
from interlock.workspace.projects.named_files import BYTES_MAX
from tests.app.callers.conversations import begun
from tests.unprivileged import nobody, place_of_nobody

FILES = Path(__file__).parents[2] / "core" / "handoff" / "samples"
SMALL = (
    "## Active Feature\nDark mode\n\n## Decisions\n- Variables, not classes\n\n"
    "## Blockers\n- Kim is away\n\n## Next Steps\n- Ask design\n\n## Gotchas\nRun `make` first.\n"
)


def taken_over(
    app: App, root: Path, text: str | bytes = SMALL, *, is_dry_run: bool = False
) -> MigrationReport:
    done = outcome(app, root, text, is_dry_run=is_dry_run)
    assert isinstance(done, MigrationReport), done
    return done


def outcome(app: App, root: Path, text: str | bytes, *, is_dry_run: bool = False) -> object:
    path = root / "HANDOFF.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = migrate_handoff(
        app, local_caller(app, root), opened(app, root), path, is_dry_run=is_dry_run
    )
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    return found


def opened(app: App, root: Path) -> OpenedNotes:
    notes = open_notes(app, root)
    assert isinstance(notes, OpenedNotes), notes
    return notes


def files(root: Path) -> dict[str, bytes]:
    folder = root / ".interlock" / "notes"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.md"))
        if path.parent.name != "sessions"
    }


def note(root: Path, path: str) -> Note:
    return parse_note((root / ".interlock" / "notes" / path).read_text(), path=path)


def state(app: App, session: str | None) -> SessionState:
    assert session is not None
    return session_record.state_of(app, session)  # pyright: ignore[reportArgumentType]


def test_a_file_becomes_notes_with_names_of_their_types(app: App, root: Path) -> None:
    done = taken_over(app, root)

    assert [(one.result, one.type, one.path) for one in done.notes[:2]] == [
        ("created", "feature", "planning/FEATURE-001-dark-mode.md"),
        ("created", "decision", "decisions/ADR-001-variables-not-classes.md"),
    ]
    assert done.notes[2].path.startswith("handoff-20")
    feature = note(root, done.notes[0].path)
    assert (feature.type, feature.front.values["status"]) == ("feature", "in-progress")
    assert feature.front.values["source"] == "HANDOFF.md"
    assert [said.text for said in feature.observations] == ["Kim is away"]
    rest = note(root, done.notes[2].path)
    assert rest.body.endswith("\n\n## Gotchas\nRun `make` first.\n")


def test_the_names_and_statuses_are_those_that_a_check_wants(app: App, root: Path) -> None:
    done = taken_over(app, root, (FILES / "early.markdown").read_bytes())
    unnamed = taken_over(app, root, "## Next Steps\n- Go on\n")

    assert len(done.notes) == 5
    assert [one.path for one in unnamed.notes] == [
        "specs/general/tasks/TASK-001-go-on-from-handoff-md.md"
    ]
    checked = check_notes(app, opened(app, root))
    assert isinstance(checked, NotesCheckReport)
    assert [found for found in checked.findings if found.severity != "hint"] == []


def test_numbers_go_on_after_those_that_are_there(app: App, root: Path) -> None:
    folder = root / ".interlock" / "notes" / "decisions"
    folder.mkdir(parents=True)
    (folder / "ADR-007-use-sqlite.md").write_text("---\ntype: decision\n---\n")

    text = "## Decisions\n- One\n- Two\n"
    foreseen = taken_over(app, root, text, is_dry_run=True)
    done = taken_over(app, root, text)

    assert [one.path for one in done.notes] == [
        "decisions/ADR-008-one.md",
        "decisions/ADR-009-two.md",
    ]
    assert foreseen.notes == done.notes


@pytest.mark.parametrize(
    "name", ["boxes.markdown", "tables.markdown", "short.markdown", "early.markdown"]
)
def test_a_dry_run_writes_nothing_and_a_repeated_import_changes_nothing(
    app: App, root: Path, name: str
) -> None:
    content = (FILES / name).read_bytes()
    before = sorted(root.rglob("*"))

    foreseen = taken_over(app, root, content, is_dry_run=True)

    assert sorted(root.rglob("*")) == sorted([*before, root / "HANDOFF.md"])
    assert app.reader.attended_sessions_in(str(root)) == []
    assert "would go on with" in foreseen.remark
    first = taken_over(app, root, content)
    assert foreseen.notes == first.notes
    assert {one.result for one in first.notes} == {"created"}
    written, sessions = files(root), app.reader.attended_sessions_in(str(root))

    again = open_app(app.home)  # another process knows no more than the files and the log
    second = taken_over(again, root, content)
    again.close()

    assert {one.result for one in second.notes} == {"unchanged"}
    assert [one.path for one in second.notes] == [one.path for one in first.notes]
    assert files(root) == written
    assert app.reader.attended_sessions_in(str(root)) == sessions
    assert second.remark == "No session: the file was taken over before."


def test_what_people_changed_since_is_left_as_it_is(app: App, root: Path) -> None:
    done = taken_over(app, root)
    feature = root / ".interlock" / "notes" / done.notes[0].path
    feature.write_text(feature.read_text().replace("- [ ] Ask design", "- [x] Ask design"))
    before = files(root)

    again = taken_over(app, root)

    assert [one.result for one in again.notes] == ["kept", "unchanged", "unchanged"]
    assert files(root) == before


def test_a_decision_that_is_noted_under_another_number_is_not_noted_again(
    app: App, root: Path
) -> None:
    folder = root / ".interlock" / "notes" / "decisions"
    folder.mkdir(parents=True)
    (folder / "ADR-003-v.md").write_text(
        "---\ntitle: 'ADR-003: Variables, not classes'\ntype: decision\n---\nBecause.\n"
    )

    done = taken_over(app, root)

    assert (done.notes[1].result, done.notes[1].path) == ("kept", "decisions/ADR-003-v.md")
    assert [path for path in files(root) if path.startswith("decisions")] == [
        "decisions/ADR-003-v.md"
    ]


def test_two_files_of_one_day_keep_both_their_rests(app: App, root: Path) -> None:
    first = taken_over(app, root, "One.\n")
    second = taken_over(app, root, "Two.\n")

    assert second.notes[0].path == first.notes[0].path.replace(".md", "-2.md")
    assert taken_over(app, root, "One.\n").notes[0].path == first.notes[0].path
    assert len(files(root)) == 2


def test_a_session_goes_on_with_the_work(app: App, root: Path) -> None:
    done = taken_over(app, root)

    found = state(app, done.session)
    assert (found.active_feature, found.active_task) == ("Dark mode", "Ask design")
    assert note(root, done.notes[0].path).front.values["session"] == done.session
    told = assemble_bootstrap(app, found).text
    for said in (
        "Feature: Dark mode.",
        "Task: Ask design.",
        "- Dark mode [planning/FEATURE-001-dark-mode.md]",
        "- Kim is away [planning/FEATURE-001-dark-mode.md]",
        "- Variables, not classes [decisions/ADR-001-variables-not-classes.md]",
    ):
        assert said in told


def test_a_session_that_is_about_something_is_not_moved(app: App, root: Path) -> None:
    session = begun(app, root, "one")
    gated_sessions.change_work(app, session, WorkUpdate("Other", "T-1"))

    done = taken_over(app, root)

    assert done.session == session
    assert done.remark == "The session is about other work already, and stays so."
    assert (state(app, session).active_feature, state(app, session).active_task) == ("Other", "T-1")


def test_where_nobody_opted_in_there_are_notes_and_no_session(app: App, tmp_path: Path) -> None:
    root = tmp_path / "plain"
    (root / ".git").mkdir(parents=True)

    done = taken_over(app, root)

    assert done.session is None
    assert done.remark == "No session: the project has not opted in (`interlock init`)."
    assert len(files(root)) == 3
    assert app.reader.attended_sessions_in(str(root)) == []


def test_without_work_there_is_no_session(app: App, root: Path) -> None:
    done = taken_over(app, root, "## Decisions\n- Yes\n")

    assert (done.session, len(done.notes)) == (None, 1)
    assert "names neither a feature nor a next step" in done.remark


def test_a_file_elsewhere_is_called_by_its_name_alone(app: App, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "private" / "HAND.md"
    path.parent.mkdir()
    path.write_text(SMALL)

    done = migrate_handoff(app, local_caller(app, root), opened(app, root), path, is_dry_run=False)

    assert isinstance(done, MigrationReport)
    assert done.source == "HAND.md"
    assert not any(b"private" in content for content in files(root).values())


def test_bytes_that_are_not_utf_8_come_through(app: App, root: Path) -> None:
    content = b"## Active Feature\nCaf\xe9\n## Decisions\n- na\xefve\n  yes \xff\n## More\n\xfe\r\n"

    done = taken_over(app, root, content)

    texts = files(root)
    assert b"yes \xff" in texts[done.notes[1].path]
    assert texts[done.notes[2].path].endswith(b"\xfe\r\n")
    assert {one.result for one in taken_over(app, root, content).notes} == {"unchanged"}


def test_what_is_no_readable_text_is_refused(app: App, root: Path, tmp_path: Path) -> None:
    notes = opened(app, root)
    (tmp_path / "large").write_bytes(b"x" * (BYTES_MAX + 1))
    (tmp_path / "utf16").write_bytes("## Progress".encode("utf-16"))
    os.mkfifo(tmp_path / "pipe")

    refusals = [
        migrate_handoff(
            app, local_caller(app, notes.root), notes, tmp_path / name, is_dry_run=False
        )
        for name in ("none", "", "large", "utf16", "pipe", "a\0b")
    ]

    errors = [found.error for found in refusals if isinstance(found, PlainRefusal)]
    assert [error.partition("cannot be taken over: ")[2] for error in errors] == [
        "no such file or directory",
        "it is not a file",
        "it has more than 4096 KB",
        "it is not text",
        "it is not a file",
        "embedded null byte",
    ]
    assert errors[2].startswith(f"`{tmp_path / 'large'}` cannot")
    assert not (root / ".interlock" / "notes").exists()


def test_what_stands_in_the_way_is_said_before_anything_is_written(
    app: App, root: Path, tmp_path: Path
) -> None:
    (root / ".interlock" / "notes").mkdir()
    (root / ".interlock" / "notes" / "decisions").symlink_to(tmp_path)

    refusal = outcome(app, root, SMALL)

    assert isinstance(refusal, BadNoteName)
    assert refusal.reason == "`decisions` is a link"
    assert files(root) == {}
    assert app.reader.attended_sessions_in(str(root)) == []


def test_a_note_whose_frontmatter_nobody_can_read_is_left_as_it_is(app: App, root: Path) -> None:
    path = root / ".interlock" / "notes" / "Variables, not classes.md"
    path.parent.mkdir()
    path.write_text("---\ntitle: [\n---\n")

    done = taken_over(app, root)

    assert [one.result for one in done.notes] == ["created", "kept", "created"]
    assert done.notes[1].path == path.name
    assert path.read_text() == "---\ntitle: [\n---\n"


def test_a_folder_that_cannot_be_written_is_a_refusal_and_the_next_time_goes_on(
    app: App, root: Path
) -> None:
    taken_over(app, root)  # all that is imported on the way is: nobody may not read it
    with place_of_nobody() as place, nobody():
        theirs = open_app(place / "home")
        folder = place / "project" / ".interlock" / "notes"
        (place / "project" / ".git").mkdir(parents=True)
        folder.mkdir(parents=True)
        folder.chmod(0o555)

        refusal = outcome(theirs, place / "project", SMALL)
        folder.chmod(0o755)
        done = taken_over(theirs, place / "project")

        theirs.close()
    assert isinstance(refusal, NoteNotWritten)
    assert refusal.reason.endswith("cannot be written: Permission denied")
    assert [one.result for one in done.notes] == ["created"] * 3


def test_what_was_taken_over_is_in_the_next_hand_off(app: App, root: Path) -> None:
    text = (
        "## Active Feature\nDark mode\n\n## Progress\n- Verified on staging\n- [x] Colours\n\n"
        "## Decisions\n- Variables, not classes\n\n## Blockers\n- Kim is away (till Monday)\n\n"
        f"## Next Steps\n- Ask design\n  {'x' * 200}\n- Ship it\n"
    )
    session = taken_over(app, root, text).session
    assert session is not None

    handoff = session_handoff(app, SessionId(session))

    assert handoff.feature == "Dark mode"
    assert handoff.progress == (
        HandoffStep("Verified on staging", is_done=None),
        HandoffStep("Colours", is_done=True),
    )
    assert handoff.decisions == ("Variables, not classes",)
    assert handoff.blockers == ("Kim is away (till Monday)",)
    assert [step[:10] for step in handoff.next_steps] == ["Ask design", "Ship it"]
    again = parse_handoff(handoff_page(handoff))
    assert (again.progress, again.decisions) == (handoff.progress, handoff.decisions)
    assert (again.blockers, again.next_steps) == (handoff.blockers, handoff.next_steps)


def test_a_session_whose_notes_cannot_be_used_is_handed_over_without_them(
    app: App, root: Path
) -> None:
    session = taken_over(app, root).session
    assert session is not None
    assert session_handoff(app, SessionId(session)).decisions

    with (root / ".interlock" / "config.toml").open("a") as config:
        config.write('\n[notes]\nfolder = "nobody-trusts-this"\n')

    handoff = session_handoff(app, SessionId(session))
    assert (handoff.feature, handoff.decisions) == ("Dark mode", ())


def test_the_next_session_is_handed_what_the_file_said(app: App, root: Path) -> None:
    migrated = taken_over(app, root)
    assert migrated.session
    session = begun(app, root, "next")

    state = session_record.state_of(app, session)
    told = assemble_bootstrap(app, state).text

    assert f"{migrated.session}: Hand-off from hand-off file to orchestrator" in told
    assert 'To go on: delegate {"agent":"orchestrator"' in told
    started = delegations.delegate(app, session, DelegationRequest("orchestrator", "Go on"))
    assert isinstance(started, delegations.StartedDelegation)
    assert "Ask design" in started.taken_over[0].context
