"""What is refused, and that each refusal leads on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from msgspec.structs import replace

from interlock.app.context import App
from interlock.app.failures import StoreBusy, StoreFailure
from interlock.core import ids, tokens
from interlock.core.tokens import SigningKey, Token
from interlock.core.workflow.examples import NOTES_BLANK
from interlock.mcp.protocol import McpProtocol
from interlock.mcp.results import (
    ProblemDetails,
    RetryAdvice,
    SuggestedCall,
    ToolProblem,
    problem_result,
)
from interlock.mcp.tools import TOOLS
from tests.blanks import fill
from tests.mcp.agent import Agent
from tests.stores import place_of

TOKEN_BLANK = "<the continueToken of the newest answer>"


def mend(problem: dict[str, Any], token: str = "") -> tuple[str, dict[str, Any]]:
    """What a careful agent does with a refusal: take the call it is offered and fill it in."""
    call = problem["details"]["correctCall"]
    text = json.dumps(call["params"])
    return call["tool"], fill(json.loads(text.replace(TOKEN_BLANK, token)))


def test_an_argument_inside_of_output_is_never_lost_in_silence(agent: Agent) -> None:
    token = agent.start()["continueToken"]

    both = {"continueToken": token, "output": {"notesMarkdown": "REAL", "notes": "other"}}
    assert "Both `output.notesMarkdown`" in agent.refused("continue_workflow", both)["message"]


MISSPELT: list[tuple[str, str, dict[str, Any]]] = [
    ("outputs", "output", {"outputs": {"notesMarkdown": "REAL"}}),
    ("ouptut", "output", {"ouptut": {"notes": "REAL"}}),
    ("notesMarkdwn", "output.notesMarkdown", {"notesMarkdwn": "REAL"}),
    ("output.artefacts", "output.artifacts", {"output": {"notes": "REAL", "artefacts": []}}),
    ("contxt", "context", {"notes": "REAL", "contxt": {"area": "x"}}),
]


@pytest.mark.parametrize(("wrong", "right", "sent"), MISSPELT)
def test_a_misspelt_argument_is_refused_with_its_right_name(
    agent: Agent, wrong: str, right: str, sent: dict[str, object]
) -> None:
    token = agent.start()["continueToken"]

    problem = agent.refused("continue_workflow", {"continueToken": token, **sent})

    expected = f"`{wrong}` is not an argument of continue_workflow; it is called `{right}`"
    assert problem["message"] == expected
    better, arguments = mend(problem)
    assert arguments["output"]["notesMarkdown"] == "REAL", "what it held is in the right place"
    assert agent.ok(better, **arguments)["pending"]["stepId"] == "step-2"


@pytest.mark.parametrize("tool", [one.name for one in TOOLS])
def test_a_workspace_that_does_not_exist_is_refused_by_every_tool(agent: Agent, tool: str) -> None:
    contract = next(one for one in TOOLS if one.name == tool)
    if "workspacePath" not in contract.input_schema["properties"]:
        return
    call = fill(contract.example_call().params)

    problem = agent.refused(tool, {**call, "workspacePath": "/no/such/place"})

    assert problem["message"] == "There is no directory `/no/such/place`"
    assert "workspacePath" not in problem["details"]["correctCall"]["params"]


LINE = {"workflowId": "line", "goal": "g"}
STARTS: list[tuple[str, object]] = [
    ("invalid_arguments", {}),
    ("invalid_arguments", "not an object"),
    ("invalid_arguments", {"workflowId": "line"}),
    ("invalid_arguments", LINE | {"goal": " "}),
    ("invalid_arguments", LINE | {"workflowId": ["line"]}),
    ("invalid_arguments", LINE | {"workspacePath": "/no/such"}),
    ("invalid_arguments", LINE | {"workspacePath": "~nobody/x"}),
    ("invalid_arguments", LINE | {"workspacePath": "a\0b"}),
    ("invalid_arguments", LINE | {"context": {"n": [2**60]}}),
    ("invalid_arguments", LINE | {"context": {"goal": "mine"}}),
    ("invalid_arguments", LINE | {"preferences": {"autonomy": "wild"}}),
    ("unknown_workflow", LINE | {"workflowId": "lime"}),
    ("unknown_session", LINE | {"sessionId": "ses_none"}),
    ("context_unset", LINE | {"workflowId": "asks"}),
]
CONTINUATIONS: list[tuple[str, dict[str, object]]] = [
    ("invalid_arguments", {"notes": "n", "intent": "rehydrate"}),
    ("invalid_arguments", {"intent": "forward"}),
    ("invalid_arguments", {"notes": "n", "context": {"interlock": 1}}),
    ("notes_not_written", {"notes": NOTES_BLANK}),
    ("notes_too_long", {"notes": "x" * 70_000}),
    ("unknown_step", {"step": "step-9"}),
]
MISTAKES: list[tuple[str, str, Callable[[str], object]]] = [
    *((code, "start_workflow", lambda _, sent=sent: sent) for code, sent in STARTS),
    *(
        (code, "continue_workflow", lambda token, sent=sent: {"continueToken": token, **sent})
        for code, sent in CONTINUATIONS
    ),
    ("invalid_arguments", "continue_workflow", lambda _: {"notes": "n"}),
    ("token_mangled", "continue_workflow", lambda token: {"continueToken": token[:-1]}),
    ("notes_missing", "checkpoint_workflow", lambda _: {}),
    ("notes_not_written", "checkpoint_workflow", lambda _: {"notes": NOTES_BLANK}),
    ("token_mangled", "checkpoint_workflow", lambda _: {"token": "ct1oops", "notes": "n"}),
    (
        "invalid_arguments",
        "checkpoint_workflow",
        lambda _: {"notes": "n", "artifacts": [{"big": 2**60}]},
    ),
    ("unknown_workflow", "inspect_workflow", lambda _: {"workflowId": "lime"}),
    ("invalid_arguments", "inspect_workflow", lambda _: {"workflowId": "line", "mode": "all"}),
    ("invalid_arguments", "resume_session", lambda _: {"limit": "many"}),
    ("invalid_arguments", "list_workflows", lambda _: {"tags": [1]}),
]


@pytest.mark.invariant("errors-lead-on")
@pytest.mark.parametrize(("code", "tool", "mistake"), MISTAKES)
def test_the_call_that_a_refusal_offers_is_accepted(
    agent: Agent, code: str, tool: str, mistake: Callable[[str], object]
) -> None:
    token = agent.start()["continueToken"]
    problem = agent.refused(tool, mistake(token))
    assert problem["code"] == code
    assert problem["retry"]["kind"] == "retryable_immediate"

    better, arguments = mend(problem, token)

    answer = agent.ok(better, **arguments)

    if code.startswith("notes_") and better == "continue_workflow":
        assert answer["pending"]["stepId"] == "step-2", "the step is submitted, not only shown"


def test_a_suggested_call_with_blanks_says_that_they_are_to_be_filled_in() -> None:
    def text_of(params: dict[str, Any]) -> str:
        details = ProblemDetails("Choose.", correct_call=SuggestedCall("first", params))
        problem = ToolProblem(
            "unknown_step", "Unknown", RetryAdvice("retryable_immediate"), details
        )
        return problem_result(problem).text

    assert text_of({"id": "<an id>"}).endswith(': (fill in every <…>) first {"id":"<an id>"}')
    assert text_of({"id": "a"}).endswith('a call that would work: first {"id":"a"}')


def test_the_text_of_a_refusal_says_all_that_its_data_say() -> None:
    calls = [SuggestedCall(name, {"id": name}) for name in ("first", "second", "third")]
    details = ProblemDetails(
        hint="Choose one.",
        did_you_mean=("a", "b"),
        missing=("id",),
        allowed=("x", "y"),
        correct_call=calls[0],
        next_calls=(calls[1], calls[2]),
    )
    problem = ToolProblem(
        code="store_busy",
        message="It is busy",
        retry=RetryAdvice("retryable_after_ms", 50),
        details=details,
    )

    result = problem_result(problem)

    assert (result.structured, result.is_error) == (problem, True)
    assert result.text == snapshot("""\
