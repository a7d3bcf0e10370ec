"""The server behind Codex's own user interfaces, and what its user has trusted."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any


def trust_hooks(folder: Path) -> None:
    """Write down that the user trusts the hooks that are installed."""
    path = folder / "hooks.json"
    state: list[str] = []
    for native, groups in json.loads(path.read_text())["hooks"].items():
        event = "".join(f"_{c.lower()}" if c.isupper() else c for c in native).lstrip("_")
        for index, group in enumerate(groups):
            handler = {"async": False, **group["hooks"][0]}
            about = {"event_name": event, "hooks": [handler]}
            if "matcher" in group and event not in ("user_prompt_submit", "stop"):
                about["matcher"] = group["matcher"]
            text = json.dumps(about, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            digest = hashlib.sha256(text.encode()).hexdigest()
            key = json.dumps(f"{path}:{event}:{index}:0")
            state.append(f'[hooks.state.{key}]\ntrusted_hash = "sha256:{digest}"\n')
    config = folder / "config.toml"
    config.write_text(f"{config.read_text()}\n{''.join(state)}")


class CodexServer:
    """The server behind Codex's own user interfaces, and a person who says yes in one of them."""

    def __init__(self, codex: Path, project: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(codex), "app-server"],
            cwd=project,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.asked: list[str] = []
        """The messages that the person was shown."""
        self.send(id=0, method="initialize", params={"clientInfo": {"name": "ui", "version": "1"}})
        self.send(method="initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{json.dumps(message)}\n")
        self.process.stdin.flush()

    def play(self, prompt: str) -> None:
        """Begin a conversation, and say yes to what it asks until its first turn has ended."""
        assert self.process.stdout
        self.send(id=1, method="thread/start", params={})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == 1:
                said = [{"type": "text", "text": prompt}]
                thread = message["result"]["thread"]["id"]
                self.send(id=2, method="turn/start", params={"threadId": thread, "input": said})
            elif message.get("method") == "mcpServer/elicitation/request":
                self.asked.append(message["params"]["message"])
                answer = {"action": "accept", "content": {"approve": True}}
                self.send(id=message["id"], result=answer)
            elif message.get("method") == "turn/completed":
                return
        raise AssertionError("the server ended")

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
