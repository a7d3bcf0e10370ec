"""The shell of Claude Code: how it is led through our launcher, and what it is given to run.

The client has a setting for the shell that runs the model's commands. Ours is a small script that
stands in for the user's, so nothing is changed in the command that the user's permission rules,
prompts and history see; hooks and MCP servers are started without it. Where the script is gone,
the client takes the user's shell. The text that it is given loads a snapshot of that shell,
evaluates the command and writes the directory in which that ended to a file of the client's.

It stands alone: the fast hook and the sandboxed shell import it before every call.
"""

import posix
import time

from interlock.agents.hosts.host import LAUNCHER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHELL_VARIABLE = "CLAUDE_CODE_SHELL"
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
CALLER_VARIABLE = "AI_AGENT"
"""It says who runs a text: the model's tools (`…_agent`) or the client itself (`…_harness`)."""
CLIENT_VARIABLE = "CLAUDE_PID"
"""The process of the client. Older ones do not tell it."""
CALLER_START = "claude-code_"
CONFINED_TOOL = "Bash"
"""The tool whose texts our shell is given."""
WORKTREE_VARIABLE = "INTERLOCK_WORKTREE"
"""Set for a client that nobody attends: whatever the mode, its commands write nowhere else.

It only ever confines further, so there is nothing to gain by setting it; and what runs inside
cannot take it away, because the client hands on its own.
"""
BRANCH_VARIABLE = "INTERLOCK_BRANCH"
"""The only branch that such commands can move."""
PLAIN_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "LANG", "LANGUAGE"),
    *("LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_COLLATE", "LC_NUMERIC", "LC_TIME"),
    *("PAGER", "NO_COLOR"),
)
"""Variables of the user's without secrets."""
CALL_VARIABLES = (CALLER_VARIABLE, SESSION_VARIABLE, CLIENT_VARIABLE, "CLAUDECODE")
SHELLS = ("bash", "zsh")
"""The shells that the client can use. It tells them apart by their paths."""
TICKS_PER_SECOND = 100
_HOOK_SHELLS, _SHELLS_BETWEEN_MAX = (b"sh", b"dash", b"bash", b"zsh", b"busybox"), 4
_DIRECTORY_MARK, _DIRECTORY_FILE_START, _DIRECTORY_FILE_END = " && pwd -P >| ", "/claude-", "-cwd"


def shell_script(home: str, shell: str) -> str:
    """The path of the script that stands in for a shell; empty if the path would name another."""
    if any(name in home for name in SHELLS):
        return ""
    name = "zsh" if "zsh" in shell.rpartition("/")[2] else "bash"
    return f"{home}/{LAUNCHER}-{name}"


def directory_file(text: str, temporary: str) -> str:
    """The file to which the text writes its last directory; empty if it is none of the client's."""
    _, mark, path = text.rpartition(_DIRECTORY_MARK)
    path = path.rstrip("'")  # the whole text is quoted where the user has a prefix of their own
    name = path.removeprefix(temporary.rstrip("/"))
    is_own = name.startswith(_DIRECTORY_FILE_START) and name.endswith(_DIRECTORY_FILE_END)
    return path if mark and is_own and name.count("/") == 1 and name[1:].isascii() else ""


def command_in(text: str) -> str:
    """Return the model's command in a shell text, still quoted by the client."""
    return text.rpartition(_DIRECTORY_MARK)[0].partition(" eval ")[2] or text


def is_confined(environment: "Mapping[str, str]", tool: str, home: str) -> bool:
    """Whether the client that has this environment runs the tool's commands in our sandbox."""
    shell, caller = environment.get(SHELL_VARIABLE), environment.get(CALLER_VARIABLE, "")
    is_ours = bool(shell) and shell in [shell_script(home, name) for name in SHELLS]
    if not is_ours or tool != CONFINED_TOOL or not caller.startswith(CALLER_START):
        return False
    try:
        return _began_after(environment.get(CLIENT_VARIABLE) or _client_above(), shell or "")
    except (OSError, ValueError, IndexError):
        return False


def _client_above() -> str:
    """The process that runs this hook, above the shells by which it does."""
    process = str(posix.getppid())
    for _ in range(_SHELLS_BETWEEN_MAX):
        name, fields = _status_of(process)
        if name not in _HOOK_SHELLS:
            break
        process = fields[1].decode()
    return process


def _status_of(process: str) -> tuple[bytes, list[bytes]]:
    with open(f"/proc/{process}/stat", "rb") as file:
        head, _, fields = file.read().rpartition(b")")
    return head.partition(b"(")[2], fields.split()


def _began_after(process: str, path: str) -> bool:
    """Whether a process has begun after a file was last changed.

    A client that runs already takes up new settings, but keeps the shell that it has used before.
    """
    _, fields = _status_of(process)
    booted = time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + int(fields[19]) / TICKS_PER_SECOND > posix.stat(path).st_mtime
