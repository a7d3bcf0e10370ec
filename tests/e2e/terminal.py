"""Clients in a terminal, where a person types."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS_MAX = 90
KEY = "dummy-key-of-twenty-characters"


class Terminal:
    """An interactive client: what it shows, and a person's hands on the keyboard."""

    def __init__(self, words: list[str], project: Path, environment: Mapping[str, str]) -> None:
        self.screen = b""
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(project)
            os.execvpe(words[0], words, {**environment, "TERM": "xterm-256color"})
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def wait_for(self, text: str) -> None:
        """Wait until the text has been shown since something was last typed.

        A screen is drawn piece by piece, so only letters and digits are compared.
        """
        end = time.monotonic() + SECONDS_MAX
        while letters_of(text) not in letters_of(self.screen.decode(errors="replace")):
            assert time.monotonic() < end, self.screen[-3000:].decode(errors="replace")
            self.read()

    def read(self) -> None:
        if select.select([self.file], [], [], 0.1)[0]:
            with suppress(OSError):  # it has ended
                self.screen += os.read(self.file, 1 << 16)

    def press(self, keys: str) -> None:
        self.screen = b""
        os.write(self.file, keys.encode())

    def type_line(self, text: str) -> None:
        self.press(text)
        time.sleep(1)  # or the return counts as part of a text that was pasted
        os.write(self.file, b"\r")

    def say_yes(self, *questions: str, leave: str) -> None:
        """Answer each question with the choice that is preselected, then leave.

        A question is shown once all of its texts, separated by bars, are.
        """
        try:
            for question in questions:
                for text in question.split("|"):
                    self.wait_for(text)
                time.sleep(0.5)  # or the key comes before the dialog listens
                self.press("\r")
            self.wait_for("All done")
            self.leave(leave)
        finally:
            self.close()

    def leave(self, command: str) -> None:
        """Type the command that ends the client, and wait until it has ended."""
        self.type_line(command)
        end = time.monotonic() + SECONDS_MAX
        # Not reaped, so that `close` still ends this process and no other.
        while os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            assert time.monotonic() < end, self.screen[-3000:].decode(errors="replace")
            self.read()

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.file)


def letters_of(screen: str) -> str:
    return re.sub(r"\W", "", re.sub(r"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|.)", "", screen))


class ClaudeTerminal(Terminal):
    """Claude Code. What it asks at its first start has been answered for it."""

    def __init__(
        self, claude: Path, project: Path, environment: dict[str, str], *words: str
    ) -> None:
        _answer_first_questions(Path(environment["HOME"]) / ".claude.json", project)
        tools = "--allowedTools=Bash,Write,Read,mcp__interlock"
        super().__init__([str(claude), tools, *words], project, environment)


def _answer_first_questions(path: Path, project: Path) -> None:
    settings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    settings |= {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True}},
    }
    path.write_text(json.dumps(settings))
