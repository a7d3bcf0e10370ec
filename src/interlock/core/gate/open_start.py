"""The calls that wait while required parts of the start are open.

Branches pass, because making one is how an agent meets `notOnMain`. Before coding the mode decides:
there a branch cannot be made.
"""

from interlock.core.gate.shell import Analysis, analyse, changes_branch_only
from interlock.core.gate.state import GateRow, GateState
from interlock.core.gate.tool_call import ToolCall

START_OPEN = "The start of the session is not complete: see `interlock session show`"


def waits_for_start(state: GateState, call: ToolCall) -> bool:
    """Whether a call in coding may change more than the branch before the start is complete."""
    if not isinstance(state, GateRow) or state.is_started or state.mode != "coding":
        return False
    if call.kind != "shell" or not call.is_bash:
        return call.kind in ("edit", "shell", "mcp", "other")
    commands = analyse(call.command).commands
    return any(one.effect != "reads" and not changes_branch_only(one) for one in commands)


def changes_branch(analysis: Analysis) -> bool:
    """Whether a command of several makes a branch or switches to one."""
    return any(map(changes_branch_only, analysis.commands))
