"""The workflow tools as an agent meets them."""

import json

from interlock.core.workflow.compiled_workflow import COMPILER_VERSION
from tests.mcp.agent import Agent


def test_the_catalogue_is_short_unless_asked(agent: Agent) -> None:
    short = agent.ok("list_workflows")
    chosen = agent.ok("list_workflows", query="hello two minutes")

    assert {"id": "hello", "name": "Hello"} in short["workflows"]
    assert {"id": "line", "name": "A line"} in short["workflows"]
    assert short["tags"]["learning"] == 1
    assert [found["id"] for found in chosen["workflows"]] == ["hello"]
    assert chosen["workflows"][0]["stepCount"] == 3


def test_a_workflow_can_be_looked_at_in_four_ways(agent: Agent) -> None:
    views = {
        mode: agent.ok("inspect_workflow", workflowId="line", mode=mode)
        for mode in ("metadata", "preview", "source", "compiled")
    }

    assert views["metadata"]["steps"][0] == {"id": "step-1", "number": 1, "title": "Step 1"}
    assert "Do the thing number 1." in views["preview"]["steps"][0]["prompt"]
    assert json.loads(views["source"]["content"])["name"] == "A line"
    assert json.loads(views["compiled"]["content"])["compilerVersion"] == COMPILER_VERSION
    assert agent.ok("inspect_workflow", workflowId="line") == views["preview"]
    for mode in ("preview", "source", "compiled"):
        part = agent.ok("inspect_workflow", workflowId="line", mode=mode, step="step-2")
        assert [(step["id"], step["number"]) for step in part["steps"]] == [("step-2", 2)]
        assert "step-1" not in part.get("content", "")
        assert ("step-2" in part.get("content", "")) == (mode != "preview")


def test_an_answer_to_an_advance_is_short_beyond_its_prompt(agent: Agent) -> None:
    token = agent.start()["continueToken"]

    result = agent.call("continue_workflow", {"continueToken": token, "notes": "n" * 5_000})

    prompt = result["structuredContent"]["pending"]["prompt"]
    assert len(result["content"][0]["text"]) - len(prompt) <= 400
    assert "introduction" not in result["structuredContent"]


def test_without_output_the_step_is_shown_again(agent: Agent) -> None:
    begun = agent.start()

    shown = agent.ok("continue_workflow", continueToken=begun["continueToken"])

    assert (shown["pending"], shown["introduction"]) == (begun["pending"], begun["introduction"])
    assert shown["continueToken"] == begun["continueToken"], "it is not spent"


def test_a_stray_argument_is_named_in_a_warning(agent: Agent) -> None:
    result = agent.call("start_workflow", {"workflowId": "line", "goal": "g", "colour": "x"})

    warning = "`colour` is not an argument of this tool and was ignored."
    assert result["structuredContent"]["warnings"] == [warning]
    assert warning in result["content"][0]["text"]


def test_two_names_for_one_argument_are_refused(agent: Agent) -> None:
    token = agent.start()["continueToken"]

    problem = agent.refused("continue_workflow", {"continueToken": token, "token": token})

    assert problem["message"] == "Both `continueToken` and `token` were given; send one of them"


def test_a_search_for_workflows_without_a_match_shows_all_of_them(agent: Agent) -> None:
    """The descriptions of the tools name "feature" as a kind of task, and no workflow has it."""
    everything = agent.ok("list_workflows")
    assert everything["remark"] == ""

    for arguments in ({"query": "a new feature, please"}, {"tags": ["feature"]}):
        found = agent.ok("list_workflows", **arguments)
        assert found["remark"].startswith("No workflow matches")
        assert found["workflows"] == everything["workflows"]
    assert agent.ok("list_workflows", query="bug")["remark"] == ""
