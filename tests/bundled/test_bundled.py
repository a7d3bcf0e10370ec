"""Every bundled workflow: it compiles in silence, and an agent gets through it on every path."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.catalogue.workflow_files import CatalogueEntry, find_workflow, list_workflows
from interlock.app.context import App
from interlock.core.ids import WorkflowId
from interlock.core.workflow import conditions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.tools import TOOLS
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY
from tests.bundled.driver import Answer, Driver, Params, asked_context, offered
from tests.mcp.agent import Agent, prefer

IDS = sorted(path.stem for path in BUNDLED_DIRECTORY.glob("*.json"))
WORDS_MAX = 200
ARGUMENT = re.compile(r"\{[A-Za-z_][\w-]*\}")
CALLS_PER_STEP_MAX = 6  # it, and each way in which it can be submitted wrongly
each = pytest.mark.parametrize("name", IDS)

Choices = Mapping[str, str]


@pytest.fixture
def agent(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.chdir(tmp_path)
    return Agent(McpProtocol(app, TOOLS))


def entry_of(app: App, name: str) -> CatalogueEntry:
    entry = find_workflow(app, Path.cwd(), WorkflowId(name))
    assert isinstance(entry, CatalogueEntry)
    return entry


def driver_of(app: App, agent: Agent, name: str, choices: Choices | None = None) -> Driver:
    """One that makes only so many calls as going round each loop twice can take."""
    leaves = list(entry_of(app, name).pinned.workflow.steps_with_loops())
    calls_max = sum(CALLS_PER_STEP_MAX * 2 ** len(loops) for _, loops in leaves)
    return Driver(app, agent, choices, calls_max=calls_max)


def enums_of(workflow: CompiledWorkflow) -> dict[str, list[str]]:
    schema: Any = msgspec.json.decode(workflow.context_schema or "{}")
    properties: dict[str, Any] = schema.get("properties", {})
    return {key: found["enum"] for key, found in properties.items() if "enum" in found}


def ways_of(workflow: CompiledWorkflow) -> list[dict[str, str]]:
    """Every combination of values that a condition of the workflow asks about."""
    enums = enums_of(workflow)
    asked = sorted({var for text in _conditions(workflow) for var in _variables(text)})
    assert set(asked) <= enums.keys(), "`contextSchema` lists the values of what steers the path"
    return [
        dict(zip(asked, values, strict=True)) for values in product(*(enums[key] for key in asked))
    ]


def _variables(condition: str) -> tuple[str, ...]:
    return conditions.variables(conditions.unpack(condition))


def _conditions(workflow: CompiledWorkflow) -> Iterator[str]:
    for step, loops in workflow.steps_with_loops():
        approval = step.approval.condition if step.approval else None
        confirms = step.confirms if isinstance(step.confirms, str) else None
        found = (step.run_condition, approval, confirms)
        around = ((loop.run_condition, loop.condition) for loop in loops)
        fragments = (fragment.when for fragment in step.fragments)
        yield from filter(None, (*found, *fragments, *(one for pair in around for one in pair)))


def test_each_compiles_without_a_warning(app: App, tmp_path: Path) -> None:
    listing = list_workflows(app, tmp_path)

    assert listing.broken == ()
    assert [entry.place.path.stem for entry in listing.entries] == IDS
    assert [entry.workflow.id for entry in listing.entries] == IDS
    assert [problem for entry in listing.entries for problem in entry.warnings] == []


@each
def test_every_path_ends_and_together_they_visit_every_step(
    app: App, agent: Agent, name: str
) -> None:
    workflow = entry_of(app, name).pinned.workflow
    visited: set[str] = set()
    asked: dict[str, list[str]] = {}
    for way in ways_of(workflow):
        driver = driver_of(app, agent, name, way)
        end = driver.finish(driver.start(name))
        assert end["nextCall"] is None, f"{way}: it ends where nothing is left to call"
        assert "gaps" not in end, f"{way}: who does all that is asked leaves nothing open"
        visited |= driver.visited
        for prompt in driver.prompts:
            assert "(not set" not in prompt
            assert ARGUMENT.findall(prompt) == [], "the routine was not given it"
            asked |= {key: list(values) for key, values in offered(prompt).items()}

    steps = [step.id for step, _ in workflow.steps_with_loops()]
    assert [step for step in steps if step not in visited] == [], "no path leads there"
    in_any_order = {key: sorted(values) for key, values in enums_of(workflow).items()}
    assert {key: sorted(values) for key, values in asked.items()} == in_any_order, (
        "the prompts offer just what the schema takes"
    )


@each
def test_whatever_is_missing_is_named_and_can_be_mended_from_that_alone(
    app: App, agent: Agent, name: str
) -> None:
    workflow = entry_of(app, name).pinned.workflow
    wished = {name for name, level in workflow.capabilities.items() if level == "preferred"}
    for way in ways_of(workflow):
        driver = driver_of(app, agent, name, way)
        answer = driver.start(name)
        while not answer["isComplete"]:
            if answer["kind"] == "ok" and answer["pending"]["stepId"] not in driver.visited:
                driver.given.append(answer)
                answer = stumble(driver, answer, wished)
            answer = driver.go_on(answer)


def stumble(driver: Driver, answer: Answer, wished: set[str]) -> Answer:
    """Hand a step in with one thing missing after the other; each answer says which it is.

    Nothing stops if nobody says whether a capability is there that is only `wished` for.
    """
    whole = driver.output_for(answer)
    output, context = whole["output"], whole.get("context", {})
    lacking: list[tuple[Params, str]] = [
        *(
            ({**whole, "output": {**output, key: ""}}, "missing_notes")
            for key in output
            if key == "notesMarkdown"
        ),
        *(
            ({**whole, "output": {**output, "artifacts": _but(output["artifacts"], one)}}, kind)
            for one in output.get("artifacts", ())
            if one.get("capability") not in wished
            for kind in (one.get("assessmentId", one["kind"]),)
        ),
        *(
            ({**whole, "context": {k: v for k, v in context.items() if k != key}}, key)
            for key in context
        ),
    ]
    for params, missing in lacking:
        # Always with the first token: an answer that was not accepted has kept its context.
        answer = driver.call(params)
        assert answer["kind"] == "blocked", f"{missing} is not missed"
        named = [
            word
            for blocker in answer["blocked"]["blockers"]
            for word in (blocker["code"], blocker.get("about", ""), blocker["message"])
        ]
        assert any(missing in word for word in named), named
    return answer


def _but(artifacts: list[Params], left_out: Params) -> list[Params]:
    return [one for one in artifacts if one is not left_out]


@each
@pytest.mark.parametrize("share", [0, 0.5], ids=["to the beginning", "into the middle"])
def test_a_rewind_names_the_other_branch_and_ends_too(
    app: App, agent: Agent, name: str, share: float
) -> None:
    ways = ways_of(entry_of(app, name).pinned.workflow)
    driver = driver_of(app, agent, name, ways[0])
    ended = driver.finish(driver.start(name))
    earlier = driver.done[int(len(driver.done) * share)]

    again = driver_of(app, agent, name, ways[-1])  # another path, where it is chosen after that
    params = again.output_for(earlier)
    first_words, *_ = params["output"].get("notesMarkdown", "without notes").splitlines()
    params["output"]["notesMarkdown"] = f"{first_words}\nOn second thoughts, otherwise"
    branch = again.call(params)

    (kept,) = branch["branches"]
    assert kept["summary"] == first_words
    end = again.finish(branch)
    shown = [
        agent.ok("continue_workflow", continueToken=one["continueToken"]) for one in (end, ended)
    ]
    assert shown[0]["introduction"] == shown[1]["introduction"], "it is the same run"
    assert end["continueToken"] != ended["continueToken"]
    there = agent.ok("continue_workflow", continueToken=kept["continueToken"])
    assert there["isComplete"], "the other branch is where it was left"


@each
def test_it_ends_without_anybody_who_could_be_asked(app: App, agent: Agent, name: str) -> None:
    way = ways_of(entry_of(app, name).pinned.workflow)[-1]
    driver = driver_of(app, agent, name, way)
    prefer({"autonomy": "full_auto_never_stop"})
    driver.finish(driver.start(name))

    assert driver.granted == []
    assert {answer["nextIntent"] for answer in driver.given} == {"perform_pending_then_continue"}


@each
def test_a_value_that_no_path_knows_is_refused(app: App, agent: Agent, name: str) -> None:
    driver = driver_of(app, agent, name)
    answer = driver.start(name)
    params = driver.output_for(answer)
    for key, values in offered(answer["pending"]["prompt"]).items():
        wrong = {**params, "context": {**params["context"], key: "whatever"}}
        message = agent.refused("continue_workflow", wrong)["message"]
        assert f"/context/{key}" in message
        assert all(value in message for value in values)
    driver.finish(answer)


@each
def test_prompts_are_short_and_their_context_can_be_copied(name: str) -> None:
    content = json.loads((BUNDLED_DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    for text in _asked(content["steps"]):
        assert len(text.split()) <= WORDS_MAX, text
        assert ("Send along" in text) == bool(asked_context(text)), text


def _asked(steps: list[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        yield from _asked(step.get("body", []))
        yield step.get("prompt", "")
        yield step.get("synthesis", {}).get("prompt", "")
        yield from (one["goal"] for one in step.get("parallelDelegations", ()))
        yield step.get("promptBlocks", {}).get("goal", "")


def until(driver: Driver, answer: Answer, step: str) -> Answer:
    """Go on until that step is pending."""
    while answer["pending"] is None or answer["pending"]["stepId"] != step:
        answer = driver.go_on(answer)
    return answer


def test_a_short_task_that_grows_is_designed_after_all(app: App, agent: Agent) -> None:
    driver = driver_of(app, agent, "coding-task", {"track": "short"})
    answer = until(driver, driver.start("coding-task"), "make")

    params = driver.output_for(answer)
    answer = driver.call({**params, "context": {"track": "full"}})

    assert answer["pending"]["stepId"] == "context.facts"
    driver.finish(answer)
    assert {"candidates", "plan", "slice", "hand-over"} <= driver.visited


@pytest.mark.parametrize(("track", "count"), [("short", 0), ("full", 0), ("guarded", 1)])
def test_a_person_approves_the_plan_where_a_mistake_is_hard_to_undo(
    app: App, agent: Agent, track: str, count: int
) -> None:
    driver = driver_of(app, agent, "coding-task", {"track": track})
    driver.finish(driver.start("coding-task"))

    assert len(driver.granted) == count


def test_slices_that_were_added_on_the_way_are_built_too(app: App, agent: Agent) -> None:
    driver = driver_of(app, agent, "coding-task", {"track": "full"})
    answer = until(driver, driver.start("coding-task"), "slice")
    slices = [{"title": f"Part {n}", "check": f"check {n}"} for n in range(3)]

    params = driver.output_for(answer)
    driver.finish(driver.call({**params, "context": {"slices": slices}}))

    passes = [one["pending"] for one in driver.given if "check 2" in one["pending"]["prompt"]]
    assert [one["loop"]["iteration"] for one in passes] == [3] * len(passes)
    assert [one["stepId"] for one in passes].count("slice") == 1


def test_a_diagnosis_whose_rivals_nobody_looked_at_comes_back(app: App, agent: Agent) -> None:
    driver = driver_of(app, agent, "bug-investigation", {"depth": "quick"})
    answer = until(driver, driver.start("bug-investigation"), "hand-over")

    params = driver.output_for(answer)
    [*_, assessment] = params["output"]["artifacts"]
    assessment["dimensions"]["rivals"]["level"] = "unchecked"
    answer = driver.call(params)

    assert [found["code"] for found in answer["blocked"]["blockers"]] == [
        "assessment_followup_required"
    ]
    assert driver.go_on(answer)["isComplete"]
