"""Tell whether the user or an agent client runs a command."""

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
"""Variables that agent clients set for the commands that they run."""
AGENT_PROGRAMS = ("claude", "codex", "gemini", "opencode", "cursor-agent", "copilot")
_LAUNCHERS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "timeout", "uv", "uvx")
"""Programs that may stand between a client and the commands that it runs."""
_INIT_PROGRAMS = ("init", "systemd", "launchd", "tini", "dumb-init", "docker-init")
"""Programs that adopt orphaned processes."""


def evidence_of_agent(environment: Mapping[str, str], process: int) -> str:
    """The evidence that an agent runs this command; empty if the user does.

    This stops an agent that errs, not one that attacks: a variable can be unset.
    """
    for name in AGENT_VARIABLES:
        if environment.get(name):
            return f"the variable {name} is set"
    for ancestor in processes.ancestors(process):
        if ancestor.name in AGENT_PROGRAMS:
            return f"it was started by {ancestor.name}"
    return ""


def client_among(ancestors: Sequence[Process]) -> Process | None:
    """The client that runs a hook, among the processes that led to the hook, nearest first.

    Not by its name: many clients are a `node`. A process above the client (a terminal, say) is
    not taken, because other clients may have been started there too.
    """
    # A login shell has a dash before its name.
    client = next((p for p in ancestors if p.name.lstrip("-") not in _LAUNCHERS), None)
    return None if client is None or client.name in _INIT_PROGRAMS else client