error: It is busy (store_busy)

hint: Choose one.
missing: id
allowed: x, y
did you mean: a, b
retry after 50 ms
a call that would work: first {"id":"first"}
one of: second {"id":"second"}
one of: third {"id":"third"}\
""")


@pytest.mark.invariant("errors-lead-on")
def test_a_complete_run_refuses_politely(agent: Agent) -> None:
    answer = agent.start()
    while not answer["isComplete"]:
        answer = agent.hand_in(answer["continueToken"])
    token = answer["continueToken"]

    problem = agent.refused("continue_workflow", {"continueToken": token, "notes": "more"})

    assert problem["code"] == "nothing_pending"
    assert problem["retry"]["kind"] == "not_retryable"
    assert "The suggested call shows the end" in problem["details"]["hint"]
    better, arguments = mend(problem)
    assert agent.ok(better, **arguments)["isComplete"]


def test_a_request_id_that_was_used_for_another_call_is_refused(agent: Agent) -> None:
    agent.ok("start_workflow", workflowId="line", goal="one", requestId="r1")

    problem = agent.refused(
        "start_workflow", {"workflowId": "line", "goal": "two", "requestId": "r1"}
    )

    assert problem["code"] == "request_reused"
    better, arguments = mend(problem)
    agent.ok(better, **arguments)


def test_a_run_that_waits_says_who_can_let_it_go_on(agent: Agent) -> None:
    answer = agent.start()
    run = answer["introduction"]["run"]
    for _ in range(10):
        answer = agent.ok("continue_workflow", continueToken=answer["continueToken"], output={})
    assert answer["nextIntent"] == "rehydrate_only"
    token = answer["continueToken"]

    problem = agent.refused("continue_workflow", {"continueToken": token, "notes": "now"})

    assert problem["code"] == "run_waits"
    assert f"interlock run unblock {run}" in problem["details"]["hint"]
    better, arguments = mend(problem)
    assert agent.ok(better, **arguments)["nextIntent"] == "rehydrate_only"


def test_broken_settings_are_named(agent: Agent, home: Path) -> None:
    (home / "config.toml").write_text("[preferences]\nautonomy = 'wild'\n")

    problem = agent.refused("start_workflow", {"workflowId": "line", "goal": "g"})

    assert problem["code"] == "settings_broken"
    assert "config.toml" in problem["message"]


def foreign(app: App, **changes: Any) -> str:
    key = app.keyring.current()
    other = SigningKey(changes.get("id", key.id), changes.get("secret", key.secret), "current")
    return tokens.mint(Token(ids.node_id(b"somenode"), ids.attempt_id(b"other")), other)


@pytest.mark.invariant("errors-lead-on")
def test_each_fault_of_a_token_has_its_own_code_and_a_way_on(app: App, agent: Agent) -> None:
    newest = agent.start()["continueToken"]

    def code(token: str) -> str:
        problem = agent.refused("continue_workflow", {"continueToken": token})
        better, arguments = mend(problem, newest)
        agent.ok(better, **arguments)
        is_final = problem["retry"]["kind"] == "not_retryable"
        assert is_final is (problem["code"] in ("token_other_store", "node_gone"))
        return problem["code"]

    other_id = (app.keyring.current().id + 1) % 65_536
    assert code("ct1nonsense") == "token_mangled"
    assert code(foreign(app, id=other_id)) == "token_other_store"
    assert code(foreign(app, secret=b"x" * 32)) == "token_forged"
    assert code(foreign(app)) == "node_gone"


def test_a_damaged_session_is_refused_as_unhealthy(app: App, agent: Agent, home: Path) -> None:
    assert app.reader
    token = agent.start()["continueToken"]
    place_of(home).run("UPDATE event SET digest = ? WHERE seq = 4", bytes(32))

    problem = agent.refused("continue_workflow", {"continueToken": token, "notes": "n"})

    assert problem["code"] == "session_unhealthy"
    assert problem["retry"]["kind"] == "not_retryable"


def test_an_unknown_tool_is_answered_with_those_that_exist(agent: Agent) -> None:
    problem = agent.refused("list_workflow", {})

    assert problem["code"] == "unknown_tool"
    assert problem["details"]["allowed"] == [tool.name for tool in TOOLS]
    assert problem["details"]["didYouMean"] == ["list_workflows"]
    agent.ok(*mend(problem)[:1])


class Failing:
    """A log in which every append fails in the same way."""

    def __init__(self, real: Any, failure: Exception) -> None:
        self._real, self._failure = real, failure

    def append(self, _: object) -> bool:
        raise self._failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.parametrize(
    ("failure", "code", "retry"),
    [
        (StoreBusy("held", "wait"), "store_busy", "retryable_after_ms"),
        (StoreFailure("disk full", "free some"), "store_failed", "not_retryable"),
        (ZeroDivisionError("oops"), "internal_error", "not_retryable"),
    ],
)
def test_a_failing_world_is_an_answer_and_not_a_hang(
    app: App, agent: Agent, failure: Exception, code: str, retry: str
) -> None:
    token = agent.start()["continueToken"]
    failing = Agent(McpProtocol(replace(app, log=Failing(app.log, failure)), TOOLS))  # pyright: ignore[reportArgumentType]

    problem = failing.refused("continue_workflow", {"continueToken": token, "notes": "n"})

    assert (problem["code"], problem["retry"]["kind"]) == (code, retry)
    assert agent.hand_in(token)["pending"]["stepId"] == "step-2"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([tool.name for tool in TOOLS]),
    st.dictionaries(
        st.sampled_from(
            sorted({name for tool in TOOLS for name in tool.input_schema["properties"]})
        ),
        st.none()
        | st.text()
        | st.integers()
        | st.lists(st.text(), max_size=2)
        | st.dictionaries(st.text(), st.text(), max_size=2),
    ),
)
@example("start_workflow", {"goal": ""})
@example("preflight", {"sessionId": "0"})
@example("request_approval", {"title": "t", "content": "c", "sessionId": "0"})
@example("session", {"action": "get", "sessionId": "0"})
@example("start_workflow", {"workflowId": "line", "goal": "g", "sessionId": "0"})
def test_any_arguments_have_an_answer_that_is_not_our_bug(
    agent: Agent, tool: str, arguments: dict[str, object]
) -> None:
    result = agent.call(tool, arguments)

    assert not result["isError"] or result["structuredContent"]["code"] != "internal_error"
