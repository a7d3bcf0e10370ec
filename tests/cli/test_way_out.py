"""Nobody is locked in: whatever is broken, the user gets on, is told how, and an agent is not."""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.app.gate import overrides
from interlock.app.gate.opt_in import opt_in
from interlock.core.gate.state import MODES, Mode
from tests.cli.conftest import Terminal
from tests.hooks.desk import Desk
from tests.person import run_as_person

pytestmark = pytest.mark.slow

LAUNCH = """
import ctypes, os, resource, sys
how, *words = sys.argv[1:]
if how == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # not a byte can be written to any file
elif how == "read-only" and os.geteuid() == 0:
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # what is read-only is so for root too, after exec
os.execv(sys.executable, [sys.executable, "-m", "interlock", *words])
"""
Harm = Callable[[Path], None]


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def launched(how: str, *words: str, stdin: str = "", **environment: str) -> Ran:
    """The real command on a machine on which something is wrong."""
    command = (sys.executable, "-c", LAUNCH, how, *words)
    done = run_as_person(command, stdin=stdin, environment=environment)
    return Ran(done.returncode, done.stdout, done.stderr)


def asked(how: str, desk: Desk, tool: str, **tool_input: Any) -> tuple[str, str]:
    """What the hook's process answers, and why."""
    payload = {
        "session_id": desk.session,
        "cwd": str(desk.project),
        "tool_name": tool,
        "tool_input": tool_input,
    }
    words = ("hook", "--host", "claude-code", "--event", "pre-tool", "--home", str(desk.home))
    ran = launched(how, *words, stdin=json.dumps(payload))
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, str] = json.loads(ran.out)["hookSpecificOutput"] if ran.out else {}
    return found.get("permissionDecision", "allow"), found.get("permissionDecisionReason", "")


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Iterator[Desk]:
    opt_in(tmp_path, "standard")
    found = Desk(home, tmp_path)
    found.begin()
    yield found
    for path in (home, *home.rglob("*")):
        path.chmod(0o700)  # so that it can be removed


def sound(home: Path) -> None:
    """Nothing is wrong."""


def missing(home: Path) -> None:
    (home / "gate.db").unlink()


def corrupt(home: Path) -> None:
    (home / "gate.db").write_bytes(b"this is no database" * 100)


def store_corrupt(home: Path) -> None:
    for path in home.glob("interlock.db*"):
        path.unlink()
    (home / "interlock.db").write_bytes(b"this is no database" * 100)


def names_a_way(text: str) -> bool:
    is_by_mode = "`/mode coding`" in text and "`interlock mode coding` in a terminal" in text
    return is_by_mode or ("`/mode analysis`" in text and "interlock mode disabled --force" in text)


@pytest.mark.parametrize(
    "harm", [sound, missing, corrupt, pytest.param(store_corrupt, marks=pytest.mark.sqlite)]
)
@pytest.mark.parametrize("mode", MODES)
def test_the_user_gets_on_and_an_agent_does_not(
    desk: Desk, typed: Terminal, monkeypatch: pytest.MonkeyPatch, mode: Mode, harm: Harm
) -> None:
    desk.mode(mode)
    harm(desk.home)
    is_known = harm in (sound, store_corrupt)
    is_open = is_known and mode in ("coding", "disabled")

    written = desk.tool("Write", file_path="a")
    assert written.answer == ("allow" if is_open else "deny")
    assert is_open or names_a_way(written.text)
    forced = desk.tool("Bash", command="interlock mode disabled --force")
    assert forced.answer == ("allow" if is_known and mode == "disabled" else "deny")
    with monkeypatch.context() as agent:
        agent.setenv("CLAUDECODE", "1")
        assert typed("mode", "disabled", "--force").code == 1
        assert mode == "disabled" or typed("mode", "disabled").code == 1
    assert not (desk.home / overrides.OVERRIDE_FILE).exists()

    to_coding = typed("mode", "coding", "--task", "T-1")
    if harm is store_corrupt:
        assert (to_coding.code, "interlock.db` is damaged" in to_coding.err) == (1, True)
    else:
        assert to_coding.code == 0
        assert desk.tool("Write", file_path="a").answer == "allow"
        assert typed("mode", "disabled").code == 0
        assert desk.tool("Write", file_path="a").answer == "allow"
        assert typed("mode", "analysis").code == 0
        assert desk.tool("Write", file_path="a").answer == "deny"
    assert typed("mode", "disabled", "--force").code == 0
    for name, given in (("Write", {"file_path": "a"}), ("Bash", {"command": "make"})):
        assert desk.tool(name, **given).answer == "allow"


