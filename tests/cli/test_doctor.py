"""`interlock doctor`, as typed: with the real hook and the real server."""

import json
import os
from pathlib import Path

import pytest

from interlock.app.hosts.install import Scope
from tests.app.hosts.configurations import SETTINGS
from tests.app.hosts.installs import PLACES, settings_of, write
from tests.cli.conftest import Terminal
from tests.effort import sample

pytestmark = pytest.mark.usefixtures("machine")


@pytest.mark.slow
@pytest.mark.parametrize(("host", "scope"), sample(PLACES, 3))
def test_it_proves_that_what_was_installed_blocks(
    host: str, scope: Scope, typed: Terminal, tmp_path: Path
) -> None:
    """Through the files as they were written."""
    write(settings_of(Path.home()), SETTINGS["crlf"])
    write(Path.home() / ".gemini" / "trustedFolders.json", f'{{"{tmp_path}": "TRUST_FOLDER"}}')
    typed("init")
    typed("install", host, "--scope", scope)

    said = typed("doctor", host)

    assert said.code == 0, said.out
    rows = [line.split(None, 2) for line in said.out.splitlines()]
    assert {row[0] for row in rows} == {"ok"}
    facts = {row[1]: row[2] for row in rows}
    assert facts["block"] == "A write of an unknown session was denied"
    assert facts["pass"] == "A read passed"
    assert facts["server"].startswith("The MCP server starts and has ")
    trust = ["trust"] if host == "codex" else []  # which is not here to be asked
    wanted = ["project", "hooks", "program", *trust, "server", "gate", "block", "pass", "heard"]
    assert [row[1] for row in rows if row[1] not in ("settings", "sandbox")] == wanted


@pytest.mark.slow
def test_it_examines_every_client_that_was_told(typed: Terminal) -> None:
    typed("init")
    for host in ("cursor", "codex"):
        typed("install", host)

    said = typed("doctor")

    assert said.code == 0, said.out
    headings = [line for line in said.out.splitlines() if line.endswith(":")]
    assert headings == ["Codex:", "Cursor:"]
    found = json.loads(typed("doctor", "--json").out)
    assert [(report["host"], report["isOk"]) for report in found["hosts"]] == [
        ("codex", True),
        ("cursor", True),
    ]
    assert found["isOk"]


def test_it_puts_back_what_was_changed(typed: Terminal) -> None:
    typed("init")
    typed("install", "codex")
    hooks = Path.home() / ".codex" / "hooks.json"
    text = hooks.read_text()
    hooks.write_text("{}\n")
    assert typed("doctor", "codex").code == 1

    said = typed("doctor", "codex", "--repair")

    assert said.code == 0, said.out
    assert said.out.startswith(f"Put back: {hooks}\n")
    assert hooks.read_text() == text


def test_it_says_what_to_do_where_nothing_was_installed(typed: Terminal, tmp_path: Path) -> None:

    said = typed("doctor", "claude-code")

    assert said.code == 1
    assert said.out == (
        f"PROBLEM  project  `{tmp_path}` has not opted in, so hooks stay silent there\n"
        "                  -> `interlock init` opts it in.\n"
        "PROBLEM  hooks    No hook of Interlock is in the files of Claude Code\n"
        "                  -> Run `interlock install claude-code`.\n"
        "PROBLEM  server   Claude Code knows no MCP server `interlock`\n"
        "                  -> Run `interlock install claude-code`.\n"
        "ok       gate     The gate is on\n"
    )
    assert os.listdir(tmp_path) == []
