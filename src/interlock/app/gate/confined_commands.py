"""Commands of an agent that need no sandbox, although the mode confines them."""

import shlex

from interlock.core.gate.shell import analyse


def runs_outside(text: str) -> bool:
    """Whether the command in a client's shell text is safe outside: it is one simple `interlock`
    command, which itself asks who runs it, or it surely reads, and reaches a remote or a daemon.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    if "eval" not in words[:-1]:
        return False
    analysis = analyse(words[words.index("eval") + 1])
    is_own = analysis.is_simple and analysis.commands[0].program == "interlock"
    return is_own or analysis.reads_outside
