"""Every call that a refusal of the notes suggests is one that is understood."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.agent import Agent
from tests.mcp.dry_run import suggested_calls

pytestmark = pytest.mark.slow

N = "# N\n\n## One\n\nsame\nsame\n\n## Two\n\ntext\n"


@pytest.fixture(autouse=True)
def folder(agent: Agent) -> Path:
    assert agent
    Path(".git").mkdir()
    folder = Path(".interlock") / "notes"
    folder.mkdir(parents=True)
    for name in ("n.md", "one/same.md", "two/same.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(N)
    return folder


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
    ("write_note", {"title": "n", "content": "x", "overwrite": True, "version": "0" * 12}),
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

    calls = [*suggested_calls(refused)]
    assert calls, refused
    for call in calls:
        assert call["params"].get("workspacePath") == str(tmp_path), call
        answer = agent.plain(call["tool"], call["params"])["structuredContent"]
        assert answer.get("code") != "invalid_arguments", (call, answer)
        assert "warnings" not in answer, (call, answer)
        assert "<version>" not in call["params"].values()
        if call["params"].get("identifier") == "n" and call == refused["details"].get(
            "correctCall"
        ):
            assert "code" not in answer, (call, answer)


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
