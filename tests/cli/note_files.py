"""Notes put into a project by hand, and commands in processes of their own."""

import subprocess
import sys
from pathlib import Path

INTERLOCK = (sys.executable, "-m", "interlock")


def put(folder: Path, path: str, text: str | bytes) -> Path:
    """By hand."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """In a process of its own."""
    return subprocess.run(
        [*INTERLOCK, *arguments], input=given, capture_output=True, timeout=60, check=False
    )
