"""The gate before the tools of a driver: the same rules as for anybody's tools.

A call in a worktree is judged as the same call in the user's checkout, by the policy there: the
worktree is beneath the data home, of which every path is protected, and what its own config says
may have been written by the model. Where the work is about several repositories, a call in one can
reach the others, so the policies of all of them are asked, and the strictest decides.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlock.app.callers.command_records import DRIVER
from interlock.app.clock import SystemClock
from interlock.app.gate import gate_journal, tool_calls
from interlock.core.canonical import Json
from interlock.core.gate.decide import GateDecision
from interlock.core.gate.state import GateRow
from interlock.core.gate.tool_call import parse_tool_call
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.store import gate_rows
from interlock.store.gate_rows import PublishedRow
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine
from interlock.workspace.projects import project

_STRICTNESS = ("deny", "ask", "allow")


class GatedCall(msgspec.Struct, frozen=True):
    """A tool call of a model, as the gate looks at it."""

    session: SessionId
    worktree: Path
    """The one in which it is made."""
    checkouts: Mapping[Path, Path]
    """The user's checkouts, by the worktrees of the session."""
    tool: str
    kind: str
    tool_input: Mapping[str, Json]
    is_read_only: bool
    call: str
    task: str
    """The goal of the work."""


def judge_tool(home: Path, gated: GatedCall) -> GateDecision | None:
    """The decision about a call; None where no project of the session has opted in."""
    found = {project.root_of(checkout) for checkout in gated.checkouts.values()}
    roots = sorted(root for root in found if root and (root / project.CONFIG).exists())
    decisions = [_judge_in_project(home, gated, root) for root in roots]
    return min(decisions, key=lambda one: _STRICTNESS.index(one.answer), default=None)


def _judge_in_project(home: Path, gated: GatedCall, root: Path) -> GateDecision:
    row = _gate_row(gated.session, gated.task, root, is_read_only=gated.is_read_only)
    content = msgspec.json.encode(gated.tool_input).decode()
    # The longest first: the path of one may begin with that of another.
    for worktree in sorted(gated.checkouts, key=lambda path: -len(str(path))):
        content = content.replace(str(worktree), str(gated.checkouts[worktree]))
    tool_input, cwd = msgspec.json.decode(content), str(gated.checkouts[gated.worktree])
    parsed = parse_tool_call(DRIVER, gated.kind, gated.tool, tool_input, cwd)
    call = msgspec.structs.replace(parsed, is_confined=gated.is_read_only, can_ask=False)
    verdict = tool_calls.judge_in_project(home, root, call, row)
    verdict = msgspec.structs.replace(verdict, id=f"gate_{gated.call[-10:]}")
    tool_calls.journal(home, verdict, call, gated.session)
    return verdict.decision


def _gate_row(session: SessionId, task: str, root: Path, *, is_read_only: bool) -> GateRow:
    """Return the row of a session in which a driver works.

    No step that changes files begins before the start of the protocol is complete. Work that only
    reads is planning: in a strict project, analysis runs no commands.
    """
    mode = "planning" if is_read_only else "coding"
    # A version: without one, the name is not recorded until the first event.
    return GateRow(
        session, mode, is_started=True, task=task, may_code=True, version=1, root=str(root)
    )


def denials_of(home: Path, session: SessionId) -> list[str]:
    """Return the rules by which the gate denied calls in a session, in its own loop or a client."""
    return [
        line.rule
        for line in spool.lines(home)
        if line.session == session and line.answer == "deny" and line.event == "pre-tool"
    ]


def record_command(
    home: Path, session: SessionId, command: str, exit_code: int, worktree: Path
) -> None:
    """Record a command that was run, so that it can prove a step. Failing to changes nothing."""
    at_ms = SystemClock().now_ms()
    line = JournalLine(
        f"cmd_{at_ms}",
        at_ms,
        DRIVER,
        "post-tool",
        host_session=str(worktree),
        session=session,
        tool="Bash",
        detail=command,
        outcome="failure" if exit_code else "success",
        cwd=str(worktree),
    )
    gate_journal.append(home, line)


def let_gate_know(
    home: Path,
    session: SessionId,
    conversation: Conversation,
    repository: Path,
    task: str,
    *,
    is_read_only: bool,
) -> None:
    """Allow a conversation its session's queued work. `repository`: the user's checkout.

    Only the row that the client's hooks and its shell look up is written. Nothing is recorded in
    the log: there the session is no attended one, so nobody takes it for ended when its client has
    gone, no logbook is kept, and it is listed once. In a project that has not opted in there is no
    gate; but where work only reads, the shell goes by the row there, too.

    Raises:
        StoreFailure: it cannot be written.
    """
    root = project.root_of(repository)
    if root is None and not is_read_only:
        return
    row = _gate_row(session, task, root or repository, is_read_only=is_read_only)
    published = PublishedRow(conversation.host, conversation.id, row, is_simple=False)
    gate_rows.publish_rows(home, [published])


def withdraw_conversations(home: Path, session: SessionId) -> None:
    """Remove the conversations of a session from the gate after its work is over.

    Raises:
        StoreFailure: it cannot be written.
    """
    gate_rows.withdraw_session(home, session)
