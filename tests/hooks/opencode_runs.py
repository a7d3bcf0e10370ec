"""OpenCode's plugin, run by node as OpenCode runs it, in front of a launcher that takes notes."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.agents.hosts.host import OwnFile
from interlock.agents.hosts.opencode import HOST
from tests.hooks.recordings import recorded

DRIVER = Path(__file__).with_name("opencode_driver.mjs")
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="NOT TESTED: OpenCode's plugin needs node, which was not found"
)
MAIN, SUBAGENT, PARENT = (
    *("ses_e192653f2ffec2iTBcvYvYz540", "ses_e1924e700ffeCYNnVPLIZWiKcs"),
    "ses_e192500e3ffepgYu8mBsaWU2ZE",
)
PLANNER, COMMANDED = "ses_e1924cb22ffeV0FVFNZjsn0uv4", "ses_e192544adffeIMh9CPuBLwSuhx"
COMPACTED, DELETED = "ses_e192447fcffemUChlXXCDz41uV", "ses_e1920acaaffe8Y2Zl1Ra6xi3fL"
"""The sessions that were recorded."""


class Run(NamedTuple):
    """A run of the plugin."""

    sent: list[tuple[str, dict[str, Any]]]
    """The events and payloads that the launcher was given, in their order."""
    thrown: list[str | None]
    """The message of the error that each hook threw, if it did."""
    outputs: list[Any]
    """The second argument of each hook, as the hook has left it."""


class Workbench:
    """A project with the plugin, and a launcher whose answers can be chosen."""

    def __init__(self, base: Path) -> None:
        self.base, self.project = base, base / "project"
        self.project.mkdir()
        self.launcher, self.record = base / "launch", base / "record"
        self.milliseconds = "10_000"
        self.answers = base / "answers"
        self.answers.mkdir()
        self.launcher.write_text(
            "#!/bin/sh\n"
            f"{{ printf '%s\\t' \"$3\"; cat; echo; }} >> '{self.record}'\n"
            f"[ \"$1 $2\" = 'hook opencode' ] || exit 9\n"
            f"cd '{self.answers}'\n"
            '[ -e "$3.sh" ] && exec /bin/sh "$3.sh"\n'
            '[ -e "$3.json" ] && exec cat "$3.json"\n'
            "exit 0\n"
        )

    def answer(self, event: str, answer: dict[str, Any]) -> None:
        (self.answers / f"{event}.json").write_text(json.dumps(answer))

    def do(self, event: str, script: str) -> None:
        """Run a script instead of an answer."""
        (self.answers / f"{event}.sh").write_text(script)

    def plugin(self, launcher: str | None = None) -> Path:
        """The plugin as it is installed for the user, or with another launcher: none is empty."""
        scope = "user" if launcher != "" else "project"
        home = str((Path(launcher) if launcher else self.launcher).parent)
        part = HOST.parts(scope, str(self.base), home, {})[0]
        assert isinstance(part, OwnFile)
        path = self.base / "interlock.mjs"  # node takes it for a module by its name
        assert isinstance(part.content, str)
        patience = "const MILLISECONDS = {}\n"
        assert patience.format("10_000") in part.content
        path.write_text(
            part.content.replace(patience.format("10_000"), patience.format(self.milliseconds))
        )
        return path

    def run(self, *calls: dict[str, Any] | str, launcher: str | None = None) -> Run:
        """Call the hooks; a text names a recorded call."""
        made = [self.call(each) if isinstance(each, str) else each for each in calls]
        wanted = {
            "plugin": str(self.plugin(launcher)),
            "directory": str(self.project),
            "sessions": self.sessions(),
            "calls": made,
        }
        done = subprocess.run(
            [str(NODE), str(DRIVER)],
            input=json.dumps(wanted),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ},
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        sent = [(line.partition("\t")[0], json.loads(line.partition("\t")[2])) for line in lines]
        thrown = [each["thrown"] for each in told["results"]]
        outputs = [each["output"] for each in told["results"]]
        return Run(sent, thrown, outputs)

    def call(self, name: str, **changes: Any) -> dict[str, Any]:
        """A call of a hook as OpenCode was seen to make it; its input can be changed."""
        call = recorded(f"opencode-{name}", self.project)
        call["input"].update(changes)
        return call

    def sessions(self) -> dict[str, Any]:
        """The sessions as OpenCode tells of them, by their ids."""
        names = ("", "-plan", "-subagent")
        calls = [self.call(f"client.session.get{name}") for name in names]
        recorded = {call["input"]["id"]: call["output"] for call in calls}
        return {COMMANDED: {"id": COMMANDED}, **recorded}
