"""Who runs a command: the user, or an agent client."""

from collections.abc import Mapping
from pathlib import Path

VARIABLES = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "OPENCODE",
    "CURSOR_AGENT",
    "COPILOT_AGENT",
)
"""What agent clients set for the commands that they run."""
PROGRAMS = ("claude", "codex", "gemini", "opencode", "cursor-agent", "copilot")
_DEPTH_MAX = 40


def agent_around(environment: Mapping[str, str], process: int) -> str:
    """What shows that an agent runs this command; nothing if the user does.

    This binds an agent that errs, not one that attacks: a variable can be unset.
    """
    for name in VARIABLES:
        if environment.get(name):
            return f"the variable {name} is set"
    for name in _ancestors(process):
        if name in PROGRAMS:
            return f"it was started by {name}"
    return ""


def _ancestors(process: int) -> list[str]:
    """The names of the programs that led to this one; none where the system does not tell."""
    names: list[str] = []
    for _ in range(_DEPTH_MAX):
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        name, _, rest = stat.partition("(")[2].rpartition(")")
        names.append(name)
        parent = rest.split()[1] if len(rest.split()) > 1 else "0"
        if parent in ("0", "1"):
            break
        process = int(parent)
    return names[1:]
