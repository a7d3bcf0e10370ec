"""Run `interlock` for the scripts of the skill, and print its answers and errors as JSON."""

# pyright: basic
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any, NoReturn


def call(*words: str) -> tuple[dict[str, Any], int]:
    """Return the answer of `interlock WORDS --json` and its exit code; if it refuses, so do we."""
    program = shutil.which("interlock")
    if program is None:
        hint = "Install Interlock, or add its directory to PATH. Its MCP tools work without PATH."
        finish({"error": "`interlock` is not on PATH", "hint": hint}, 1)
    try:
        # A list, not a shell: a model writes the arguments, and may repeat what others wrote.
        command = [program, words[0], "--json", *words[1:]]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        hint = "Install Interlock again."
        finish({"error": f"`{program}` does not start: {error}", "hint": hint}, 1)
    try:
        answer = json.loads(done.stdout)
    except ValueError:  # a bug in Interlock, or another program of this name
        text = done.stderr.decode("utf-8", "replace").strip()
        answer = {"error": text or f"`{program}` printed no JSON"}
    if "error" in answer:
        finish(answer, done.returncode if done.returncode > 0 else 1)
    return answer, done.returncode


def finish(answer: dict[str, Any], code: int = 0) -> NoReturn:
    """Print the answer, or the error on stderr, and exit."""
    stream = sys.stderr if "error" in answer else sys.stdout
    stream.write(json.dumps(answer, indent=2) + "\n")
    sys.exit(code)
