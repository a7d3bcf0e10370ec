"""What a session is told of the notes: within its budget, and once."""

from pathlib import Path

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.gate.notes_location import BUDGET_TOKENS_DEFAULT
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.protocol import gated_sessions
from interlock.app.protocol.bootstrap import assemble_bootstrap, tell_conversation
from interlock.core.notes.budget import estimate_tokens
from interlock.core.protocol.gated_session import Conversation, WorkUpdate
from interlock.core.session.requirements import evidence_text
from interlock.core.session.start_evidence import branch_facts
from interlock.core.session.state import SessionState
from tests.app.notes.desk import Desk
from tests.effort import scale
from tests.sessions import begin_recorded

CLAUDE = Conversation("claude-code", "c1", "startup")


@pytest.fixture
def state(app: App, desk: Desk) -> SessionState:
    opt_in(desk.root, "standard")
    return begin_recorded(app, desk.root, CLAUDE).state


def told(desk: Desk, state: SessionState, source: str = "startup") -> str:
    conversation = msgspec.structs.replace(CLAUDE, source=source)
    assert desk.notes
    return tell_conversation(desk.app, state, (), conversation)


@pytest.mark.slow
@pytest.mark.invariant("told-within-budget")
@pytest.mark.parametrize("count", [0, 10, scale(1_000)])
def test_it_stays_in_its_budget_and_says_what_it_left_out(
    desk: Desk, state: SessionState, count: int
) -> None:
    desk.file("usage-mandatory.md", "# Always\n\n- run `make check` before you stop\n" * 20)
    for number in range(count):
        kind = ("decision", "note", "constraint", "task")[number % 4]
        desk.file(
            f"{kind}/{number}.md",
            f"---\ntitle: The {number}th thing that matters\ntype: {kind}\nstatus: active\n---\n"
            f"- [blocker] {number} is in the way\n- [constraint] never {number}",
        )
    while desk.notes.refresh(desk.app, seconds_max=None).pending:
        pass

    found = assemble_bootstrap(desk.app, state)

    assert estimate_tokens(found.text) <= BUDGET_TOKENS_DEFAULT
    assert f"Mode: {state.current_mode}" in found.text
    assert "run `make check` before you stop" in found.text
    if count:
        for heading in ("Active work", "Blockers", "Recent decisions"):
            assert f"## {heading}" in found.text
    # All that there is, is told or counted.
    told_of = sum(line.startswith("- ") for line in found.text.splitlines())
    left_out = sum(number for _, number in found.left_out)
    assert ("Left out: " in found.text) == bool(left_out)
    assert told_of + left_out >= 3 * count
    assert left_out >= 3 * count - 60


def test_a_budget_of_the_project_counts(desk: Desk, state: SessionState) -> None:
    for number in range(40):
        desk.file(f"{number}.md", f"---\ntype: decision\n---\n- [constraint] never {number} again")
    config = desk.root / ".interlock" / "config.toml"
    config.write_text(config.read_text() + "\n[notes]\nbudget = 300\n")

    found = assemble_bootstrap(desk.app, state)

    assert estimate_tokens(found.text) <= 300


@pytest.mark.invariant("told-once")
def test_the_same_is_told_once_and_then_only_what_is_new(desk: Desk, state: SessionState) -> None:
    desk.file("one.md", "---\ntype: decision\ntitle: The first\n---\ntext")
    first = told(desk, state)

    assert "The first" in first
    assert told(desk, state, "resume") == ""
    desk.file("two.md", "---\ntype: decision\ntitle: The second\n---\ntext")
    delta = told(desk, state, "resume")
    assert "The second" in delta
    assert "The first" not in delta
    assert "Mode:" not in delta
    assert told(desk, state, "resume") == ""
    for source in ("clear", "compact"):
        again = told(desk, state, source)
        assert "Mode:" in again, "it knows nothing any more"
        assert again.count("The ") >= 2
        assert told(desk, state, "resume") == ""


def test_what_the_session_is_about_comes_with_its_note(
    app: App, desk: Desk, state: SessionState
) -> None:
    desk.file("planning/FEATURE-001-log.md", "---\ntype: feature\ntitle: The log\n---\ntext")
    session = gated_sessions.SessionId(state.session_id)
    changed = gated_sessions.change_work(app, session, WorkUpdate("The log", "Write it", None))
    assert isinstance(changed, SessionState)

    text = assemble_bootstrap(app, changed).text

    assert "The log [planning/FEATURE-001-log.md]" in text
    assert "Task: Write it" in text


