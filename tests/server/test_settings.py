"""What the console says about itself: true, whole, and nothing that is secret."""

import html
import json
import os
import re
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
from interlock.core.protocol.gated_session import Conversation
from interlock.server.pages.absent import ABSENT_FEATURES, AbsentFeature
from tests.scenes import started
from tests.server.forms import SignedIn
from tests.server.server_process import Server
from tests.sessions import begin_recorded

PROMISES = re.compile(r"\b(soon|will|shall|coming|planned|roadmap|yet)\b")


@pytest.fixture
def served(home: Path, tmp_path: Path) -> Iterator[SignedIn]:
    """A server whose data home lies in the user's home, with a session in it."""
    app = open_app(home)
    started(app, tmp_path)
    app.keyring.rotate()
    app.close()
    with Server(home) as server:
        yield SignedIn(server)


def diagnostics_on(page: str) -> str:
    text = page.partition("<h2>Diagnostics</h2>")[2].partition("<pre>")[2].partition("</pre>")[0]
    return html.unescape(text)


def test_settings_say_what_runs_where_and_what_it_holds(served: SignedIn, home: Path) -> None:
    page = served.get("/settings").text

    assert f"process {served.server.pid} at" in page
    assert served.server.url in page
    assert str(home) in page
    assert "SQLite 3." in page
    assert f"Python</dt><dd>{sys.version.split()[0]}" in page
    assert "no config.toml" in diagnostics_on(page)
    assert "(not there: these are the defaults)" in page
    for name in (path.name for path in home.iterdir()):
        assert f"<code>{name}</code>" in page


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
    assert "1 sessions" in text
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
    with Server(home) as server:
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


@pytest.mark.parametrize("absent", ABSENT_FEATURES, ids=lambda absent: absent.name)
def test_a_page_for_what_is_not_there_says_what_is_so_and_promises_nothing(
    server: Server, absent: AbsentFeature
) -> None:
    page = SignedIn(server).get(absent.path)
    said = page.text.partition('<section class="empty">')[2].partition("</section>")[0]

    assert page.status == 200
    assert said
    assert not PROMISES.search(said)
    assert re.search(r'href="/(sessions|workflows)', said)
