"""Every command that prints something, typed in one scene: what it prints is in a golden file.

The golden file is the script, too. Each line of it that begins with `$` is typed, and what is said
stands below. What varies has a name there: the first session is `ses_1`, in what is typed as well.
To show another command, write its line there, and renew the file.
"""

import difflib
import io
import os
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from unittest.mock import Mock

import pytest

import interlock
from interlock.app.clock import SystemClock
from interlock.app.context import App
from interlock.app.jobs import executor_process
from interlock.app.store_clock import StoreClock
from interlock.cli import commands
from interlock.core.coordination import registration
from interlock.durable import executor
from interlock.hooks import gate_state
from tests.cli.conftest import Terminal
from tests.cli.shop import Shop
from tests.cli.test_user_only import LEAVES
from tests.forge_stub import StubForge
from tests.scenes import SettableClock

GOLDEN = Path(__file__).parents[1] / "golden" / "cli" / "transcript.txt"
PACKAGE = str(Path(interlock.__file__).parent)
RENEW = "INTERLOCK_RENEW_GOLDEN"
START_MS = 1_767_268_800_000
LEFT_OUT = {
    "builtins --json": "prints a thousand lines of schemas",
    "console": "opens a browser, and starts a server for it",
    "demo": "plays a whole scene of its own",
    "doctor": "says what is installed on this machine",
    "driver run": "is a server",
    "hook": "is called by clients, which send it JSON",
    "install": "changes the settings of clients",
    "mcp": "is a server",
    "sandbox check": "says what this kernel can do",
    "sandbox run": "replaces the process that calls it",
    "uninstall": "changes the settings of clients",
    "up": "is a server",
}
FIXED = {
    r"\bct1[0-9a-z]{40,}": "TOKEN",
    r"\b1[78]\d{11}\b|\b1767[23]\d{5}\b": "TIME",
    r"\b20\d\d-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)| \d\d:\d\d UTC)?": "DATE",
    r"\b\d+ (ms|bytes|KiB)\b": r"N \1",
    r'"(size|stateBytes)": \d+': r'"\1": N',
    r"\b0\.\d{6,}": "0.N",
    r'"(machine|watched)":( ?)"[^"]*"': r'"\1":\2"…"',
    r"SQLite [\d.]+": "SQLite VERSION",
}
NAMED = re.compile(
    r"\b(?P<id>[a-z]{3,5})_[0-9a-f]{8,32}\b"
    r"|\b(?P<il>il)-[0-9a-z]{4}\b"
    r'|(?P<key>(?m:^)\d+(?=  (?:current|retired))|(?<=Key )\d+|(?<="current": )\d+'
    r'|(?<="revoked": )\d+|(?<="id": )\d+|(?<=of key )\d+)'
    r'|(?P<version>(?<=version )[0-9a-f]{12}|(?<="version": ")[0-9a-f]{12})'
    r"|(?P<digest>\b(?:[0-9a-f]{12,64}\b|[0-9a-f]{8}(?=/)))"
)


class Transcript:
    """What was typed and said, with a short name for each thing that is called otherwise each time.

    `places` are directories, with what they are called.
    """

    def __init__(self, typed: Terminal, clock: SettableClock, places: dict[str, str]) -> None:
        self._typed, self._clock, self._places = typed, clock, places
        self._names: dict[str, str] = {}
        self._things: dict[str, str] = {}
        self._counts = Counter[str]()

    def shorten(self, text: str) -> str:
        for path, name in self._places.items():
            text = text.replace(path, name)
        for pattern, name in FIXED.items():
            text = re.sub(pattern, name, text)
        lines = NAMED.sub(self._name, text).split("\n")
        # A column is as wide as its content, which has another length here. A box is not.
        return "\n".join(
            line if line.startswith(("│", "|")) else re.sub(r"(?<=\S) {2,}", "  ", line)
            for line in lines
        )

    def _name(self, match: re.Match[str]) -> str:
        kind = match["id"] or match.lastgroup or ""
        whole = f"digest {match[0][:8]}" if kind == "digest" else match[0]
        if whole not in self._names:
            self._counts[kind] += 1
            self._names[whole] = f"{kind}_{self._counts[kind]}"
            self._things[self._names[whole]] = match[0]
        return self._names[whole]

    def type(self, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """What is said to a line of the script, below that line."""
        _, program, *words = (
            re.sub(r"\b[a-z]+_[0-9]+\b", lambda name: self._things.get(name[0], name[0]), word)
            for word in shlex.split(line)
        )
        self._clock.at_ms += 1_000 * (int(words[0]) if program == "sleep" else 1)
        if program == "cd":
            monkeypatch.chdir(words[0])
        if program != "interlock":
            return f"{line}\n"
        words, stdin = (words[:-2], words[-1]) if "<<<" in words else (words, "")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        said = self._typed(*words)
        code = f"(exit code {said.code})\n" if said.code else ""
        shown = self.shorten(f"{said.out}{said.err}") + code
        return f"{line}\n{indent(shown, '  ')}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SettableClock]:
    """The only clock, in Greenwich. The user and an agent have the same names everywhere."""

    def run_here(app: App) -> None:
        executor.run_pending_jobs(app.home, seconds=60)

    clock = SettableClock(START_MS)
    for owner in (SystemClock, StoreClock, gate_state):
        monkeypatch.setattr(owner, "now_ms", Mock(side_effect=clock.now_ms))
    monkeypatch.setattr(executor_process, "_start_executor", run_here)
    monkeypatch.setattr(executor, "CLOSE_SECONDS", 0)
    monkeypatch.setattr(registration, "draw_base_name", Mock(return_value="BlueLake"))
    monkeypatch.setattr("pwd.getpwuid", Mock(return_value=Mock(pw_name="ana")))
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield clock
    monkeypatch.undo()
    time.tzset()


@pytest.mark.sqlite
@pytest.mark.slow
def test_every_command_says_what_the_transcript_says(
    clock: SettableClock, app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {str(tmp_path): "~/work", str(app.home.parent): "~", PACKAGE: "/opt/interlock"}
    golden = GOLDEN.read_text()
    with StubForge("github") as stub:
        transcript = Transcript(typed, clock, places)
        shop = Shop(app, tmp_path, stub, clock)
        transcript.shorten("  ".join(shop.things))
        monkeypatch.chdir(shop.root)
        parts = [
            transcript.type(line, monkeypatch) if line.startswith("$ ") else f"{line}\n"
            for line in golden.splitlines()
            if line.startswith(("$ ", "## "))
        ]
    shown = "\n".join(parts)
    if os.environ.get(RENEW):
        GOLDEN.write_text(shown)
        pytest.fail(f"`{GOLDEN}` was written anew: read what has changed in it, and commit it")
    difference = difflib.unified_diff(
        golden.splitlines(), shown.splitlines(), "transcript.txt", "now", lineterm=""
    )
    assert shown == golden, "\n".join((f"{RENEW}=1 writes it anew. Is this meant?", *difference))


def test_every_command_is_in_the_transcript_or_left_out_for_a_reason() -> None:
    typed = re.findall(r"^\$ interlock (.*)$", GOLDEN.read_text(), re.MULTILINE)
    missing = [
        name
        for path, command in LEAVES(commands.interlock, ())
        for option in ("", " --json")[: 1 + any("--json" in each.opts for each in command.params)]
        if not {" ".join(path), name := " ".join(path) + option} & LEFT_OUT.keys()
        and not any(
            f"{line} ".startswith(f"{' '.join(path)} ") and (" --json" in line) == bool(option)
            for line in typed
        )
    ]

    assert missing == []
