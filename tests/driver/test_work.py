"""Unattended work from its order to its end."""

from pathlib import Path

from tests.driver.stage import Stage, call, git, line_script


def test_a_run_is_worked_through_and_committed_on_a_branch_of_its_own(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        stage.play(
            line_script(
                2,
                work=lambda number: [
                    call("Write", file_path=f"file-{number}.txt", content=f"number {number}\n")
                ],
            )
        )
        session = stage.order_line(2, goal="Write two files")
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert (state.outcome, state.detail) == ("success", ""), stage.entries(session)
        assert stage.notes(session) == ["Step 1 is done.", "Step 2 is done."]
        assert state.summary == "Step 2 is done."
        assert git(stage.repository, "status", "--porcelain") == "", (
            "the user's checkout is as it was"
        )
        files = git(stage.repository, "show", "--stat", "--format=%s", state.branch)
        assert files.startswith("Write two files")
        assert "file-1.txt" in files
        assert "file-2.txt" in files
        assert state.spent.turns == len(stage.model_calls()) == 4
