"""The shell of Claude Code: how it is led through our launcher, and what it is given to run.

The client has a setting for a prefix: before each shell text that it runs it puts the prefix, and
hands the text over as one argument. So nothing is changed in the command that the user's permission
rules, prompts and history see. The text loads a snapshot of the user's shell, evaluates the command
and writes the directory in which that ended to a file of the client's.

It stands alone: the fast hook and the sandboxed shell import it before every call.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX_VARIABLE = "CLAUDE_CODE_SHELL_PREFIX"
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
CALLER_VARIABLE = "AI_AGENT"
"""It says who runs a text: the model's tools (`…_agent`) or the client itself (`…_harness`)."""
CALLER_START = "claude-code_"
CONFINED_TOOL = "Bash"
"""The tool whose texts get the prefix."""
LAUNCHER = "launch"
"""The name of the launcher in the data home."""
_SHELLS = ("bash", "zsh")
_SNAPSHOT_START, _SNAPSHOT_FOLDER = "source ", "/shell-snapshots/snapshot-"
_DIRECTORY_MARK, _DIRECTORY_FILE_START, _DIRECTORY_FILE_END = " && pwd -P >| ", "/claude-", "-cwd"


def shell_prefix(home: str) -> str:
    """The value of the setting; empty if the path of the data home cannot be written there.

    The client takes the last dash after a space for the beginning of the arguments: all others here
    come after a tab. Where the launcher is gone, the text is run as it would be without us.
    """
    if set(home) & set("'\"\\$`\n\t") or " -" in home:
        return ""
    return (
        f'/bin/sh -c \'L="{home}/{LAUNCHER}"; if [\t-r "$L" ]; then exec /bin/sh "$L" shell'
        ' "$0"; else exec "${SHELL:-/bin/sh}"\t-c "$0"; fi\''
    )


def shell_of(text: str, fallback: str) -> str:
    """The program for which the client wrote the text."""
    if text.startswith(_SNAPSHOT_START):
        name = text.partition(_SNAPSHOT_FOLDER)[2].partition("-")[0]
        if name in _SHELLS and text.find(_SNAPSHOT_FOLDER) < text.find(" &&"):
            return name
    return fallback


def directory_file(text: str, temporary: str) -> str:
    """The file to which the text writes its last directory; empty if it is none of the client's."""
    _, mark, path = text.rpartition(_DIRECTORY_MARK)
    name = path.removeprefix(temporary.rstrip("/"))
    is_own = name.startswith(_DIRECTORY_FILE_START) and name.endswith(_DIRECTORY_FILE_END)
    return path if mark and is_own and name.count("/") == 1 and name[1:].isascii() else ""


def is_confined(environment: "Mapping[str, str]", tool: str, home: str) -> bool:
    """Whether the client that has this environment runs the tool's commands in our sandbox."""
    prefix, caller = environment.get(PREFIX_VARIABLE), environment.get(CALLER_VARIABLE, "")
    is_ours = bool(prefix) and prefix == shell_prefix(home)
    return is_ours and tool == CONFINED_TOOL and caller.startswith(CALLER_START)
