"""Arguments that several tools take."""

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
    return Path(path).expanduser() if path else Path.cwd()
