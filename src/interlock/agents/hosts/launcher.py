"""The launchers: plain shell scripts through which clients start Interlock.

The clients' own files name it and nothing else, so they stay true when Interlock is upgraded or
moved: `interlock install` writes it anew. Where Interlock is gone, it stays out of the way, except
before tool calls in projects that have opted in: those are denied unless they only read, and the
user is told how to repair it.

What a team shares names a launcher in the project instead, which only looks for the user's. Where
there is none it is silent, but for a word at the start of a session.
"""

import shlex
from pathlib import Path

import msgspec

from interlock.agents.hosts.claude_code_shell import WORKTREE_VARIABLE
from interlock.agents.hosts.host import IS_OPTED_IN, LAUNCHER, cannot_start
from interlock.agents.hosts.registry import all_hosts

PAYLOAD_BYTES_READ = 8_192
START = "hooks/start.py"
"""The file in the package that starts the fast hook and the agent's shell."""
STANDALONE = (
    *("__init__.py", "agents/__init__.py", "agents/hosts/__init__.py", "hooks/__init__.py"),
    *("agents/hosts/claude_code_shell.py", "hooks/fast.py", "hooks/gate_state.py"),
    *("agents/hosts/host.py", "agents/hosts/registry.py", "agents/hosts/claude_code.py"),
    *("agents/hosts/codex.py", "agents/hosts/gemini.py", "agents/hosts/opencode.py"),
    "agents/hosts/progress_reports.py",
    *("hooks/agent_shell.py", "sandbox/__init__.py", "sandbox/call_filter.py"),
    *("sandbox/command.py", "sandbox/confinement.py", "sandbox/call_broker.py"),
    *("sandbox/scratch.py", "sandbox/system_calls.py", "sandbox/worktree.py"),
    *("sandbox/plain_files.py", "sandbox/real_path.py", "sandbox/named_projects.py"),
    *("core/__init__.py", "core/gate/__init__.py", "core/gate/command/__init__.py"),
    *("core/strict_json.py", "core/gate/command/network_programs.py"),
    "sandbox/limits.py",
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


def launcher_text(program: Program) -> str:
    """The script. Its first argument says what is started: `hook`, `shell`, or a command."""
    names = [host.tools.get(kind, "") for host in all_hosts() for kind in ("read", "search")]
    is_reading = "|".join(rf"\"{name}\"*" for name in sorted(set(" ".join(names).split())))
    denial = shlex.quote(cannot_start("HOST")).replace("HOST", "'\"$2\"'")
    shell_denial = shlex.quote(cannot_start("claude-code"))
    return f"""\
#!/bin/sh
# Written by `interlock install`. Agent clients start Interlock through this file.
home={shlex.quote(program.home)}
python={shlex.quote(program.interpreter)}
start={shlex.quote(f"{program.package}/{START}")}
flags={shlex.quote(" ".join(program.flags))}
is_there() {{ [ -x "$python" ] && [ -r "$start" ]; }}

if [ "$1" = shared ]; then
    # What a project or a plugin brings is silent where the user's own hooks answer.
    shift
    [ "$1" = hook ] && [ -e "$home/hosts/$2" ] && exit 0
fi
case $1 in
hook) # HOST EVENT
    case $3 in
    session-start | prompt-submit | stop | subagent-start | pre-compact)
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
    is_there || {{
        # After Interlock was removed, files can still be read, except those with its secrets.
        call=$(head -c {PAYLOAD_BYTES_READ})
        before=${{call%%\\"tool_name\\":*}}
        before=${{before%%\\"toolName\\":*}}
        tool=${{call#"$before"}}
        tool=${{tool#*:}}
        case $call in *[Ss][Ee][Cc][Rr][Ee][Tt]* | *[Kk][Ee][Yy][Rr][Ii][Nn][Gg]*) tool= ;; esac
        case ${{tool# }} in {is_reading}) exit 0 ;; esac
    }}
    echo {denial} >&2
    exit 2 ;;
shell) # SHELL ARGUMENTS, as Claude Code would have started it
    shift
    case ${{AI_AGENT-}} in
    claude-code_*_agent)
        is_there && exec "$python" -I -S "$start" shell "$home" "$flags" "$@"
        (
            [ "${{{WORKTREE_VARIABLE}-}}" ] && exit 1
            {IS_OPTED_IN}
            echo {shell_denial} >&2
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
[ "${{{WORKTREE_VARIABLE}-}}" ] && exit 126
exec "$SHELL" "$@"
"""


ABOUT = (
    "This project uses Interlock, which is not installed on this machine: its workflows, notes and"
    " gate are missing. Nothing else depends on it. The user can install it, and then connect this"
    " client with `interlock install HOST`."
)


def shared_launcher_text() -> str:
    """The script in a project's `.interlock`, for everybody who works on it."""
    keys = ("additional_context", "additionalContext", "context")
    cursor, copilot, opencode = (f'{{"{key}":"{ABOUT}"}}' for key in keys)
    return f"""\
#!/bin/sh
# Part of Interlock, for everybody who works on this project. It hands over to the Interlock of the
# user, and stays out of the way where there is none.
home=${{INTERLOCK_HOME:-${{XDG_DATA_HOME:-$HOME/.local/share}}/interlock}}
[ -z "$INTERLOCK_HOME" ] && [ -d "$HOME/Library/Application Support/interlock" ] &&
    home="$HOME/Library/Application Support/interlock"
[ -r "$home/{LAUNCHER}" ] && exec /bin/sh "$home/{LAUNCHER}" shared "$@"
if command -v interlock >/dev/null 2>&1; then
    [ "$1" = hook ] && exec interlock hook --host "$2" --event "$3"
    exec interlock "$@"
fi
case "$1 $3 $2" in
"hook session-start cursor") echo {shlex.quote(cursor)} ;;
"hook session-start copilot") echo {shlex.quote(copilot)} ;;
"hook session-start opencode") echo {shlex.quote(opencode)} ;;
"hook session-start "*) echo {shlex.quote(ABOUT)} ;;
hook*) ;;
*) echo {shlex.quote(ABOUT)} >&2; exit 1 ;;
esac
exit 0
"""
