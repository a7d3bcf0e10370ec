"""Start the fast hook or the agent's shell on a bare interpreter.

Python compiles a script at every start, so this one is short.
"""

import posix
import sys

what, *arguments = sys.argv[1:] or ["hook"]
try:
    sys.path.insert(0, __file__.removesuffix("/interlock/hooks/start.py"))
    if what == "shell":
        from interlock.hooks import agent_shell as entry
    else:
        from interlock.hooks import fast as entry
    code = int(entry.main(*arguments))
except BaseException as error:  # noqa: BLE001 (a crash of a hook would let the tool call pass)
    reason = f"{type(error).__name__}: {error}"
    host = f" {arguments[0]}" if what == "hook" and arguments else ""
    words = (
        f"The gate cannot say whether this may happen ({reason}), so it may not. The user can look"
        f" with `interlock doctor{host}`, install again with `interlock install{host}`, or take"
        " Interlock's hooks out of the client's files."
    )
    events = {"post-tool", "tool-failed", "subagent-stop", "session-end"}
    is_gate = what == "shell" or not events & set(arguments)
    posix.write(2, f"{words if is_gate else f'interlock: {reason}'}\n".encode(errors="replace"))
    code = (126 if what == "shell" else 2) if is_gate else 0
posix._exit(code)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (nothing is left to be done)
