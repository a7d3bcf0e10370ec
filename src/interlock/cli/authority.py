"""Require that the user, or a person at a terminal, runs a command.

Verbs that loosen want a person: a script or a background job has no terminal, and an agent is told
by its traces. All others that are the user's want only that no agent runs them.
"""

import os

from interlock.app.callers import agent_detection
from interlock.app.data_home import data_home
from interlock.cli.terminal import refuse
from interlock.core.explanation import Explanation

SERVED = "or do it in the console, or from a script over REST with the user's secret"
"""The other ways to do what the server offers too."""


def require_user(action: str) -> None:
    """Refuse and stop if an agent runs this command."""
    if evidence := evidence_of_agent():
        _refuse(f"{action} is the user's, and {evidence}", "Ask the user to run it in a terminal.")


def require_person(action: str, *other_ways: str) -> None:
    """Refuse and stop unless a person runs this command, at a terminal."""
    if evidence := evidence_against_person():
        ways = ", ".join(("A person must run it in a terminal", *other_ways))
        _refuse(f"{action} wants a person, and {evidence}", f"{ways}.")


def evidence_of_agent() -> str:
    return agent_detection.evidence_of_agent(data_home(), os.environ, os.getpid())


def evidence_against_person() -> str:
    return agent_detection.evidence_against_person(data_home(), os.environ, os.getpid())


def _refuse(error: str, hint: str) -> None:
    refuse(Explanation("not_allowed", error, hint))
