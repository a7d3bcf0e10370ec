"""Arguments that several tools take."""

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

Workspace = Annotated[
    str | None,
    Meta(
        description="Absolute path of the project directory. Default: where the server runs.",
        examples=["/home/me/project"],
    ),
]


def workspace_of(path: str | None) -> Path:
    """An absolute path. `~nobody` stays what it is, and is then not found."""
    return Path(os.path.expanduser(path)).absolute() if path else Path.cwd()
