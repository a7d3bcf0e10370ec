"""Operations of the REST API on work: runs, gaps, approvals, workflows."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.workspace.machine.identity import user_name
from tests.server.forms import call
from tests.server.process import Process, refusal
from tests.server.store import Filled
from tests.server.test_api import NOBODY, begun, found, served, server

__all__ = ["found", "served", "server"]  # fixtures
NO_RUN = "run_0000000000000000"
SMALL: dict[str, Any] = {
    "id": "small",
    "name": "Small",
    "description": "One step",
    "version": "1.0.0",
    "steps": [{"id": "only", "title": "Only", "prompt": "Do it."}],
}


def handed_in(server: Process, token: str, notes: str) -> dict[str, Any]:
    """The answer to an agent that submits a step over MCP."""
    output = {"notesMarkdown": notes}
    result = call(server, "continue_workflow", continueToken=token, output=output)
    return result["structuredContent"]


def test_a_run_that_was_started_goes_on_over_mcp(server: Process, found: Filled) -> None:
    first = begun(server, found, "Go on elsewhere", context={"size": 3})

    assert first["pending"]["stepId"] == "step-1"
    second = handed_in(server, first["continueToken"], "done")
    assert second["pending"]["stepId"] == "step-2"
    assert server.look(f"/runs/{first['introduction']['run']}")["head"]["stepsDone"] == 1


def test_a_start_is_carried_out_once(server: Process, found: Filled) -> None:
    answer = begun(server, found, "Only once", requestId="a")
    first = answer["introduction"]

    assert begun(server, found, "Only once", requestId="a") == answer
    wanted = {"workflow": "line", "goal": "Another", "workspace": str(found.project)}
    said = server.send("/runs", {**wanted, "requestId": "a"})
    assert refusal(said)[:2] == (409, "request_reused")
    again = begun(server, found, "In the same session", session=first["session"])
    other = again["introduction"]
    assert (other["session"], other["run"] != first["run"]) == (first["session"], True)


def test_a_start_that_makes_no_sense_says_why(server: Process, found: Filled) -> None:
    wanted = {"workflow": "line", "goal": "Try it", "workspace": str(found.project)}

    for change, expected in (
        ({"workflow": "lime"}, (404, "unknown_workflow", "No workflow `lime`")),
        ({"session": NOBODY}, (404, "unknown_session", f"No session `{NOBODY}`")),
        (
            {"workspace": "/no/such/place"},
            (400, "invalid_arguments", "There is no directory `/no/such/place`"),
        ),
        (
            {"goal": " \n"},
            (400, "invalid_arguments", "`goal`: Expected `str` matching regex '\\\\S'"),
        ),
        (
            {"colour": "red"},
            (400, "invalid_arguments", "`the body`: Object contains unknown field `colour`"),
        ),
        (
            {"context": {"goal": "mine"}},
            (400, "invalid_arguments", "`/context/goal` cannot be taken: this key is reserved"),
        ),
    ):
        assert refusal(server.send("/runs", {**wanted, **change})) == expected
    del wanted["goal"]
    missing = "`the body`: Object missing required field `goal`"
    assert refusal(server.send("/runs", wanted)) == (400, "invalid_arguments", missing)


@pytest.mark.parametrize(
    ("body", "media_type", "expected"),
    [
        (b"{", "application/json", (400, "invalid_arguments")),
        (b"\xff", "application/json", (400, "invalid_arguments")),
        (b'{"goal":"\xff"}', "application/json", (400, "invalid_arguments")),
        (b'{"goal":"\\ud800"}', "application/json", (400, "invalid_arguments")),
        (b"[" * 100_000, "application/json", (400, "invalid_arguments")),
        (b"null", "application/json; charset=utf-8", (400, "invalid_arguments")),
        (b"{}", "text/plain", (415, "wrong_media_type")),
    ],
)
def test_a_body_that_is_none_is_refused(
    server: Process, body: bytes, media_type: str, expected: tuple[int, str]
) -> None:
    headers = {**server.signed(), **({"content-type": media_type} if media_type else {})}

    assert refusal(server.ask("POST", "/api/v2/runs", headers=headers, body=body))[:2] == expected


def test_preferences_are_set(server: Process, found: Filled) -> None:
    run = begun(server, found, "Be preferred")["introduction"]["run"]
    path = f"/runs/{run}/preferences"

    chosen = {"autonomy": "full_auto_never_stop", "riskPolicy": "conservative"}
    assert server.change(path, {"autonomy": "full_auto_never_stop"}) == chosen
    assert server.change(path, {}) == chosen
    assert refusal(server.send(path, {"speed": 1}))[:2] == (400, "invalid_arguments")
    said = server.send(f"/runs/{NO_RUN}/preferences", {})
    assert refusal(said)[:2] == (404, "unknown_run")


def test_a_waiting_run_is_let_go_on_once(server: Process, found: Filled) -> None:
    path = f"/runs/{found.waiting_run}/unblock"

    assert server.change(path) == {"run": found.waiting_run, "goesOnAt": "Step 1"}
    assert refusal(server.send(path))[:2] == (409, "nothing_to_unblock")
    assert refusal(server.send(f"/runs/{NO_RUN}/unblock"))[:2] == (404, "unknown_run")


def test_gaps_are_listed_and_closed(server: Process, found: Filled) -> None:
    session = found.ids["session"]
    (gap,) = server.look("/gaps")["gaps"]

    assert server.look("/gaps", session=session)["gaps"] == [gap]
    assert (gap["session"], gap["gap"]["summary"]) == (session, "No tests")
    path = f"/sessions/{session}/gaps/{gap['gap']['gap']}/resolve"
    assert refusal(server.send(path, {"how": ""}))[:2] == (400, "invalid_arguments")
    assert server.change(path, {"how": "Wrote them"}) == {
        "session": session,
        "closed": gap["gap"]["gap"],
    }
    assert refusal(server.send(path, {"how": "Again"}))[:2] == (404, "unknown_gap")
    assert server.look("/gaps")["gaps"] == []
    assert server.refused("/gaps", session=NOBODY)[:2] == (404, "unknown_session")
    nowhere = f"/sessions/{NOBODY}/gaps/gap_0000000000/resolve"
    assert refusal(server.send(nowhere, {"how": "So"}))[:2] == (404, "unknown_session")


def pending_approvals(server: Process) -> dict[str, Any]:
    return {one["approval"]: one for one in server.look("/approvals")["approvals"]}


def test_approvals_are_listed_and_answered_once(server: Process, found: Filled) -> None:
    one = pending_approvals(server)[found.ids["approval"]]
    path = f"/approvals/{one['approval']}"

    assert one["question"] == "Is the plan good?"
    assert refusal(server.send(f"{path}/deny", {}))[:2] == (400, "invalid_arguments")
    stale = server.send(f"{path}/grant", {"shown": "0" * 12})
    assert refusal(stale)[:2] == (409, "approval_changed")
    assert "Is the plan good?" in stale.text, "it is shown again"
    granted = server.change(f"{path}/grant", {"shown": one["shown"]})
    assert (granted["verdict"], granted["goesOnAt"]) == ("granted", "Build")
    assert one["approval"] not in pending_approvals(server)
    for verb, body in (("grant", {}), ("deny", {"reason": "No"})):
        said = server.send(f"{path}/{verb}", body)
        assert refusal(said)[:2] == (409, "approval_answered")
        assert f"was granted already, by {user_name()}, by REST, at 20" in said.text


def test_an_approval_is_denied_with_a_reason(server: Process, found: Filled) -> None:
    wanted = {"workflow": "planned", "goal": "Be denied", "workspace": str(found.project)}
    earlier = pending_approvals(server)
    handed_in(server, server.change("/runs", wanted)["continueToken"], "the plan")
    (one,) = (one for name, one in pending_approvals(server).items() if name not in earlier)

    denied = server.change(f"/approvals/{one['approval']}/deny", {"reason": "No tests"})
    assert (denied["verdict"], denied["goesOnAt"]) == ("denied", "Plan")
    graph = server.look(f"/runs/{one['run']}")["graph"]
    assert graph["nodes"][-1]["kind"] == "blocked"


def test_workflows_of_a_project_count_where_a_session_was(server: Process, found: Filled) -> None:
    def names(**query: object) -> set[str]:
        return {one["id"] for one in server.look("/workflows", **query)["workflows"]}

    here = {"workspace": str(found.project)}
    assert "hello" in names()
    assert "line" not in names()
    assert {"hello", "line", "planned"} <= names(**here)
    assert names(**here, q="plan, then build") == {"planned"}
    assert names(tag="no such tag") == set()
    shown = server.look("/workflows/planned", **here)
    assert [step["step"] for step in shown["steps"]] == ["plan", "build"]
    assert shown["compiled"]["id"] == shown["workflow"]["id"] == "planned"
    assert shown["workflow"]["place"]["origin"] == "project"
    assert server.refused("/workflows/planned")[:2] == (404, "unknown_workflow")
    assert server.refused("/workflows/no.such.name")[:2] == (400, "invalid_arguments")


def test_no_request_makes_the_server_read_another_directory(
    server: Process, tmp_path: Path
) -> None:
    directory = tmp_path / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    (directory / "small.json").write_text(json.dumps(SMALL))
    expected = f"`workspace`: no session was ever recorded in `{tmp_path}`"

    for path in ("/workflows", "/workflows/small"):
        said = server.refused(path, workspace=tmp_path)
        assert said == (400, "invalid_arguments", expected)
    said = server.send("/validate", {"source": "{}", "workspace": str(tmp_path)})
    assert refusal(said) == (400, "invalid_arguments", expected)


def test_a_source_is_checked_without_being_kept(server: Process) -> None:
    good = server.change("/validate", {"source": json.dumps(SMALL)})
    bad = server.change("/validate", {"source": json.dumps({**SMALL, "steps": []})})
    none = server.change("/validate", {"source": "not JSON"})

    assert good["isValid"]
    assert good["hash"].startswith("sha256:")
    assert (bad["isValid"], bad["hash"]) == (False, None)
    assert bad["problems"][0]["pointer"] == "/steps"
    assert none["problems"][0]["rule"] == "json"
    calls = {**SMALL, "steps": [{"id": "a", "title": "A", "templateCall": {"templateId": "x"}}]}
    assert not server.change("/validate", {"source": json.dumps(calls)})["isValid"]
    assert server.refused("/workflows/small")[:2] == (404, "unknown_workflow")


def test_settings_that_cannot_be_read_are_named(server: Process, found: Filled) -> None:
    config = found.project / ".interlock" / "config.toml"
    config.write_text("no = [toml")
    try:
        status, code, error = server.refused("/workflows", workspace=found.project)
    finally:
        config.unlink()

    assert (status, code) == (409, "settings_broken")
    assert str(config) in error
