"""Retention: old copies go, what people wrote stays, and nothing is lost."""

import os
from pathlib import Path

import msgspec
import pytest

from interlock.app.callers import session_record
from interlock.app.callers.caller import local_caller
from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import delegations, gated_sessions
from interlock.app.protocol.publish import publish_session
from interlock.app.protocol.retention import apply_retention
from interlock.app.runs import user_actions
from interlock.cli import commands
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DelegationRequest
from interlock.workspace.machine import spool
from interlock.workspace.machine.spool import JournalLine
from tests.scenes import SettableClock

DAY_MS = 86_400_000
NOW_MS = 2_000_000_000_000


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOW_MS)


@pytest.fixture
def timed(app: App, clock: SettableClock) -> App:
    return msgspec.structs.replace(app, clock=clock)


@pytest.fixture
def session(timed: App, clock: SettableClock, tmp_path: Path) -> SessionId:
    """Its history was compacted twice."""
    opt_in(tmp_path, "standard")
    started = gated_sessions.start(timed, local_caller(timed, tmp_path))
    assert isinstance(started, session_record.StartedSession)
    for number in range(20):
        delegations.delegate(timed, started.session, DelegationRequest("qa", f"Part {number}"))
        done = CompletionRequest("qa", f"Good {number}")
        delegations.complete(timed, started.session, done)
        clock.at_ms += 1
    publish_session(timed, started.session)
    return started.session


def listed(app: App, *, is_dry: bool) -> list[str]:
    return [item.kind for item in apply_retention(app, is_dry=is_dry)]


def test_histories_go_after_their_time_unless_somebody_wrote_into_them(
    timed: App,
    session: SessionId,
    tmp_path: Path,
    clock: SettableClock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / ".interlock" / "notes" / "sessions"
    page = folder / f"session-{session}.md"
    first, second = sorted(folder.glob("*-history-*.md"))
    first.write_text(first.read_text() + "\nMine.\n")
    clock.at_ms = NOW_MS + 30 * DAY_MS
    assert listed(timed, is_dry=False) == []
    clock.at_ms += DAY_MS

    assert listed(timed, is_dry=True) == ["history_note"]
    assert second.exists()
    assert listed(timed, is_dry=False) == ["history_note"]

    assert first.exists()
    assert not second.exists()
    text = page.read_text()
    assert f"- compacted [[sessions/{first.stem}]]" in text
    assert f"- compacted `interlock session show --full {session}`" in text
    publish_session(timed, session)
    assert (page.read_text(), second.exists()) == (text, False)
    assert listed(timed, is_dry=False) == []
    capsys.readouterr()
    assert commands.run_cli(["session", "show", "--full", session]) == 0
    shown = capsys.readouterr().out
    assert [number for number in range(20) if f"> Good {number}\n" not in shown] == []


def test_archived_sessions_go_only_if_the_user_says_when(
    timed: App, session: SessionId, clock: SettableClock, tmp_path: Path
) -> None:
    user_actions.set_archived(timed, session, is_archived=True)
    clock.at_ms += 9 * DAY_MS
    assert listed(timed, is_dry=False) == []
    config = timed.home / "config.toml"
    config.write_text("[retention]\narchived_days = 8\n")

    assert listed(timed, is_dry=True) == ["archived_session"]
    assert listed(timed, is_dry=False) == ["archived_session"]

    assert timed.reader.stream(session) is None
    assert not list((tmp_path / ".interlock" / "notes" / "sessions").glob(f"*{session}*"))
    assert listed(timed, is_dry=False) == []
    config.write_text("[retention]\narchived_days = 0\n")
    with pytest.raises(SettingsBroken):
        apply_retention(timed, is_dry=False)


def test_old_journals_and_crash_logs_go_and_new_lines_stay(
    timed: App, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = timed.home / "logs"
    logs.mkdir()
    old, new = logs / "crash-err_1.txt", logs / "crash-err_2.txt"
    for path, age_days in ((old, 31), (new, 29)):
        path.write_text("x")
        os.utime(path, ns=(0, (NOW_MS - age_days * DAY_MS) * 1_000_000))
    for at_ms in (NOW_MS - 31 * DAY_MS, NOW_MS):
        spool.append_line(timed.home, JournalLine("x", at_ms, "codex", "pre-tool"))
    os.utime(timed.home / "spool" / "gate.jsonl", ns=(0, NOW_MS * 1_000_000))

    (item,) = apply_retention(timed, is_dry=False)

    assert (item.name, old.exists(), new.exists()) == (str(old), False, True)
    assert len(list(spool.lines(timed.home))) == 2
    aside = timed.home / "spool" / "gate.jsonl.1"
    os.utime(aside, ns=(0, (NOW_MS - 31 * DAY_MS) * 1_000_000))
    assert listed(timed, is_dry=False) == ["file"]
    assert list(spool.lines(timed.home)) == []
    assert commands.run_cli(["retention", "--dry-run"]) == 0
    assert "too old" in capsys.readouterr().out