@pytest.mark.parametrize("harm", [missing, corrupt])
def test_the_command_that_the_denial_names_makes_the_state_known_again(
    desk: Desk, typed: Terminal, harm: Harm
) -> None:
    desk.mode("coding")
    for make_known in (lambda: desk.mode("coding"), lambda: typed("session", "start")):
        harm(desk.home)
        assert "`/mode analysis`" in desk.tool("Write", file_path="a").text

        make_known()

        assert desk.tool("Write", file_path="a").answer == "allow"
    harm(desk.home)
    desk.mode("analysis")
    harm(desk.home)
    desk.mode("analysis")
    assert "files cannot be edited" in desk.tool("Write", file_path="a").text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["analysis", "coding"])
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_where_nothing_can_be_written_the_user_is_told_what_to_do_and_can_do_it(
    desk: Desk, typed: Terminal, how: str, mode: str
) -> None:
    desk.mode(mode)
    if how == "read-only":
        for path in (desk.home, *desk.home.rglob("*")):
            path.chmod(0o500)

    answer, why = asked(how, desk, "Write", file_path="a")
    assert answer == ("allow" if mode == "coding" else "deny"), "what holds can still be read"
    assert mode == "coding" or names_a_way(why)
    assert launched(how, "mode", "disabled", "--force", CLAUDECODE="1").code == 1
    refused = launched(how, "mode", "planning")
    assert (refused.code, refused.err.startswith("error: `")) == (1, True)
    forced = launched(how, "mode", "disabled", "--force")
    assert forced.code == 1
    assert forced.err.startswith("error: The gate is still on: ")
    assert "Make room, or make the directory writable" in forced.err
    assert "disableAllHooks" in forced.err
    assert asked(how, desk, "Write", file_path="a")[0] == answer, "half a file opens nothing"

    for path in (desk.home, *desk.home.rglob("*")):
        path.chmod(0o700)
    assert typed("mode", "disabled", "--force").code == 0
    assert desk.tool("Write", file_path="a").answer == "allow"


@pytest.mark.slow
def test_a_mode_that_could_not_be_set_is_told_in_the_conversation(desk: Desk) -> None:
    payload = {"session_id": desk.session, "cwd": str(desk.project), "prompt": "/mode coding"}
    words = ("hook", "--host", "claude-code", "--event", "prompt-submit")

    ran = launched("full", *words, stdin=json.dumps(payload))

    assert ran.code == 0
    told = json.loads(ran.out)
    for text in (told["systemMessage"], told["hookSpecificOutput"]["additionalContext"]):
        assert "What the session may do was not changed." in text
        assert "`interlock mode disabled --force`" in text


@pytest.mark.slow
@pytest.mark.invariant("gate-fails-closed")
def test_a_file_that_somebody_keeps_locked_denies_all_but_reading(desk: Desk) -> None:
    desk.mode("coding")
    holder = sqlite3.connect(desk.home / "gate.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        for tool, given in (("Write", {"file_path": "a"}), ("Bash", {"command": "touch a"})):
            answer, why = asked("locked", desk, tool, **given)

            assert answer == "deny"
            assert "database is locked" in why
            assert names_a_way(why)
        assert asked("locked", desk, "Read", file_path="a") == ("allow", "")
        assert asked("locked", desk, "Grep", pattern="a") == ("allow", "")
    finally:
        holder.close()
    assert asked("free", desk, "Write", file_path="a") == ("allow", "")
