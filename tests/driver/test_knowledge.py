"""What the model is told: the notes and rules of the project, the instructions of the user."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.core.ids import SessionId
from interlock.core.unattended.journal import StepBegun
from interlock.driver import prompts
from interlock.driver.server_client import NOTE_TOOLS
from interlock.driver.tools.bounded_output import END_CHARACTERS
from interlock.driver.tools.tool import Workplace
from tests.driver.stage import Stage, call, line_script, one_step
from tests.scenes import linear

NOTES = {
    "project-constraints": "- Never edit the schema by hand.\n",
    "cache": "---\ntype: decision\ntitle: Cache in SQLite\n---\nBecause it is there.\n",
}
KILLED_AFTER_NOTE = """
import os, signal
from interlock.driver.__main__ import main
from interlock.driver.server_client import ServerClient
call_mcp = ServerClient.call_mcp
def call_and_die(self, name, arguments, session):
    call_mcp(self, name, arguments, session)
    os.kill(os.getpid(), signal.SIGKILL)
ServerClient.call_mcp = call_and_die
raise SystemExit(main())
"""


@pytest.fixture
def noted_stage(busy_stage: Stage) -> Iterator[Stage]:
    """The notes and the instructions are in the user's checkout alone: nothing is committed."""
    folder = busy_stage.repository / ".interlock" / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / f"{name}.md").write_text(text)
    instructions = busy_stage.home / "instructions.md"
    instructions.write_text("Write British English.\n")
    yield busy_stage
    instructions.unlink()
    shutil.rmtree(folder)


def steps_begun(stage: Stage, session: SessionId) -> list[StepBegun]:
    return [one for one in stage.entries(session) if isinstance(one, StepBegun)]


def test_a_run_is_briefed_once_and_each_step_has_constraints_and_instructions(
    noted_stage: Stage,
) -> None:
    session = noted_stage.order(script=line_script(2))
    noted_stage.wait_for(session, "done", "parked")

    first, second = steps_begun(noted_stage, session)

    for step in (first, second):
        assert "## Constraints\n\n- Never edit the schema by hand. [" in step.message
        assert "The user's instructions:\n\nWrite British English." in step.system
    assert "Cache in SQLite" in first.message
    assert "Cache in SQLite" not in second.message


def test_note_tools_work_on_the_notes_of_the_users_checkout(noted_stage: Stage) -> None:
    turns = [
        call("search_notes", query="schema"),
        call("write_note", title="Found", content="It leaks.", workspacePath="/elsewhere"),
        *[call("edit_note", identifier="Found", operation="append", content="Fixed.")] * 2,
        call("read_note", identifier="Found"),
        call("read_note", identifier="Nowhere to be found"),
        call("write_note", title=7),
    ]
    session = noted_stage.order(workflow="one", script=one_step(*turns))
    noted_stage.wait_for(session, "done", "parked")

    results = [ended.result for ended in noted_stage.results(session)]

    assert [result.is_error for result in results] == [*[False] * 5, True, True]
    assert "project-constraints" in results[0].text
    written = (noted_stage.repository / ".interlock" / "notes" / "Found.md").read_text()
    assert "It leaks." in written
    assert written.count("Fixed.") == 2, "two calls, though they say the same"
    assert session in written, "it is known who wrote it"
    assert "Fixed." in results[4].text
    assert "search_notes" in results[5].text


def test_a_long_note_is_shown_by_its_ends(noted_stage: Stage) -> None:
    long = noted_stage.repository / ".interlock" / "notes" / "cache.md"
    long.write_text("\n".join(f"line {number}" for number in range(20_000)))
    session = noted_stage.order(
        workflow="one", script=one_step(call("read_note", identifier="cache"))
    )
    noted_stage.wait_for(session, "done", "parked")

    (result,) = noted_stage.results(session)

    assert len(result.result.text) < 2 * END_CHARACTERS + 500


def test_read_only_work_gets_the_note_tools_that_read(noted_stage: Stage) -> None:
    script = one_step(call("write_note", title="Sneaky", content="x"))
    session = noted_stage.order(workflow="one", script=script, is_read_only=True)
    noted_stage.wait_for(session, "done", "parked")

    (step,) = steps_begun(noted_stage, session)
    assert set(NOTE_TOOLS) & set(step.tools) == {"search_notes", "read_note"}
    assert noted_stage.results(session)[0].is_malformed
    assert not (noted_stage.repository / ".interlock" / "notes" / "Sneaky.md").exists()


def test_a_note_that_was_written_before_a_kill_is_not_written_again(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        notes = stage.repository / ".interlock" / "notes"
        notes.mkdir()
        (notes / "log.md").write_text("Begun.\n")
        edit = call("edit_note", identifier="log", operation="append", content="Once.")
        session = stage.order(workflow="one", script=one_step(edit))
        died = stage.start_driver("-c", KILLED_AFTER_NOTE)
        stage.wait_until(lambda: not died.is_running, "the driver's end")
        assert stage.results(session) == []
        assert (notes / "log.md").read_text().count("Once.") == 1

        stage.start_driver()
        assert stage.wait_for(session, "done", "parked").outcome == "success"

        (ended,) = stage.results(session)
        assert not ended.result.is_error
        assert (notes / "log.md").read_text().count("Once.") == 1


def rules(worktree: Path, **others: Path) -> str:
    worktrees = {"main": worktree, **others} if others else {}
    place = Workplace(worktree, "workspace", worktree, worktree / "spill", worktrees=worktrees)
    return prompts.system_prompt(place, 8_192, "")


def test_both_files_of_rules_are_quoted_and_a_copy_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    (tmp_path / "CLAUDE.md").write_text("Use spaces.")
    text = rules(tmp_path)
    assert "The project's rules (AGENTS.md):\n\nUse tabs." in text
    assert "The project's rules (CLAUDE.md):\n\nUse spaces." in text

    for copy in ("Use tabs.\n", "@AGENTS.md\n"):
        (tmp_path / "CLAUDE.md").write_text(copy)
        assert rules(tmp_path).count("The project's rules") == 1


def test_rules_of_many_repositories_are_bounded_and_what_is_cut_is_said(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("main", "web", "sdk")}
    for name, place in places.items():
        place.mkdir()
        (place / "AGENTS.md").write_text(f"{name} " + "x" * 20_000)

    text = rules(worktree=places["main"], web=places["web"], sdk=places["sdk"])

    assert len(text) < prompts.ALL_RULES_BYTES_MAX + 6_000
    for name in places:
        assert f"The project's rules ({name}: AGENTS.md):" in text
    assert text.count(prompts.RULES_CUT) == 3
