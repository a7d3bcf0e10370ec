"""Commands of an agent that need no sandbox, although the mode confines them."""

import shlex

from interlock.core.gate.own_calls import needs_no_sandbox
from interlock.core.gate.shell import analyse


def runs_outside(text: str) -> bool:
    """Whether the command in a client's shell text is safe outside: it is one simple command of
    ours, which itself asks who runs it, or it surely reads, and reaches a remote or a daemon.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    if "eval" not in words[:-1]:
        return False
    analysis = analyse(words[words.index("eval") + 1])
    command = analysis.commands[0] if analysis.is_simple else None
    is_own = command is not None and command.program == "interlock" and needs_no_sandbox(command)
    return is_own or analysis.reads_outside
