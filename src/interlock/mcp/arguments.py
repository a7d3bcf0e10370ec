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

Workspace = Annotated[
    str | None,
    Meta(description="Absolute path of the project. Default: where the server runs."),
]


def workspace_of(path: str | None) -> Path:
    """The absolute path of a workspace. `~nobody` stays as it is, and is then not found."""
    if path:
        return Path(os.path.expanduser(path)).absolute()
    try:
        return Path.cwd()
    except FileNotFoundError:  # it was removed under us, and is then not found either
        return Path(os.environ.get("PWD", "."))


def token_in(text: str) -> str:
    """The token in a text: agents put quotes, backticks or a label around what they copy."""
    match = _TOKEN_TEXT.search(text.casefold())
    return match[0] if match else text.strip().strip("`'\"<>").strip()
