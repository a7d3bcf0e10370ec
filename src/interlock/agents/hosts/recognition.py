"""Recognise agent clients: the variables that they set, and the programs and scripts that they are.

Variables with which a user configures a client (`CODEX_HOME`, say) are not among them: they are set
in the user's own terminal too.
"""

import os
import re
from collections.abc import Mapping, Sequence

AGENT_VARIABLES = (
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_CI",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "OPENCODE",
    "OPENCODE_CLIENT",
    "CURSOR_AGENT",
    "COPILOT_AGENT",
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_CLI",
    "INTERLOCK_SANDBOX",
)
"""Variables that agent clients, and our own sandbox, set for the commands that they run."""
ATTENDED_VARIABLE = "CLAUDE_CODE_SESSION_ATTENDED"
_PROGRAMS = ("claude", "codex", "gemini", "opencode", "cursor-agent", "copilot")
_PACKAGES = (
    "@anthropic-ai/claude-code",
    "@openai/codex",
    "@google/gemini-cli",
    "@github/copilot",
    "opencode-ai",
)
_INTERPRETER = re.compile(r"node(js)?|bun|deno|python[0-9.]*|(ba|da|z)?sh")
_HEADLESS_OPTIONS = ("-p", "--print")


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
    environment: Mapping[str, str], client_words: Sequence[str], *, has_terminal: bool
) -> bool:
    """Whether a person sees what Claude Code does, and types its prompts.

    It tells its hooks. For an older one: it has a terminal, and was not started to answer one
    prompt.
    """
    if answer := environment.get(ATTENDED_VARIABLE):
        return answer == "1"
    return has_terminal and not set(_HEADLESS_OPTIONS) & set(client_words)
