"""Recognise agent clients: the variables that they set, and the programs and scripts that they are.

Variables with which a user configures a client (`CODEX_HOME`, say) are not among them: they are set
in the user's own terminal too.
"""

import os
import re
from collections.abc import Mapping, Sequence

from interlock.agents.hosts.host import Host
from interlock.agents.hosts.registry import all_hosts

AGENT_VARIABLES = (
    "AI_AGENT",
    *(variable for host in all_hosts() for variable in host.variables),
    "INTERLOCK_SANDBOX",
)
"""Variables that agent clients, and our own sandbox, set for the commands that they run."""
_PROGRAMS = tuple(host.program for host in all_hosts())
_PACKAGES = tuple(package for host in all_hosts() for package in host.packages)
_INTERPRETER = re.compile(r"node(js)?|bun|deno|python[0-9.]*|(ba|da|z)?sh")


def client_name(process_name: str, words: Sequence[str]) -> str:
    """The name of the client that a process is; empty if it is none that is known.

    `words` are its command line: many clients are scripts that a `node` runs.
    """
    if process_name in _PROGRAMS:
        return process_name
    program, *arguments = words or ("",)
    if os.path.basename(program) in _PROGRAMS:
        return os.path.basename(program)
    if not _INTERPRETER.fullmatch(os.path.basename(program)):
        return ""
    script = next((word for word in arguments if not word.startswith("-")), "")
    stem = os.path.basename(script).partition(".")[0]
    if stem in _PROGRAMS:
        return stem
    return next((package for package in _PACKAGES if f"/{package}/" in script), "")


def is_agents_shell(environment: Mapping[str, str]) -> bool:
    """Whether an agent's shell runs this, and not the client itself: Claude Code says which."""
    return environment.get("AI_AGENT", "").endswith("_agent")


def is_attended(
    host: Host, environment: Mapping[str, str], client_words: Sequence[str], *, has_terminal: bool
) -> bool:
    """Whether a person sees what the client does, and types its prompts.

    Some tell their hooks. Others have a terminal, and were not started to answer one prompt.
    """
    if answer := environment.get(host.attended_variable):
        return answer == "1"
    words = {word.partition("=")[0] for word in client_words[1:]}
    is_seen = has_terminal or bool(words & set(host.attended_words))
    return is_seen and not words & set(host.unattended_words)
