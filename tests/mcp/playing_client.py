"""A process that plays an agent client: it runs hooks, commands and a server as its children.

Run with the data home and the project. A line of JSON in is one thing to do, a line out is what
came of it: `{"hook": event, "payload": …}`, `{"tool": name, "arguments": …}`, `{"command": […]}`.
`{"inner": …}` is done by a client that this one starts.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from interlock.mcp.client import StdioClient

INTERLOCK = [sys.executable, "-m", "interlock"]


class Playing:
    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project = home, project
        self.server: StdioClient | None = None
        self.inner: subprocess.Popen[str] | None = None

    def do(self, asked: dict[str, Any]) -> object:
        if "tool" in asked:
            if self.server is None:
                self.server = StdioClient(self.home, workspace=self.project)
                self.server.initialize()
            return self.server.call(asked["tool"], **asked["arguments"])["structuredContent"]
        if "inner" in asked:
            return self._inner(asked["inner"])
        if "hook" in asked:
            payload = {"cwd": str(self.project), **asked["payload"]}
            words = ("hook", "--host", "claude-code", "--event", asked["hook"])
            return self._run(words, json.dumps(payload))
        return self._run(asked["command"], "")

    def _inner(self, asked: dict[str, Any]) -> object:
        if self.inner is None:
            self.inner = subprocess.Popen(
                [sys.executable, __file__, str(self.home), str(self.project)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.inner.stdin is not None
        assert self.inner.stdout is not None
        self.inner.stdin.write(json.dumps(asked) + "\n")
        self.inner.stdin.flush()
        return json.loads(self.inner.stdout.readline())

    def close(self) -> None:
        if self.inner:
            self.inner.communicate()
        if self.server:
            self.server.close()

    def _run(self, words: list[str] | tuple[str, ...], sent: str) -> str:
        # As clients do: through a shell, which here does not give up its place.
        command = f"{shlex.join((*INTERLOCK, *words, '--home', str(self.home)))}; true"
        if words[0] != "hook":
            command = f"{shlex.join((*INTERLOCK, *words))}; true"
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=sent,
            cwd=self.project,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout or done.stderr


if __name__ == "__main__":
    playing = Playing(Path(sys.argv[1]), Path(sys.argv[2]))
    for line in sys.stdin:
        print(json.dumps(playing.do(json.loads(line))), flush=True)
    playing.close()
