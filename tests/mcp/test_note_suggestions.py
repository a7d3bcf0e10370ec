"""Every call that a refusal of the notes suggests is one that is understood."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.notes.neighbourhood import DEPTH_MAX
from interlock.app.notes.search import LIMIT_MAX
from interlock.mcp.note_tools import TOOLS_BY_NAME
from tests.effort import scale
from tests.mcp.agent import Agent
from tests.mcp.test_notes import JUNK

pytestmark = pytest.mark.slow

N = "# N\n\n## One\n\nsame\nsame\n\n## Two\n\ntext\n"


@pytest.fixture(autouse=True)
def folder(agent: Agent) -> Path:
    assert agent
    Path(".git").mkdir()
    folder = Path(".interlock") / "notes"
    folder.mkdir(parents=True)
    _put(folder)
    return folder


def _put(folder: Path) -> None:
    for name in ("n.md", "one/same.md", "two/same.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(N)


def suggested(refused: dict[str, Any]) -> list[dict[str, Any]]:
    details = refused["details"]
    first = [details["correctCall"]] if "correctCall" in details else []
    return [*first, *details.get("nextCalls", ())]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("edit_note", {"identifier": "n", "operation": "replace", "section": "One", "content": "x"}),
    ("edit_note", {"identifier": "n", "operation": "replace", "findText": "text", "content": "x"}),
    ("edit_note", {"identifier": "n", "operation": "insert", "section": "One", "content": "x"}),
    ("edit_note", {"identifier": "n", "operation": "frobnicate", "content": "x"}),
    ("edit_note", {"identifier": "n", "operation": "append", "section": "One", "content": "x"}),
    ("edit_note", {"identifier": "n", "operation": "append", "findText": "text", "content": "x"}),
    ("edit_note", {"identifier": "n", "metadata": "x"}),
    ("edit_note", {"identifier": "n", "metadata": 5, "page": []}),
    ("edit_note", {"identifier": "n"}),
    ("edit_note", {"identifier": "n", "content": "x", "metadata": {"status": "done"}}),
    ("edit_note", {}),
    ("edit_note", {"identifier": 5, "operation": 5, "content": 5, "metadata": 5}),
    ("edit_note", {"identifier": "m", "operation": "append", "content": "x"}),
    ("edit_note", {"identifier": "same", "operation": "append", "content": "x"}),
    (
        "edit_note",
        {"identifier": "n", "operation": "find_replace", "findText": "same", "content": "x"},
    ),
    (
        "edit_note",
        {"identifier": "n", "operation": "replace_section", "section": "One", "content": "x"},
    ),
    (
        "edit_note",
        {"identifier": "n", "operation": "append", "content": "x", "version": "0" * 12},
    ),
    ("delete_note", {"identifier": "n"}),
    ("delete_note", {"identifier": "n", "version": 5}),
    ("delete_note", {"identifier": "n", "version": ""}),
    ("delete_note", {"identifier": "n", "version": "0" * 12}),
    ("delete_note", {"identifier": "same", "version": "0" * 12}),
    ("delete_note", {}),
    ("move_note", {"identifier": "n"}),
    ("move_note", {"identifier": "n", "to": "one/same.md"}),
    ("write_note", {"title": "n", "content": "x"}),
    ("write_note", {"title": "N!", "content": "x"}),
    ("write_note", {"title": "n", "content": "x", "metadata": "y", "tags": {}}),
    ("read_note", {"identifier": "same"}),
    ("read_note", {"identifier": "not there"}),
    ("read_note", {"identifier": "n", "page": 0}),
    ("search_notes", {"query": "n", "status": "frob"}),
    ("search_notes", {"query": "n", "limit": 0}),
    ("search_notes", {"query": "n", "timeframe": "soonish"}),
    ("search_notes", {"query": "n", "status": 5, "limit": "many", "page": -1}),
    ("build_context", {"identifier": "n", "depth": -1}),
    ("build_context", {"identifier": "n", "limit": 0}),
    ("build_context", {"identifier": "not there", "timeframe": "7d"}),
    ("recent_activity", {"limit": 0}),
]


@pytest.mark.parametrize(("tool", "sent"), REFUSED)
def test_each_suggested_call_is_understood_and_stays_in_the_project(
    agent: Agent, tmp_path: Path, tool: str, sent: dict[str, Any]
) -> None:
    refused = agent.refused(tool, {**sent, "workspacePath": str(tmp_path)})

    assert suggested(refused), refused
    for call in suggested(refused):
        assert call["params"].get("workspacePath") == str(tmp_path), call
        answer = agent.plain(call["tool"], call["params"])["structuredContent"]
        assert answer.get("code") != "invalid_arguments", (call, answer)
        assert "warnings" not in answer, (call, answer)
        assert "<version>" not in call["params"].values()
        if call["params"].get("identifier") == "n" and call == refused["details"].get(
            "correctCall"
        ):
            assert "code" not in answer, (call, answer)


@pytest.mark.parametrize("name", TOOLS_BY_NAME)
@settings(max_examples=scale(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_wrong_argument_is_answered_with_a_call_that_is_right(
    agent: Agent, folder: Path, name: str, data: st.DataObject
) -> None:
    _put(folder)
    tool = TOOLS_BY_NAME[name]
    wrong = data.draw(st.sampled_from(sorted(set(tool.input_schema["properties"]) - {"to"})))
    right = (
        {**tool.example_call().params, "identifier": "n"}
        if "identifier" in tool.argument_paths
        else {}
    )
    right = {key: value for key, value in right.items() if key in tool.input_schema["properties"]}
    if wrong == "workspacePath":
        return

    result = agent.plain(name, {**right, wrong: data.draw(JUNK)})

    if result["isError"]:
        for call in suggested(result["structuredContent"]):
            again = agent.plain(call["tool"], call["params"])["structuredContent"]
            assert again.get("code") != "invalid_arguments", (call, again)


def test_an_append_into_a_section_is_refused_and_told_which_edit_does_that(
    agent: Agent, folder: Path
) -> None:
    sent = {"identifier": "n", "operation": "append", "section": "One", "content": "new"}

    refused = agent.refused("edit_note", sent)

    assert "append takes no section" in refused["message"]
    assert "insert_after_section" in refused["details"]["hint"]
    assert (folder / "n.md").read_text() == N
    call = refused["details"]["correctCall"]
    assert call["params"] == {**sent, "operation": "insert_after_section"}
    agent.ok(call["tool"], **call["params"])
    assert "same\n\nnew\n\n## Two" in (folder / "n.md").read_text()


def test_defaults_that_are_sent_along_are_no_mistake(agent: Agent, folder: Path) -> None:
    """Some clients fill in all that a schema names."""
    agent.ok(
        "edit_note",
        identifier="n",
        operation="append",
        content="more",
        section="",
        findText="",
        expectedReplacements=1,
        replaceSubsections=False,
        metadata={},
    )

    assert (folder / "n.md").read_text() == f"{N}more\n"


def test_a_named_delete_that_comes_again_is_answered_as_the_first(
    agent: Agent, folder: Path
) -> None:
    version = agent.ok("read_note", identifier="n")["version"]
    call = {"identifier": "n", "version": version, "requestId": "r1"}

    first = agent.ok("delete_note", **call)
    again = agent.ok("delete_note", **call)
    reused = agent.refused("delete_note", {**call, "identifier": "one/same"})

    assert first == again
    assert first["result"] == "deleted"
    assert reused["code"] == "request_reused"
    assert not (folder / "n.md").exists()
    assert (folder / "one" / "same.md").exists()


def test_a_move_onto_a_note_says_that_one_is_there(agent: Agent) -> None:
    refused = agent.refused("move_note", {"identifier": "n", "to": "one/same.md"})

    assert refused["code"] == "note_exists"
    assert "version" not in refused["message"] + refused["details"]["hint"]


def test_a_title_may_be_called_a_name(agent: Agent) -> None:
    assert agent.ok("write_note", name="Called", content="x")["path"] == "Called.md"


def test_bounds_and_closed_words_are_in_the_schemas() -> None:
    def schema(tool: str, argument: str) -> dict[str, Any]:
        return TOOLS_BY_NAME[tool].input_schema["properties"][argument]

    assert schema("search_notes", "status")["enum"] == [
        *("active", "blocked", "closed", "done", "open")
    ]
    for tool in ("search_notes", "build_context", "recent_activity"):
        bounds = schema(tool, "limit")
        assert (bounds["minimum"], bounds["maximum"]) == (1, LIMIT_MAX)
    bounds = schema("build_context", "depth")
    assert (bounds["minimum"], bounds["maximum"]) == (0, DEPTH_MAX)


def test_one_is_not_several(agent: Agent) -> None:
    text = agent.call("search_notes", {"folder": "one"})["content"][0]["text"]
    assert text.startswith("1 note.\n")
    agent.ok("write_note", title="m", content="see [[n]]", separate=True)
    text = agent.call("build_context", {"identifier": "m"})["content"][0]["text"]
    assert "1 link away by m.md" in text


def test_a_server_whose_directory_is_gone_says_so(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("PWD", str(gone))
    gone.rmdir()

    for tool, sent in (
        ("recent_activity", {}),
        ("write_note", {"title": "T", "content": "x"}),
        ("start_workflow", {"workflowId": "line", "goal": "g"}),
    ):
        refused = agent.refused(tool, sent)
        assert refused["message"] == f"There is no directory `{gone}`", tool
    monkeypatch.chdir(tmp_path)
    assert agent.ok("recent_activity", workspacePath=str(tmp_path))
