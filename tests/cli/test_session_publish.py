"""`interlock session publish` and `handoff`: a session written down for people."""

import json
import subprocess
from pathlib import Path

import pytest

from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs.advance import advance
from interlock.core.handoff.parse import HandoffStep, parse_handoff
from interlock.core.ids import SessionId
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.note import Note
from interlock.core.protocol.gated_session import Conversation, WorkUpdate
from interlock.core.session.answer import RenderedAnswer
from interlock.core.views.session_note import KEEP_MARKER
from tests.cli.conftest import Terminal
from tests.scenes import handed_in, output, started
from tests.sessions import begin_recorded
from tests.unprivileged import nobody, place_of_nobody


def attended(app: App, root: Path, name: str = "one") -> SessionId:
    opt_in(root, "standard")
    return begin_recorded(app, root, Conversation("claude-code", name)).session


def note_of(root: Path, session: str) -> Path:
    return root / ".interlock" / "notes" / "sessions" / f"session-{session}.md"


def published(root: Path, session: str) -> Note:
    path = note_of(root, session)
    return parse_note(path.read_text(), path=path.name)


def test_the_note_follows_the_log(app: App, typed: Terminal, tmp_path: Path) -> None:
    session = attended(app, tmp_path)
    before = published(tmp_path, session).front.values
    gated_sessions.change_work(app, session, WorkUpdate("Dark mode", "Ask design"))
    after = published(tmp_path, session).front.values

    assert "feature" not in before
    assert (after["feature"], after["task"]) == ("Dark mode", "Ask design")
    first = started(app, tmp_path)
    assert first.session == session, "it goes into the session that is here"
    answered = handed_in(app, first, "Looked at it.")
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    assert isinstance(
        advance(app, answered.answer.continue_token, output("Half done.", gap)), RenderedAnswer
    )

    assert typed("session", "publish").code == 0

    note = published(tmp_path, session)
    stream = app.reader.stream(session)
    assert stream is not None
    assert note.front.values["version"] == str(stream.version)
    assert "2 of 3 done" in note.body
    assert "Newest notes, on “Step 2”:\n\n> Half done." in note.body
    assert [(said.category, said.text) for said in note.observations] == [("gap", "No tests")]
    gated_sessions.change_status(app, session, "ended", "by the test")
    assert published(tmp_path, session).front.values["status"] == "ended"


def test_what_a_person_wrote_below_the_line_stays(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = attended(app, tmp_path)
    path = note_of(tmp_path, session)
    assert path.read_text().endswith(f"{KEEP_MARKER}\n")
    mine = f"\nMine: {KEEP_MARKER} twice, [[Other]]\r\n\n- [idea] kept\n"
    path.write_bytes(path.read_bytes().rstrip(b"\n") + mine.encode())
    path.write_bytes(path.read_bytes().replace(b"# Session", b"# Mine, not kept"))

    gated_sessions.change_work(app, session, WorkUpdate("Dark mode"))
    assert typed("session", "publish").code == 0

    text = path.read_bytes().decode()
    assert text.endswith(f"{KEEP_MARKER}{mine}")
    assert "not kept" not in text
    assert "feature: Dark mode\n" in text
    assert typed("note", "search", "--category", "idea").out.startswith("sessions/session-ses_")


def test_notes_that_speak_of_the_line_do_not_move_it(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = attended(app, tmp_path)
    first = started(app, tmp_path)
    second = handed_in(app, first, f"Below\n{KEEP_MARKER}\nit is kept.")
    assert typed("session", "publish").code == 0
    once = note_of(tmp_path, session).read_text()
    handed_in(app, second, "Other notes.")

    assert typed("session", "publish").code == 0

    text = note_of(tmp_path, session).read_text()
    assert once.endswith(f"> it is kept.\n\n{KEEP_MARKER}\n")
    assert text.endswith(f"> Other notes.\n\n{KEEP_MARKER}\n")


def test_deleting_a_session_says_what_stays_of_it(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = attended(app, tmp_path)
    path = note_of(tmp_path, session)
    path.write_text(path.read_text() + "\nmine\n")

    said = typed("session", "delete", session, "--yes")

    assert (said.code, said.out) == (0, f"Deleted {session}\n")
    assert said.err == (
        f"But `sessions/session-{session}.md` is still there: somebody has written into it."
        " Delete it by hand if it is not needed.\n"
    )


def test_what_cannot_be_published_is_refused_in_words(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    assert typed("session", "publish").err.startswith("error: You have no open session here")
    assert typed("session", "publish", "ses_none").code == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    session = started(app, elsewhere).session
    nowhere = typed("session", "publish", session, "--json")
    assert (nowhere.code, json.loads(nowhere.out)["code"]) == (1, "no_project")
    subprocess.run(["rm", "-r", elsewhere], check=True)
    gone = typed("session", "publish", session)
    assert (gone.code, str(elsewhere) in gone.err) == (1, True)


def test_the_command_says_why_it_could_not_be_written(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    assert typed("session", "publish", started(app, tmp_path).session).code == 0
    with place_of_nobody() as place, nobody():
        (place / "project" / ".git").mkdir(parents=True)
        monkeypatch.setenv("INTERLOCK_HOME", str(place / "home"))
        theirs = open_app(place / "home")
        session = started(theirs, place / "project").session
        theirs.close()
        (place / "project" / ".interlock").chmod(0o555)

        said = typed("session", "publish", session)

        (place / "project" / ".interlock").chmod(0o755)
        later = typed("session", "publish", session)
        path = note_of(place / "project", session)
        assert (later.code, later.out, path.exists()) == (0, f"{path}\n", True)
    assert (said.code, said.out) == (1, "")
    assert f"error: `{path}` cannot be written: Permission denied" in said.err
    assert "Check that the folder exists" in said.err


def test_a_session_is_handed_off_as_a_file(app: App, typed: Terminal, tmp_path: Path) -> None:
    session = attended(app, tmp_path)
    gated_sessions.change_work(app, session, WorkUpdate("Dark mode", "Ask design"))
    first = started(app, tmp_path)
    gap = {"kind": "gap", "severity": "critical", "summary": "No tests"}
    assert isinstance(
        advance(app, first.answer.continue_token, output("Begun.", gap)), RenderedAnswer
    )

    printed = typed("session", "handoff", session)

    goal = f"“{app.reader.runs(session)[0].goal}”"
    read = parse_handoff(printed.out)
    assert read.feature == "Dark mode"
    assert read.progress == (HandoffStep(f"{goal} (line, 1 of 3 done)", is_done=False),)
    assert read.blockers == ("Left undone: No tests (critical)",)
    assert read.next_steps == ("Ask design", f"Step “Step 2” of {goal}")
    assert "> Begun." in printed.out
    assert typed("session", "handoff", "--to", "HANDOFF.md").out == "Wrote HANDOFF.md\n"
    again = typed("session", "handoff", "--to", "HANDOFF.md")
    assert (again.code, "Choose another with `--to FILE`." in again.err) == (1, True)
    assert (tmp_path / "HANDOFF.md").read_text() == printed.out
    told = json.loads(typed("session", "handoff", "--json").out)
    assert (told["text"], told["handoff"]["nextSteps"][0]) == (printed.out, "Ask design")
