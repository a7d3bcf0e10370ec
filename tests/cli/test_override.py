"""The gate is switched off for an hour and no longer, and the user can end that before."""

from pathlib import Path

import msgspec
import pytest

from interlock.app.clock import SystemClock
from interlock.app.gate import overrides
from interlock.app.gate.overrides import OVERRIDE_FILE, OVERRIDE_MS, GateOverride
from tests.cli.conftest import Terminal
from tests.hooks.desk import Desk

YEARS_MS = 5 * 365 * 86_400_000


@pytest.fixture
def desk(typed: Terminal, home: Path, tmp_path: Path) -> Desk:
    assert typed("init").code == 0
    found = Desk(home, tmp_path)
    found.begin()
    return found


def is_on(desk: Desk) -> bool:
    return desk.tool("Write", file_path="a").answer == "deny"


@pytest.mark.parametrize(
    ("remaining_ms", "is_off"),
    [(OVERRIDE_MS // 2, True), (-1, False), (OVERRIDE_MS + 60_000, False), (YEARS_MS, False)],
)
def test_it_lasts_an_hour_whatever_a_clock_said(
    desk: Desk, typed: Terminal, remaining_ms: int, *, is_off: bool
) -> None:
    override = GateOverride("ana", SystemClock().now_ms() + remaining_ms)
    (desk.home / OVERRIDE_FILE).write_bytes(msgspec.json.encode(override))

    assert is_on(desk) == (not is_off)
    assert ("ana has switched the gate off until" in typed("mode").err) == is_off


def test_it_needs_no_session(typed: Terminal, home: Path) -> None:
    off = typed("mode", "disabled", "--force")

    assert off.code == 0
    assert off.err.startswith("The gate is off until ")
    assert "No session was changed: " in off.err
    assert overrides.active_override(home)
    on = typed("mode", "analysis")
    assert (on.code, "The gate is on again." in on.err) == (0, True)
    assert not overrides.active_override(home)
    assert typed("mode", "analysis").code == 1, "now there was nothing to change"


def test_another_mode_that_the_user_sets_ends_it(desk: Desk, typed: Terminal) -> None:
    assert typed("mode", "disabled", "--force").code == 0
    assert not is_on(desk)

    ended = typed("mode", "analysis")

    assert ended.err == "The gate is on again.\n"
    assert is_on(desk)
    overrides.start_override(desk.home)
    desk.mode("planning")
    assert is_on(desk), "and so does what the user types into the client"


def test_an_agent_does_not_end_it_and_is_told_that_it_lasts(
    desk: Desk, typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides.start_override(desk.home)
    monkeypatch.setenv("CLAUDECODE", "1")

    said = typed("mode", "planning")

    assert "has switched the gate off until" in said.err
    assert "`interlock mode analysis`, run by the user, ends that" in said.err
    assert not is_on(desk)


@pytest.mark.parametrize("words", ["mode --force", "mode coding --force"])
def test_force_is_for_disabled(typed: Terminal, home: Path, words: str) -> None:
    assert typed(*words.split()).code == 2
    assert not (home / OVERRIDE_FILE).exists()
