"""What the console says about itself: true, whole, and nothing that is secret."""

import html
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.launcher import Program
from interlock.agents.hosts.registry import all_hosts
from interlock.app.admin import data_inventory
from interlock.app.admin.access import load_secret
from interlock.app.context import open_app
from interlock.app.gate import gate_journal, overrides, trust
from interlock.app.gate.opt_in import opt_in
from interlock.app.hosts import install
from interlock.app.hosts.toolsets import announce_server
from interlock.core.protocol.gated_session import Conversation
from interlock.mcp.client import StdioClient
from tests.scenes import started
from tests.server.forms import SignedIn
from tests.server.process import Process
from tests.server.site_server import SiteServer
from tests.sessions import begin_recorded


@pytest.fixture
def served(home: Path, tmp_path: Path) -> Iterator[SignedIn]:
    """A server whose data home lies in the user's home, with a session in it."""
    app = open_app(home)
    started(app, tmp_path)
    app.keyring.rotate()
    app.close()
    with SiteServer(home) as server:
        yield SignedIn(server)


def diagnostics_on(page: str) -> str:
    text = page.partition("<h2>Diagnostics</h2>")[2].partition("<pre>")[2].partition("</pre>")[0]
    return html.unescape(text)


def test_settings_say_what_runs_where_and_what_it_holds(home: Path) -> None:
    with Process(home) as server:
        page = SignedIn(server).get("/settings").text
        assert f"process {server.pid} at" in page
        for name in (path.name for path in home.iterdir()):
            assert f"<code>{name}</code>" in page
    assert server.url in page
    assert str(home) in page
    assert "SQLite 3." in page
    assert f"Python</dt><dd>{sys.version.split()[0]}" in page
    assert "no config.toml" in diagnostics_on(page)
    assert "(not there: these are the defaults)" in page


def test_no_secret_is_on_any_of_these_pages(served: SignedIn, home: Path) -> None:
    keys = json.loads((home / "keyring").read_text())["keys"]
    secrets = [load_secret(home).bearer, *(key["secret"] for key in keys)]
    pages = [served.get(path).text for path in ("/settings", "/settings/data")]

    assert [key["state"] for key in keys] == ["retired", "current"]
    for key in keys:
        assert f'<td class="num">{key["id"]}</td><td>{key["state"]}</td>' in pages[0]
    for page in pages:
        assert not [secret for secret in secrets if secret in page]
        assert "ct1" not in page


def test_diagnostics_can_be_shown_to_others(served: SignedIn, home: Path, tmp_path: Path) -> None:
    text = diagnostics_on(served.get("/settings").text)

    assert text.startswith("Interlock ")
    assert "data home: ~/interlock\n" in text
    assert str(home.parent) not in text
    assert str(tmp_path) not in text, "where the user works is not told"
    assert "1 session," in text
    assert "keys: 1 current, 1 retired" in text
    assert "Try it" not in text, "nothing that was written is told"


def test_preferences_are_shown_with_where_they_are_set(served: SignedIn, home: Path) -> None:
    config = home / "config.toml"
    config.write_text('[preferences]\nautonomy = "full_auto_never_stop"\n')
    chosen = served.get("/settings").text
    config.write_text('[preferences]\nautonomy = "wild, token=hunter2hunter2"\n')
    broken = served.get("/settings")

    assert "<strong>full_auto_never_stop</strong>" in chosen
    assert str(config) in chosen
    assert broken.status == 200
    assert "No run can begin until" in broken.text
    assert "broken config.toml" in diagnostics_on(broken.text)
    assert "hunter2" not in diagnostics_on(broken.text)


def served_row(page: str, pid: int) -> str:
    return page.partition(f'<tr id="tools-{pid}"')[2].partition("</tr>")[0]


