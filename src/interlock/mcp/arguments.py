"""Arguments that several tools take."""

import os
import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from interlock.core.tokens import TEXT_LENGTH

_TOKEN_TEXT = re.compile(rf"(?<![a-z0-9])ct1[a-z0-9]{{{TEXT_LENGTH - 3}}}(?![a-z0-9])")

TOKEN_ALIASES = {
    "token": "continueToken",
    "stateToken": "continueToken",
    "ackToken": "continueToken",
    "checkpointToken": "continueToken",
    "resumeToken": "continueToken",
}

WORKSPACE_PLACEHOLDER = "<absolute path of the project>"

Workspace = Annotated[
    str | None,
    Meta(description="Absolute path. Default: here."),
]


def workspace_of(path: str | None) -> Path:
    """The absolute path of a workspace. `~nobody` stays as it is, and is then not found."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed under us, and is then not found either
        here = Path(os.environ.get("PWD", "."))
    return here / os.path.expanduser(path) if path else here


def token_in(text: str) -> str:
    """The token in a text: agents put quotes, backticks or a label around what they copy."""
    match = _TOKEN_TEXT.search(text.casefold())
    return match[0] if match else text.strip().strip("`'\"<>").strip()
