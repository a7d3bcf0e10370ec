"""Who runs a command: the user, or an agent client."""

from collections.abc import Mapping, Sequence

from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process

AGENT_VARIABLES = (
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
AGENT_PROGRAMS = ("claude", "codex", "gemini", "opencode", "cursor-agent", "copilot")
_LAUNCHERS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "timeout", "uv", "uvx")
"""What may stand between a client and what it runs."""
_INIT_PROGRAMS = ("init", "systemd", "launchd", "tini", "dumb-init", "docker-init")
"""What takes in the orphans of others."""


def evidence_of_agent(environment: Mapping[str, str], process: int) -> str:
    """What shows that an agent runs this command; nothing if the user does.

    This binds an agent that errs, not one that attacks: a variable can be unset.
    """
    for name in AGENT_VARIABLES:
        if environment.get(name):
            return f"the variable {name} is set"
    for found in processes.ancestors(process):
        if found.name in AGENT_PROGRAMS:
            return f"it was started by {found.name}"
    return ""


def client_among(ancestors: Sequence[Process]) -> Process | None:
    """The client that runs a hook, among the processes that led to the hook, nearest first.

    Not by its name: many clients are a `node`. What lies above the client (a terminal, say) is
    not taken, because other clients may have been started there too.
    """
    # A shell of a login has a dash before its name.
    found = next((p for p in ancestors if p.name.lstrip("-") not in _LAUNCHERS), None)
    return None if found is None or found.name in _INIT_PROGRAMS else found
