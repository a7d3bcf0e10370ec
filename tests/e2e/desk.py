"""A project, a data home and a model that plays a script, for real clients without a network."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.person import run_as_person

HERE = Path(__file__).parent
SECONDS_MAX = 120
# Some clients hand the structure of an answer to the model, others its text.
TOKEN = {"from": "result", "re": "(ct1[a-z0-9]{45})"}


def hand_in(notes: str) -> dict[str, Any]:
    return {
        "extract": {"token": TOKEN},
        "blocks": [
            {
                "tool": "*continue_workflow",
                "input": {"continueToken": "${token}", "output": {"notesMarkdown": notes}},
            }
        ],
    }


START: dict[str, Any] = {
    "tool": "*start_workflow",
    "input": {"workflowId": "hello", "goal": "See it work"},
}
STEPS = [
    hand_in("A project with one file."),
    hand_in("A README. I left out a licence on purpose."),
    hand_in("`ls` shows it."),
]
WORKFLOW = [START, *STEPS]


def merge_json(path: Path, printed: str) -> None:
    """Merge the object of a printed text into a file of settings."""
    addition = json.loads(printed[printed.index("\n{") :])
    settings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for key, value in addition.items():
        settings[key] = {**settings.get(key, {}), **value}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


class Desk:
    """A project, a data home and a model that plays a script."""

    def __init__(self, base: Path) -> None:
        self.project, self.home, self.base = base / "project", base / "interlock", base
        self.user = base / "user"
        self._models = count(1)
        self.project.mkdir()
        self.user.mkdir()
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        (self.project / "seen.txt").write_text("here\n")

    def environment(self, **more: str) -> dict[str, str]:
        kept = ("PYTHONPATH", "LANG", "TMPDIR")
        programs = Path(sys.executable).parent
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.user),
            "TERM": "dumb",
            "INTERLOCK_HOME": str(self.home),
            **more,
        }

    def with_runs(self) -> list[dict[str, Any]]:
        """The sessions in which there is a workflow."""
        listed = json.loads(self.interlock("session", "list", "--json"))
        return [row for row in listed if row["run"]]

    def interlock(self, *words: str) -> str:
        command = (sys.executable, "-m", "interlock", *words)
        done = run_as_person(command, cwd=self.project, environment=self.environment())
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def model(self, *turns: object, **more: object) -> Generator[tuple[str, Path]]:
        """A model that plays `turns`: its address, and the log of what it was asked."""
        folder = self.base / f"model-{next(self._models)}"
        folder.mkdir()
        script, log, port = (folder / name for name in ("script.json", "log.jsonl", "port"))
        script.write_text(json.dumps({"turns": [*turns, "All done."], **more}))
        model = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "scripted_model"),
                f"--script={script}",
                f"--log={log}",
                f"--port-file={port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not port.exists() or not port.read_text():
                assert model.poll() is None, "the model did not start"
            yield f"http://127.0.0.1:{port.read_text().strip()}", log
        finally:
            model.kill()
            model.wait()

    def run(self, command: Sequence[str], environment: dict[str, str], directory: str = ".") -> str:
        done = subprocess.run(
            command,
            cwd=self.project / directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @staticmethod
    def requests(log: Path) -> list[dict[str, Any]]:
        """What the client asked the model, request by request."""
        found = [json.loads(line) for line in log.read_text().splitlines()]
        assert not any(errors := [one.get("script_error") for one in found]), errors
        return found