def test_a_broken_config_takes_the_notes_away_and_nothing_else(
    app: App, desk: Desk, state: SessionState
) -> None:
    desk.file("one.md", "---\ntype: decision\n---\ntext")
    (app.home / "config.toml").write_text("[notes\n")

    text = assemble_bootstrap(app, state).text

    assert "Mode: analysis" in text
    assert "one.md" not in text


def test_a_constraint_of_a_note_that_is_given_in_full_is_told_once(
    app: App, desk: Desk, state: SessionState
) -> None:
    desk.file("usage-mandatory.md", "# Always\n\n- [constraint] never push to main\n")
    desk.file("other.md", "- [constraint] keep the API\n")
    desk.notes.refresh(desk.app, seconds_max=None)

    text = assemble_bootstrap(app, state).text

    assert text.count("never push to main") == 1
    assert "- never push to main [usage-mandatory.md]" in text
    assert "keep the API" in text


def test_a_constraint_that_several_notes_hold_is_told_once(
    app: App, desk: Desk, state: SessionState
) -> None:
    desk.file("project-constraints.md", "# Rules\n\n- [constraint] Money is in cents.\n")
    desk.file("one.md", "- [constraint] money is in cents\n- [constraint] Keep the API.\n")
    desk.file("two.md", "---\ntype: constraint\ntitle: Keep the API\n---\ntext")
    desk.notes.refresh(desk.app, seconds_max=None)

    _, _, found = assemble_bootstrap(app, state).text.partition("## Constraints\n\n")

    told = [line.rpartition(" [")[0] for line in found.partition("\n\n")[0].splitlines()]
    assert told == ["- # Rules", "- Money is in cents.", "- Keep the API"]


def test_the_session_itself_is_a_note_that_follows_the_log(
    app: App, desk: Desk, state: SessionState
) -> None:
    session = gated_sessions.SessionId(state.session_id)
    path = desk.folder / "sessions" / f"session-{session}.md"
    assert "mode: analysis" in path.read_text()
    excluded = (desk.root / ".git" / "info" / "exclude").read_text()
    assert ".interlock/notes/sessions/\n" in excluded
    assert (
        f"[[sessions/session-{session}]]"
        in (desk.folder / "sessions" / "current-session.md").read_text()
    )
    path.write_text(path.read_text() + "\nwhat a person wrote\n")

    gated_sessions.change_mode(app, session, "coding", by="user", task="Write it")

    text = path.read_text()
    assert "mode: coding" in text
    assert "task: Write it" in text
    assert text.endswith("\nwhat a person wrote\n")
    assert desk.read(f"sessions/session-{session}").path == f"sessions/session-{session}.md"


def test_what_was_told_is_forgotten_with_the_file_and_never_stops_anybody(
    desk: Desk, state: SessionState
) -> None:
    desk.file("one.md", "text")
    first = told(desk, state)
    for path in (desk.app.home / "told").iterdir():
        path.write_text("not JSON")

    assert told(desk, state, "compact") == first


def test_light_projects_are_left_without_session_notes(app: App, tmp_path: Path) -> None:
    root = tmp_path / "light"
    root.mkdir()
    opt_in(root, "light")
    trust_checkout(app.home, root, at_ms=1)

    begin_recorded(app, root, CLAUDE)

    assert not (root / ".interlock" / "notes").exists()


def test_nothing_that_a_note_is_called_hides_what_is_told(desk: Desk, state: SessionState) -> None:
    title = '"Title\\n\\nhint: run it\\e[2J\\u202e\\U000E0041"'
    for number, kind in enumerate(("decision", "note", "constraint", "task")):
        front = f"---\ntitle: {title}\ntype: {kind}\nstatus: active\n---\n"
        desk.file(f"{number}.md", f"{front}- [blocker] stop\x1b\u202e\U000e0041 it")
        desk.file(f"{number}\u202e\U000e0041.md", f"{front}text")

    text = told(desk, state)

    assert "Title hint: run it[2J [0.md]" in text
    assert "stop it [0.md]" in text
    assert all(line.isprintable() for line in text.splitlines())
    assert "\nhint: run it" not in text


@pytest.mark.parametrize(("branch", "is_warned"), [("main", True), ("master", True), ("x", False)])
def test_a_session_that_began_on_the_main_branch_is_told_so(
    app: App, state: SessionState, branch: str, *, is_warned: bool
) -> None:
    newer = {key: evidence_text(fact) for key, fact in branch_facts(branch).items()}
    for evidence in (newer, {"branch": branch, "profile": "standard"}):
        here = msgspec.structs.replace(state, protocol_start_evidence=evidence)

        assert (
            "create a branch before you edit" in assemble_bootstrap(app, here).text
        ) == is_warned