def test_the_tools_of_each_running_client_are_compared_with_the_settings(
    served: SignedIn, home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    config = home / "config.toml"
    config.write_text('[mcp]\ntoolsets = ["workflow", "session"]\n')
    client, killed = (StdioClient(home, workspace=project) for _ in range(2))
    for one in (client, killed):
        one.initialize()
        one.call("list_workflows")  # which the server answers itself, so it has announced itself
    pid = client.server.pid
    as_set = served.get("/settings").text
    config.write_text('[mcp]\ntoolsets = ["notes"]\n')
    changed = served.get("/settings").text
    config.write_text("[mcp]\ntoolsets = 7\n")
    broken = served.get("/settings")
    config.unlink()
    unset = served.get("/settings").text
    killed.kill()
    after_kill = served.get("/settings").text
    files = list((home / "tool-servers").iterdir())
    client.close()
    after_end = served.get("/settings").text

    for told in ("<td>workflow, session</td>", f'title="{project}">shop<', "yes</span>"):
        assert told in served_row(as_set, pid)
    assert served_row(as_set, killed.server.pid)
    assert "differs: restart the client</span>" in served_row(changed, pid)
    assert "It would serve notes." in served_row(changed, pid)
    assert (broken.status, "No server of tools starts until" in broken.text) == (200, True)
    assert "It would serve workflow, session, notes, coordination." in served_row(unset, pid)
    assert (served_row(after_kill, killed.server.pid), served_row(after_kill, pid) != "") == (
        "",
        True,
    )
    assert [file.name.partition("-")[0] for file in files] == [str(pid)], "and no other is left"
    assert {file.stat().st_mode & 0o777 for file in (home, home / "tool-servers")} == {0o700}
    assert "No client has a server of tools running" in after_end
    assert list((home / "tool-servers").iterdir()) == []


def test_what_the_command_of_a_client_names_is_not_compared(served: SignedIn, home: Path) -> None:
    (home / "config.toml").write_text('[mcp]\ntoolsets = ["notes"]\n')
    app = open_app(home)
    announcement = announce_server(app, ("session",), is_chosen=True)
    app.close()
    assert announcement is not None
    row = served_row(served.get("/settings").text, os.getpid())
    announcement.withdraw()

    assert "as its command says" in row
    assert "differs" not in row


def test_a_gate_that_is_switched_off_is_said(served: SignedIn, home: Path) -> None:
    before = served.get("/settings").text
    overrides.start_override(home)
    after = served.get("/settings").text

    assert "switched off everywhere" not in before
    assert "switched off everywhere" in after
    assert "gate: off for the moment" in diagnostics_on(after)


def test_every_kind_of_thing_is_told_with_its_place_and_its_end(
    served: SignedIn, home: Path
) -> None:
    (home / "spool").mkdir()
    (home / "spool" / "gate.jsonl").write_bytes(b"x" * 2_000)
    (home / "notes from <b>me").write_text("mine")
    (home / os.fsdecode(b"caf\xe9")).write_text("in an old encoding")
    page = served.get("/settings/data").text

    assert "Nothing is sent anywhere" in page
    for kind in data_inventory.DATA_KINDS:
        assert kind.name in page
        assert html.escape(kind.holds, quote=False)[:40] in page.replace("&#39;", "'")
    assert "2.0 KB" in page
    assert "Other files" in page
    assert "notes from &lt;b&gt;me" in page
    assert "caf\N{REPLACEMENT CHARACTER}" in page
    assert f"rm -r {home}/spool" in page
    assert 'href="/sessions"' in page


def test_everything_that_interlock_makes_in_its_home_is_of_a_known_kind(
    served: SignedIn, home: Path, tmp_path: Path
) -> None:
    overrides.start_override(home)
    gate_journal.journal_event(home, "claude-code", "stop", "talk")
    opt_in(tmp_path, "light")
    trust.trust_checkout(home, tmp_path, at_ms=1)
    program = Program(sys.executable, (), str(home), shell="/bin/bash")
    for client in all_hosts():
        install.install(home, client, "project", tmp_path, program, at_ms=1)
        install.install(home, client, "user", Path.home(), program, at_ms=1)
    install.write_plugin(program)
    app = open_app(home)
    begin_recorded(app, tmp_path, Conversation("claude-code", "talk"))
    app.close()
    assert served.get("/settings").status == 200

    assert {
        entry.name
        for entry in data_inventory.home_entries(home)
        if entry.kind == data_inventory.OTHER_FILES.name
    } == set()


def test_a_command_is_right_for_a_home_with_a_space_in_it(tmp_path: Path) -> None:
    home = tmp_path / "Application Support"
    home.mkdir()
    (home / "logs").mkdir()
    (log,) = [one for one in data_inventory.list_stored_data(home, "") if one.kind.name == "Logs"]

    subprocess.run(["/bin/sh", "-c", log.command], check=True)

    assert list(home.iterdir()) == []


def test_what_was_put_into_a_client_is_named_and_the_command_takes_all_of_it_away(
    home: Path, tmp_path: Path
) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    program = Program(sys.executable, (), str(home))
    install.install(home, claude_code.HOST, "project", project, program, at_ms=1)
    settings = project / ".claude" / "settings.json"
    assert settings.exists()
    with SiteServer(home) as server:
        page = html.unescape(SignedIn(server).get("/settings/data").text)
        found = data_inventory.client_installs(home)
        assert isinstance(found, list)
        command = data_inventory.forget_all_command(home, found)
        assert str(settings) in page
        assert command in page
        # The name of a command is what differs between here and a user's shell.
        script = f'interlock() {{ "{sys.executable}" -m interlock "$@"; }}; {command}'
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert not home.exists()
    assert not settings.exists()


def test_a_home_that_others_can_look_into_is_said(served: SignedIn, home: Path) -> None:
    alone = served.get("/settings/data").text
    home.chmod(0o755)
    page = served.get("/settings/data").text

    assert "Only you can look into it" in alone
    assert f"chmod 700 {home}" in page
    assert "others can look into it" in diagnostics_on(served.get("/settings").text)


def test_a_home_that_a_server_in_the_background_makes_is_the_users_alone(home: Path) -> None:
    command = [sys.executable, "-m", "interlock"]
    subprocess.run([*command, "up", "--background", "--port", "0"], check=True, capture_output=True)
    try:
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        subprocess.run([*command, "stop"], check=True, capture_output=True, env=os.environ)
