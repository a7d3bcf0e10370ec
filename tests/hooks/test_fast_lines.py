"""The lines that the fast hook leaves are those of the full one."""

import shutil
from typing import Any

import msgspec
import pytest

from interlock.hooks import fast
from interlock.hooks.hook_result import HookEvent, HookResult
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine
from tests.hooks.scene import INPUTS, NOTED, Scene, inputs_of


def left_lines(scene: Scene) -> list[JournalLine]:
    """Every line that a hook has left, wherever."""
    home = scene.home
    return [*spool.lines(home), *spool.commands(home), *spool.take_departures(home)]


def assert_same_lines(scene: Scene, content: bytes, event: HookEvent) -> JournalLine:
    """The first line is of the full hook, which makes the file; the second is the same again."""
    assert not scene.is_fast(content, event), "the full hook makes the file"
    assert scene.full(content, event) == HookResult()

    assert scene.is_fast(content, event)

    full, ours = left_lines(scene)
    assert ours.id == f"{event}-{ours.at_ms}"
    assert 0 <= ours.at_ms - full.at_ms < 60_000
    assert ours == msgspec.structs.replace(full, id=ours.id, at_ms=ours.at_ms)
    return full


@pytest.mark.parametrize("event", NOTED)
@pytest.mark.parametrize("fields", [{}, {"session_id": ""}, {"session_id": 'ü"\\\n\0 \U0001f600'}])
def test_a_line_is_left_as_the_full_hook_would(
    host_scene: Scene, event: HookEvent, fields: dict[str, str]
) -> None:
    tool = host_scene.host.tools["edit"].split()[0]
    given = inputs_of(host_scene.host.name)["edit"]
    content = host_scene.payload(tool, given, **fields).replace(b"\\ud83d\\ude00", b"!")

    assert_same_lines(host_scene, content, event)


RESPONSES: tuple[Any, ...] = (
    *({}, None, "", "done", [], 0, {"exit": 0}, {"exit": 3}, {"exit": None}, {"exit": "0"}),
    *({"stdout": "x", "interrupted": False}, {"stdout": "", "interrupted": True}),
    *({"stdout": "", "backgroundTaskId": "b1"}, {"stdout": "", "timedOutAfterMs": 1500}),
    *({"stdout": "", "returnCodeInterpretation": "No matches found"}, {"exitCode": 0}),
    *({"llmContent": "Output: x\nExit Code: 3\n"}, {"llmContent": "Output: x"}),
    *({"llmContent": "Output: x", "error": {"message": "no"}}, {"llmContent": [{"text": "x"}]}),
)
"""Responses of tools, in the form of any host."""
COMMANDS: tuple[dict[str, Any], ...] = (
    {"command": "make test"},
    {"command": "x" * 5_000, "description": "long"},
    {"command": 'ü"\\\n\t\0', "run_in_background": True},
)


@pytest.mark.parametrize("event", ["post-tool", "tool-failed"])
def test_a_command_is_recorded_as_the_full_hook_would(host_scene: Scene, event: HookEvent) -> None:
    tool = host_scene.host.tools["shell"].split()[0]
    calls: list[tuple[dict[str, Any], Any]] = [({"command": "make"}, one) for one in RESPONSES]
    calls += [(one, {}) for one in COMMANDS]
    for given, response in calls:
        content = host_scene.payload(tool, given, tool_response=response)

        line = assert_same_lines(host_scene, content, event)

        detail = given["command"][: fast.COMMAND_CHARS_MAX]
        assert (line.tool, line.detail, line.cwd) == (tool, detail, str(host_scene.project))
        assert line.outcome in ("success", "failure", "unknown")
        shutil.rmtree(host_scene.home / "spool")


@pytest.mark.parametrize(
    "given", [{}, {"command": ["ls", "a"]}, {"cmd": "ls"}, {"command": None}, {"script": "ls"}]
)
def test_a_command_that_is_written_otherwise_is_for_the_full_hook(
    host_scene: Scene, given: dict[str, Any]
) -> None:
    tool = host_scene.host.tools["shell"].split()[0]
    host_scene.full(host_scene.payload(tool, {"command": "ls"}), "post-tool")

    assert not host_scene.is_fast(host_scene.payload(tool, given), "post-tool")


def test_a_spool_that_is_full_is_for_the_full_hook(scene: Scene) -> None:
    content = scene.payload("Write")
    scene.full(content, "post-tool")
    path = scene.home / "spool" / "gate.jsonl"
    with path.open("ab") as file:
        file.truncate(spool.BYTES_MAX + 1)

    assert not scene.is_fast(content, "post-tool")
    assert path.stat().st_size == spool.BYTES_MAX + 1
    scene.full(content, "post-tool")
    assert not path.exists(), "it was moved away"
    assert fast.SPOOL_BYTES_MAX == spool.BYTES_MAX


def test_a_plan_that_the_user_approved_is_for_the_full_hook(scene: Scene) -> None:
    scene.full(scene.payload("Write", INPUTS["edit"]), "post-tool")

    assert scene.is_fast(scene.payload("Write", INPUTS["edit"]), "post-tool")
    assert not scene.is_fast(scene.payload("ExitPlanMode"), "post-tool")
