"""A client that does unattended work may do what was ordered, by its hooks and as evidence."""

from pathlib import Path

import pytest

from interlock.agents.hosts.launcher import Program
from interlock.app.callers.command_records import commands_of
from interlock.app.gate import gate_journal, tool_calls
from interlock.app.gate.bound_conversations import state_of
from interlock.app.hosts.install import write_scripts
from interlock.app.unattended.tool_gate import let_gate_know, withdraw_conversations
from interlock.core.gate.tool_call import parse_tool_call
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session.head import Head
from interlock.core.unattended.order import (
    Limits,
    RepositoryPlace,
    UnattendedOrder,
    UnattendedState,
)

SESSION = SessionId("ses_0123456789abcdef")
CONVERSATION = Conversation("claude-code", "conversation")


@pytest.mark.parametrize(
    ("is_opted_in", "is_read_only", "mode", "answer"),
    [
        (True, False, "coding", "allow"),
        (True, True, "planning", "deny"),
        (False, True, "planning", "deny"),
        (False, False, None, None),
    ],
)
def test_the_gate_knows_what_the_work_was_ordered_for_as_long_as_it_goes_on(
    tmp_path: Path, *, is_opted_in: bool, is_read_only: bool, mode: str | None, answer: str | None
) -> None:
    home, repository = tmp_path / "home", tmp_path / "repository"
    worktree = home / "worktrees" / SESSION
    worktree.mkdir(parents=True)
    (repository / ".interlock").mkdir(parents=True)
    if is_opted_in:
        (repository / ".interlock" / "config.toml").write_text('[project]\nprofile = "strict"\n')

    let_gate_know(home, SESSION, CONVERSATION, repository, "Do it", is_read_only=is_read_only)

    row = state_of(home, CONVERSATION.host, CONVERSATION.id)
    assert (row and row.mode) == mode
    if row:
        given = {"file_path": str(worktree / "a.txt")}
        call = parse_tool_call(CONVERSATION.host, "edit", "Write", given, str(worktree))
        verdict = tool_calls.judge(home, repository, call, CONVERSATION.id, call_id="1")
        assert verdict.decision.answer == answer, verdict.decision
    withdraw_conversations(home, SESSION)
    assert state_of(home, CONVERSATION.host, CONVERSATION.id) is None


def test_a_command_of_its_client_is_known_by_the_worktree(tmp_path: Path) -> None:
    worktree = tmp_path / "worktree"
    order = UnattendedOrder(WorkflowId("line"), "Do it", str(tmp_path), "machine", "claude-code")
    other = RepositoryPlace("web", f"{worktree}.web", "branch")
    state = UnattendedState(
        order, Limits(), "working", 0, 0, worktree=str(worktree), others=(other,)
    )
    for place in (
        *(worktree, worktree / "sub", tmp_path / "worktree-2"),
        *(tmp_path / "worktree.web", tmp_path / "worktree.lib"),
    ):
        gate_journal.journal_event(
            *(tmp_path, "claude-code", "post-tool", "any"),
            tool="Bash",
            detail=f"make {place.name}",
            outcome="success",
            cwd=str(place),
        )

    lines = commands_of(tmp_path, Head(str(tmp_path), 0, 0, unattended=state))

    assert [line.detail for line in lines] == ["make worktree", "make sub", "make worktree.web"]


def test_launch_scripts_are_written_once_and_nothing_besides(tmp_path: Path) -> None:
    home = tmp_path / "home"
    program = Program("/usr/bin/python3", ("-I",), str(home), shell="/bin/bash")

    assert write_scripts(program) == f"{home}/launch-bash"

    written = {path.name for path in home.iterdir()}
    assert written == {"launch", "launch-bash", "installed.lock"}
    (home / "launch").write_text("an install has changed it")
    assert write_scripts(program) == f"{home}/launch-bash"
    assert (home / "launch").read_text() == "an install has changed it"
