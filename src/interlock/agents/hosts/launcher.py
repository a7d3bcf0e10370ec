"""The launcher: a plain shell script in the data home through which clients start Interlock.

The clients' own files name it and nothing else, so they stay true when Interlock is upgraded or
moved: `interlock install` writes it anew. Where Interlock is gone, it stays out of the way, except
before tool calls in projects that have opted in: those are denied, and the user is told how to
repair it.
"""

import shlex
from pathlib import Path

import msgspec

from interlock.agents.hosts.claude_code_shell import LAUNCHER

START = "hooks/start.py"
"""The file in the package that starts the fast hook and the agent's shell."""
STANDALONE = (
    *("__init__.py", "agents/__init__.py", "agents/hosts/__init__.py", "hooks/__init__.py"),
    *("agents/hosts/claude_code_shell.py", "hooks/fast.py", "hooks/gate_state.py"),
    *("hooks/agent_shell.py", "sandbox/__init__.py", "sandbox/call_filter.py"),
    *("sandbox/command.py", "sandbox/confinement.py", "sandbox/metadata_broker.py"),
    *("sandbox/scratch.py", "sandbox/system_calls.py"),
)
"""The modules that are imported before a tool call, and so must be compiled."""


class Program(msgspec.Struct, frozen=True):
    """The command that starts Interlock on this machine."""

    interpreter: str
    """Absolute: clients do not have this shell's PATH."""
    flags: tuple[str, ...]
    home: str
    """The data home. Hooks and server must use the same one."""
    package: str = str(Path(__file__).parents[2])
    shell: str = ""
    """The shell that an agent's commands are for; empty if this machine cannot confine them."""


CANNOT_START = (
    "Interlock guards this project and cannot be started, so this was not allowed. The user can"
    " install it again (`interlock install claude-code`), or remove `.interlock/config.toml`."
)
IS_OPTED_IN = (
    'd=$PWD; while ! [ -e "$d/.interlock/config.toml" ]; do [ "$d" ] || exit 0; d=${d%/*}; done'
)
"""Shell text that exits where no project has opted in, and goes on where one has."""


def launcher_text(program: Program) -> str:
    """The script. Its first argument says what is started: `hook`, `shell`, or a command."""
    return f"""\
#!/bin/sh
# Written by `interlock install`. Agent clients start Interlock through this file.
home={shlex.quote(program.home)}
python={shlex.quote(program.interpreter)}
start={shlex.quote(f"{program.package}/{START}")}
flags={shlex.quote(" ".join(program.flags))}
is_there() {{ [ -x "$python" ] && [ -r "$start" ]; }}

case $1 in
hook) # HOST EVENT
    case $3 in
    session-start | prompt-submit | stop)
        is_there || exit 0
        exec "$python" $flags -m interlock hook --host "$2" --event "$3" --home "$home" ;;
    esac
    if is_there; then
        "$python" -I -S "$start" hook "$2" "$3" "$home" $flags
        case $? in
        0) exit 0 ;;
        2) exit 2 ;;
        esac
    fi
    [ "$3" = pre-tool ] || exit 0
    {IS_OPTED_IN}
    echo {shlex.quote(CANNOT_START)} >&2
    exit 2 ;;
shell) # SHELL ARGUMENTS, as Claude Code would have started it
    shift
    case ${{AI_AGENT-}} in
    claude-code_*_agent)
        is_there && exec "$python" -I -S "$start" shell "$home" "$flags" "$@"
        (
            {IS_OPTED_IN}
            echo {shlex.quote(CANNOT_START)} >&2
            exit 1
        ) || exit 126 ;;
    esac
    exec "$@" ;;
*)
    INTERLOCK_HOME=$home
    export INTERLOCK_HOME
    exec "$python" $flags -m interlock "$@" ;;
esac
"""


def shell_script_text(program: Program) -> str:
    """The script that a client takes for the user's shell."""
    launcher = shlex.quote(f"{program.home}/{LAUNCHER}")
    return f"""\
#!/bin/sh
# Written by `interlock install`. Claude Code gives the commands of an agent to this file.
SHELL={shlex.quote(program.shell)}
export SHELL
[ -r {launcher} ] && exec /bin/sh {launcher} shell "$SHELL" "$@"
exec "$SHELL" "$@"
"""
