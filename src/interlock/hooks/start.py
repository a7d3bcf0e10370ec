"""Start the fast hook. Python compiles a script at every start, so this one is short."""

import posix
import sys

try:
    sys.path.insert(0, __file__.rpartition("/")[0])
    from fast import main  # pyright: ignore[reportMissingImports,reportUnknownVariableType]

    code = int(main(*sys.argv[1:]))  # pyright: ignore[reportUnknownArgumentType]
except BaseException as error:  # noqa: BLE001 (a crash of a hook would let the tool call pass)
    reason = f"{type(error).__name__}: {error}"
    words = (
        f"The gate cannot say whether this may happen ({reason}), so it may not. The user can look"
        " with `interlock doctor claude-code`, install again with `interlock install claude-code`,"
        " or take Interlock's hooks out of Claude Code's settings."
    )
    is_gate = not {"post-tool", "pre-compact", "post-compact", "session-end"} & set(sys.argv)
    posix.write(2, f"{words if is_gate else f'interlock: {reason}'}\n".encode(errors="replace"))
    code = 2 if is_gate else 0
posix._exit(code)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (nothing is left to be done)
