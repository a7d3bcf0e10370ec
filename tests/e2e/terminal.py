"""Claude Code in a terminal, where a person types."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path
from typing import Any

SECONDS_MAX = 90
KEY = "dummy-key-of-twenty-characters"


class ClaudeTerminal:
    """An interactive client. What it asks at its first start has been answered for it."""

    def __init__(self, claude: Path, project: Path, environment: dict[str, str]) -> None:
        _answer_first_questions(Path(environment["HOME"]) / ".claude.json", project)
        self.screen = b""
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(project)
            words = [str(claude), "--allowedTools=Bash,Write,Read,mcp__interlock"]
            os.execve(words[0], words, {**environment, "TERM": "xterm-256color"})
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def wait_for(self, text: str) -> None:
        """Wait until the text has been shown since something was last typed."""
        end = time.monotonic() + SECONDS_MAX
        while text.encode() not in self.screen:
            assert time.monotonic() < end, self.screen[-3000:].decode(errors="replace")
            if select.select([self.file], [], [], 0.1)[0]:
                self.screen += os.read(self.file, 1 << 16)

    def type_line(self, text: str) -> None:
        self.screen = b""
        os.write(self.file, text.encode())
        time.sleep(1)  # or the return counts as part of a text that was pasted
        os.write(self.file, b"\r")

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.file)


def _answer_first_questions(path: Path, project: Path) -> None:
    settings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    settings |= {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True}},
    }
    path.write_text(json.dumps(settings))
