"""What the model is told: the notes and rules of the project, the instructions of the user."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.core.ids import SessionId
from interlock.core.unattended.journal import StepBegun
from interlock.driver import prompts
from interlock.driver.tools.tool import Workplace
from tests.driver.stage import Stage, line_script

NOTES = {
    "project-constraints": "- Never edit the schema by hand.\n",
    "cache": "---\ntype: decision\ntitle: Cache in SQLite\n---\nBecause it is there.\n",
}


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
    for name in NOTES:
        (folder / f"{name}.md").unlink()
    folder.rmdir()


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
