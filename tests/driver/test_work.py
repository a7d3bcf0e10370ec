"""Unattended work from its order to its end."""

import json
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.unattended.driver_desk import CHILD_DEPTH_MAX
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.core.unattended.order import DeliveryWish
from interlock.core.workflow.definition import Workflow
from interlock.driver import prompts
from interlock.driver.model_loop import ModelLoop
from tests.agents.models.fake_provider import Reply, openai_stream, running_provider
from tests.delivery_scene import handoff
from tests.driver.stage import Stage, call, git, hand_in, line_script
from tests.scenes import linear, started


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


def test_a_hand_off_that_names_what_is_not_the_works_is_not_committed(tmp_path: Path) -> None:
    named = handoff("named.txt", ".git/config")
    script = {"steps": [{"when": "# Step 1", "turns": [hand_in("Done.", artifacts=[named])]}]}
    with Stage(tmp_path) as stage:
        stage.play(script)
        session = stage.order_line(1, delivery=DeliveryWish(("push",)))
        stage.start_driver()

        state = stage.wait_for(session, "done", "parked")

        assert state.outcome == "success"
        assert "not committed: the hand-off names `.git/config`" in state.detail
        assert state.commit == ""


def test_a_provider_that_rejects_bad_tools_takes_those_of_the_driver(tmp_path: Path) -> None:
    arguments = {"notes": "It is proven.", "artifacts": [{"kind": "proof", "runs": [1, None]}]}
    turn = openai_stream(calls=[("call_1", "complete_step", json.dumps(arguments))])
    with running_provider() as provider:
        provider.replies = [Reply(turn)]
        with Stage(tmp_path, settings=f'base_url = "{provider.url}/v1"') as stage:
            session = stage.order_line(1, model="openai:gpt-5-mini")
            stage.start_driver()

            state = stage.wait_for(session, "done", "parked")

            assert (state.outcome, state.detail) == ("success", ""), stage.entries(session)
            assert stage.notes(session) == ["It is proven."]
    assert "spawn_agent" in str(provider.requests[0].json["tools"])


def test_the_example_of_a_step_that_only_sets_a_value_shows_that_alone(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def setting(steps: int) -> Workflow:
        workflow = linear(steps)
        first, *others = workflow.steps
        return msgspec.structs.replace(
            workflow, steps=(msgspec.structs.replace(first, sets=("risk",)), *others)
        )

    monkeypatch.setattr("tests.scenes.linear", setting)

    example = prompts._example(started(app, tmp_path).answer)  # pyright: ignore[reportPrivateUsage]

    assert example.startswith("For example")
    assert '"context":{"risk":"<' in example
    assert "artifacts" not in example


@pytest.mark.parametrize(
    ("depth", "may_spawn"), [(CHILD_DEPTH_MAX - 1, True), (CHILD_DEPTH_MAX, False)]
)
def test_agents_are_spawned_only_so_deep(depth: int, *, may_spawn: bool) -> None:
    loop = ModelLoop(Mock(order=Mock(depth=depth), settings=DriverSettings()), Mock())

    assert ("spawn_agent" in loop._tool_names()) == may_spawn  # pyright: ignore[reportPrivateUsage]
