"""Notices: what an agent is told that runs against the same wall again and again."""

from pathlib import Path

import pytest

from interlock.app.clock import SystemClock
from interlock.app.gate import gate_journal
from interlock.app.gate.opt_in import opt_in
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine
from tests.hooks.desk import Desk

NOTICE = "This was denied 5 times in 10 minutes: stop trying, and ask the user."
MINUTE = 60_000


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Desk:
    opt_in(tmp_path, "standard")
    found = Desk(home, tmp_path)
    found.begin()
    return found


def tried(desk: Desk, times: int, tool: str = "Write") -> list[bool]:
    """Whether there was a notice, denial by denial."""
    found: list[bool] = []
    for _ in range(times):
        heard = desk.tool(tool, file_path="a")
        assert heard.answer == "deny", "the decision stays"
        found.append(NOTICE in heard.text)
    return found


def denied(desk: Desk, at_ms: int, **changes: str) -> None:
    """A denial as it was kept at another time."""
    fields = {"host_session": "host-1", "tool": "Write", "rule": "mode.analysis", **changes}
    line = JournalLine(f"gate_{at_ms}", at_ms, "claude-code", "pre-tool", answer="deny", **fields)
    spool.append_line(desk.home, line)


def test_the_fifth_equal_denial_raises_one_notice(desk: Desk) -> None:
    assert tried(desk, 12) == [False] * 4 + [True] + [False] * 7
    lines = [line for line in gate_journal.journal_lines(desk.home) if line.notice]
    assert [(line.notice, line.root) for line in lines] == [(NOTICE, str(desk.project))]


def test_other_tools_other_rules_and_other_conversations_count_apart(desk: Desk) -> None:
    assert not any(tried(desk, 4))
    assert not any(tried(desk, 4, "Edit"))
    other = Desk(desk.home, desk.project, "host-2")
    other.begin()
    assert not any(tried(other, 4))
    assert NOTICE not in desk.tool("Write", file_path=".interlock/config.toml").text
    assert tried(desk, 1) == [True]


def test_what_was_asked_or_let_through_is_no_denial(desk: Desk) -> None:
    for _ in range(8):
        assert desk.tool("mcp__other__thing").answer == "ask"
    (desk.home / "config.toml").write_text('[gate.rules]\n"mode.analysis" = "advisory"\n')
    for _ in range(8):
        assert "denied" not in desk.tool("Write", file_path="a").text
    assert not any(line.notice for line in gate_journal.journal_lines(desk.home))


def test_the_user_chooses_when(desk: Desk) -> None:
    (desk.home / "config.toml").write_text("[gate]\nnotice_after = 2\nnotice_minutes = 30\n")
    denied(desk, SystemClock().now_ms() - 29 * MINUTE)

    assert "denied 2 times in 30 minutes" in desk.tool("Write", file_path="a").text


def test_a_project_cannot_silence_them(desk: Desk) -> None:
    desk.config("[gate]\nnotice_after = 1000\n")

    assert "unknown field" in desk.tool("Write", file_path="a").text


def test_the_next_start_in_the_same_project_tells_the_user(desk: Desk) -> None:
    tried(desk, 5)
    (line,) = [line for line in gate_journal.journal_lines(desk.home) if line.notice]

    told = Desk(desk.home, desk.project, "host-2").begin()

    wanted = (
        "An agent was denied the same again and again (Write, mode.analysis):"
        f" `interlock gate explain {line.id}`."
    )
    assert told["systemMessage"] == f"Interlock: {wanted}"
    assert wanted in told["hookSpecificOutput"]["additionalContext"]
    elsewhere = desk.home.parent / "elsewhere"
    elsewhere.mkdir()
    opt_in(elsewhere, "standard")
    assert "systemMessage" not in Desk(desk.home, elsewhere, "host-3").begin()


def test_only_the_end_of_a_long_spool_is_read(desk: Desk) -> None:
    now = SystemClock().now_ms()
    for _ in range(8):
        denied(desk, now, tool="Write")
    for number in range(800):
        denied(desk, now + number, tool="Other")
    assert (desk.home / "spool" / "gate.jsonl").stat().st_size > spool.TAIL_BYTES

    newest = spool.tail(desk.home)

    assert {line.tool for line in newest} == {"Other"}
    assert [line.at_ms for line in newest] == list(range(newest[0].at_ms, now + 800))
    assert tried(desk, 1) == [False]


@pytest.mark.parametrize("content", [b"", b"\n", b"{", b"\xff\xfe\n{}\n", b"x" * 200_000])
def test_a_spool_that_makes_no_sense_changes_nothing(desk: Desk, content: bytes) -> None:
    (desk.home / "spool").mkdir(exist_ok=True)
    (desk.home / "spool" / "gate.jsonl").write_bytes(content)

    assert not any(tried(desk, 2))
