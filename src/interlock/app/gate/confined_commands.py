"""How far a command of an agent may reach, although the mode confines it."""

import re
from typing import Literal

from interlock.core.gate.own_calls import needs_no_sandbox
from interlock.core.gate.shell import analyse, first_literal_word

Reach = Literal["outside", "network", "inside"]
_EVALUATED = re.compile(r"(?<!\S)eval ")


def reach_of(text: str) -> Reach:
    """Return how far the command in a client's shell text may reach.

    One simple command of ours runs outside, because it asks itself who runs it. One that surely
    reads, and asks a remote or a daemon for some of it, gets a network.
    """
    evaluated = _EVALUATED.search(text)
    command_text = first_literal_word(text[evaluated.end() :]) if evaluated else None
    if command_text is None:
        return "inside"
    analysis = analyse(command_text)
    command = analysis.commands[0] if analysis.is_simple else None
    if command and command.program == "interlock" and needs_no_sandbox(command):
        return "outside"
    return "network" if analysis.reads_outside else "inside"
