"""What a finished run may claim: only what the driver itself has seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.app.runs.inbox import list_cards
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import AdvanceAnswered
from interlock.core.unattended.order import DeliveryWish, UnattendedState
from interlock.core.unattended.proof import NO_PROOF
from tests.driver.stage import COMMIT, Stage, call, git, hand_in, one_step
from tests.scenes import linear

WRITE = call("Write", file_path="app.py", content="print('ok')\n")
PASSES, FAILS = "grep -q ok app.py", "grep -q missing app.py"


def worked(stage: Stage, *turns: dict[str, Any], **order: Any) -> tuple[SessionId, UnattendedState]:
    session = stage.order(workflow="one", script=one_step(*turns), **order)
    return session, stage.wait_for(session, "done", "parked")


def test_a_result_is_a_success_if_the_driver_saw_its_proof_pass(busy_stage: Stage) -> None:
    session, state = worked(busy_stage, WRITE, proof=PASSES)

    assert (state.outcome, state.detail) == ("success", "")
    (proof,) = state.proofs
    assert (proof.exit_code, proof.commit, proof.source) == (0, state.commit, "order")
    assert session not in str(list_cards(busy_stage.app))


@pytest.mark.parametrize(
    ("proof", "outcome", "why"),
    [
        ("", "unverified", NO_PROOF),
        (FAILS, "failed", f"`{FAILS}` failed with exit code 1 on "),
    ],
)
def test_without_a_proof_that_passes_it_is_no_success_and_the_inbox_says_why(
    busy_stage: Stage, proof: str, outcome: str, why: str
) -> None:
    session, state = worked(busy_stage, WRITE, proof=proof)

    assert state.outcome == outcome
    assert state.detail.startswith(why)
    (card,) = [one for one in list_cards(busy_stage.app) if session in one.id]
    assert why in card.question


def test_work_that_changes_nothing_needs_no_proof(busy_stage: Stage) -> None:
    _, state = worked(busy_stage, call("Bash", command="ls"), proof=FAILS)

    assert (state.outcome, state.proofs) == ("success", ())


def test_a_run_in_which_every_change_was_denied_has_failed(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        folder = stage.repository / ".interlock"
        folder.mkdir()
        (folder / "config.toml").write_text('[project]\nprofile = "standard"\n')
        stage.install(linear(1, "one"))
        stage.start_driver()

        denied = call("Write", file_path=".interlock/config.toml", content="")
        _, state = worked(stage, denied)

        assert (state.outcome, state.detail) == (
            "failed",
            "every change was denied (path.protected)",
        )


def test_files_that_are_in_no_commit_are_aside_during_the_proof(tmp_path: Path) -> None:
    handoff = {
        "kind": "coding_handoff",
        "branchName": "work",
        "keyDecisions": ["one"],
        "knownLimitations": [],
        "testsAdded": [],
        "filesChanged": ["app.py"],
    }
    with Stage(tmp_path) as stage:
        stage.install(linear(1, "one"))
        stage.start_driver()
        left = call("Write", file_path="left.txt", content="left")
        changed = call("Bash", command="echo changed >> README.md")
        script = {
            "steps": [
                {
                    "when": "# Step 1 of 1",
                    "turns": [WRITE, left, changed, hand_in("Done.", artifacts=[handoff])],
                }
            ]
        }
        proof = "test ! -e left.txt && ! grep -q changed README.md"
        push = DeliveryWish(("push",))
        session = stage.order(workflow="one", script=script, proof=proof, delivery=push)
        state = stage.wait_for(session, "done", "parked")
        worktree = stage.worktree(session)

        assert state.outcome == "success", state.detail
        assert (worktree / "left.txt").read_text() == "left"
        assert "changed" in (worktree / "README.md").read_text()


LIE = {"kind": "verification", "command": PASSES, "exitCode": 0, "summary": "All is well"}
STEP = {"id": "only", "title": "Only", "prompt": "Do it.", "verification": {"command": PASSES}}


def test_a_model_that_lies_about_a_proof_is_told_what_the_driver_saw(tmp_path: Path) -> None:
    """The driver runs the command of the step itself, so there is no word to take for it."""
    with Stage(tmp_path) as stage:
        folder = stage.repository / ".interlock" / "workflows"
        folder.mkdir(parents=True)
        head = {"id": "proven", "name": "proven", "description": "x", "version": "1.0.0"}
        (folder / "proven.json").write_text(json.dumps({**head, "steps": [STEP]}))
        git(stage.repository, "add", ".")
        git(stage.repository, *COMMIT, "-m", "proven")
        stage.start_driver()
        proven = [hand_in("", artifacts=[LIE]), WRITE, hand_in("", artifacts=[LIE])]
        steps = [
            {"when": "# Step 1 of 2", "turns": [hand_in("Done.")]},
            {"when": "# Step 2 of 2", "turns": proven},
        ]

        session = stage.order(workflow="proven", script={"steps": steps}, proof="")
        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success", state.detail
        _, refused, _ = (e for e in stage.entries(session) if isinstance(e, AdvanceAnswered))
        assert refused.outcome == "blocked"
        assert f"Interlock ran `{PASSES}`, and it failed with exit code" in refused.text
        assert [proof.source for proof in state.proofs] == ["workflow"]
