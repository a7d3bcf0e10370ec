"""Whoever may loosen the gate can, and nobody else: every verb that loosens, tried in real
processes from every place from which somebody could try it.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from interlock.app.callers import session_record
from interlock.app.context import App
from interlock.app.gate.opt_in import opt_in
from interlock.core.gate.state import Mode
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from tests.person import run_as_person
from tests.sessions import begin_recorded

pytestmark = pytest.mark.slow

VERBS = (
    "mode coding",
    "session set-state --mode coding",
    "mode disabled",
    "mode --force disabled",
    "mode disabled --force",
    "session set-state --mode disabled",
    "approvals grant apr_1",
    "approvals deny apr_1 --reason no",
    "gate bypass add shell.unknown --reason because",
    "trust",
    "keys revoke 1",
    "preferences set run_1 --autonomy full_auto_never_stop",
    "preferences set run_1 --risk-policy aggressive",
    "run unblock run_1",
    "gaps resolve ses_1 gap_1 somehow",
    "console --print",
    "run start hello --goal x --driver",
    "driver resume ses_1",
    "driver limits ses_1 --turns 500",
    "driver steer ses_1 go",
    "trigger run nightly",
    "driver deliver ses_1 --despite-secrets",
)
TRY_EACH = f"""
import contextlib, io, json, sys
from interlock.cli import commands, server
server._start_in_background = lambda *_: sys.exit("a server would be started")
for words in {VERBS!r}:
    err = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        try:
            commands.run_cli(words.split())
        except SystemExit as end:
            print(end, file=err)
    print(json.dumps([words, err.getvalue()]))
"""
CLIENT = '#!/bin/sh\n[ "$1" = -p ] && shift\n"$@"\nexit $?\n'
SCRIPT_RUNNER = "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n"
RECORDED = """
import json, os, subprocess, sys
payload = {"session_id": "another", "cwd": os.getcwd(), "source": "startup"}
hook = [sys.executable, "-m", "interlock", "hook", "--host", "claude-code"]
subprocess.run([*hook, "--event", "session-start"], input=json.dumps(payload).encode(),
               stdout=subprocess.DEVNULL, check=True)
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What may stand around a command: a client by its name, one that is a script of an
    interpreter, and one that nobody knows by name, whose hook has run.
    """
    folder = tmp_path_factory.mktemp("programs")
    claude = folder / "claude"
    claude.write_text(CLIENT)
    claude.chmod(0o755)
    node = folder / "node"
    node.symlink_to(sys.executable)
    package = folder / "node_modules" / "@google" / "gemini-cli" / "dist"
    package.mkdir(parents=True)
    (package / "index.js").write_text(SCRIPT_RUNNER)
    (folder / "helper.py").write_text(RECORDED)
    return {
        "claude": str(claude),
        "gemini": f"{node} {package / 'index.js'}",
        "unknown": f"{sys.executable} {folder / 'helper.py'}",
        "shell": """sh -c '"$@"; exit $?' -""",
    }


def words_around(around: str, programs: dict[str, str], command: list[str]) -> list[str]:
    quoted = shlex.quote(shlex.join(command))
    return shlex.split(around.format(**programs, command=shlex.join(command), quoted=quoted))


@pytest.fixture
def session(app: App, tmp_path: Path) -> SessionId:
    opt_in(tmp_path, "standard")
    return begin_recorded(app, tmp_path, Conversation("claude-code", "host-1")).session


class Way(NamedTuple):
    """A place from which a command is run."""

    evidence: str
    """Why that is no person; empty if it is one."""
    around: str = "{command}"
    variables: tuple[str, ...] = ()
    has_terminal: bool = True


AGENT = ("CLAUDECODE=1", "AI_AGENT=claude-code_2-1-325_agent")
NO_TERMINAL = "no terminal could be opened"
BY_CLAUDE = "it was started by claude"
WAYS: dict[str, Way] = {
    "a terminal": Way(""),
    "a shell in a terminal": Way("", "{shell} {command}"),
    "an agent's shell": Way("AI_AGENT is set", "{claude} {command}", AGENT, has_terminal=False),
    "a terminal in which an agent types": Way("CURSOR_AGENT is set", variables=("CURSOR_AGENT=1",)),
    "our sandbox": Way("INTERLOCK_SANDBOX is set", variables=("INTERLOCK_SANDBOX=1",)),
    "a client that sets nothing": Way(BY_CLAUDE, "{claude} {shell} {command}"),
    "a client that is a script": Way(
        "it was started by @google/gemini-cli", "{gemini} {shell} {command}"
    ),
    "a client that nobody knows": Way("it was started by claude-code", "{unknown} {command}"),
    "no terminal": Way(NO_TERMINAL, has_terminal=False),
    "a terminal that an agent makes": Way(
        BY_CLAUDE, "{claude} script -qec {quoted} /dev/null", has_terminal=False
    ),
    "setsid": Way(NO_TERMINAL, "setsid --wait {command}"),
}


@pytest.mark.invariant("persons-loosen")
@pytest.mark.parametrize("name", WAYS)
def test_whoever_may_loosen_can_and_nobody_else(
    app: App, session: SessionId, tmp_path: Path, programs: dict[str, str], name: str
) -> None:
    way = WAYS[name]

    ran = run_as_person(
        words_around(way.around, programs, [sys.executable, "-c", TRY_EACH]),
        cwd=tmp_path,
        environment=dict(variable.split("=") for variable in way.variables),
        has_terminal=way.has_terminal,
    )

    said: dict[str, str] = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert list(said) == list(VERBS), ran.stderr
    for words, err in said.items():
        assert (f", and {way.evidence}\n" in err) == bool(way.evidence), (words, err)
    for file in ("bypasses.json", "trusted.json", "gate-off"):
        assert (app.home / file).exists() == (not way.evidence), file
    entered = {"coding", "disabled"} if not way.evidence else set[Mode]()
    assert modes_of(app, session) == {"analysis", *entered}


def modes_of(app: App, session: SessionId) -> set[Mode]:
    """The modes that the session was ever in."""
    state = session_record.state_of(app, session)
    return {entry.mode for entry in state.mode_history}


SPELLINGS = (
    "{python} -I -m interlock trust",
    "i='{python} -m interlock'; $i trust",
    "$(command -v {python}) -m interlock trust",
    "echo '{python} -m interlock trust' | sh",
    "env -u CLAUDECODE {python} -m interlock trust < /dev/null 2>&1 | cat",
)


@pytest.mark.invariant("persons-loosen")
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.usefixtures("session")
def test_however_it_is_spelled(
    home: Path, tmp_path: Path, programs: dict[str, str], spelling: str
) -> None:
    command = ["sh", "-c", spelling.format(python=sys.executable)]

    agents = run_as_person([programs["claude"], *command], cwd=tmp_path)

    assert BY_CLAUDE in agents.stderr + agents.stdout
    assert not (home / "trusted.json").exists()
    run_as_person(command, cwd=tmp_path)
    assert (home / "trusted.json").exists()
