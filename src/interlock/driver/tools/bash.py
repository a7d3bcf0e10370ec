"""Bash: a command of the model, in a shell of its own for each call."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock.driver.tools.bounded_output import BoundedOutput
from interlock.driver.tools.processes import run_process
from interlock.driver.tools.tool import DriverTool, Level, ToolOutcome, Workplace

SECONDS_DEFAULT, SECONDS_MAX = 120, 600
COMMAND_CHARACTERS_MAX = 30_000  # four bytes each are what the system takes for one argument
_SIGNS_OF_REFUSAL = re.compile(
    r"permission denied|not permitted|read-only file system|cross-device|EACCES|EPERM"
    r"|unreachable|could not resolve|name resolution|(couldn't|failed to) connect|cannot lock ref",
    re.IGNORECASE,
)
_REACH: dict[Level, str] = {
    "read-only": "only $TMPDIR is written",
    "workspace": "only the worktree and $TMPDIR are written, git moves only this work's branch",
}


class BashCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[
        str,
        Meta(description="The command, for bash.", min_length=1, max_length=COMMAND_CHARACTERS_MAX),
    ]
    timeout_seconds: Annotated[
        int, Meta(description="How long it may take.", ge=1, le=SECONDS_MAX)
    ] = SECONDS_DEFAULT


async def run_bash(workplace: Workplace, arguments: BashCall) -> ToolOutcome:
    output = BoundedOutput()
    code = await run_process(
        workplace,
        ("bash", "-c", arguments.command),
        seconds=arguments.timeout_seconds,
        on_output=output.add,
    )
    text = output.show(workplace.spill)
    if code is None:
        end = f"it was ended with all that it started: {arguments.timeout_seconds} s were up"
    else:
        end = f"exit code {code}"
    lines = [*filter(None, [text]), f"[{end}]"]
    if code != 0 and _SIGNS_OF_REFUSAL.search(text) and workplace.level in _REACH:
        network = "" if workplace.has_network else " or of a network"
        reach = f"{_REACH[workplace.level]}, and nothing of the user's home{network} is reached"
        lines.append(f"[The sandbox may be why: {reach}.]")
    # A search without a match has this code and says nothing.
    is_error = code != 0 and not (code == 1 and not text)
    return ToolOutcome("\n".join(lines), is_error, code)


BASH = DriverTool(
    "Bash",
    "Run a command in bash, in the worktree. Each call has a shell of its own: directories,"
    " variables and background processes do not outlive it. There is no input and no terminal."
    " Write temporary files below $TMPDIR. Of a long output both ends are shown, and the rest is in"
    " a file.",
    BashCall,
    "shell",
    run_bash,
)
