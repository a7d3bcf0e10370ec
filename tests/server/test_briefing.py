"""The page that shows what a new session would be told: exactly that, and nothing happens by it."""

import html
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from interlock.agents.hosts import claude_code, codex
from interlock.agents.hosts.hook_payload import HookPayload
from interlock.app.context import open_app
from interlock.app.gate.opt_in import opt_in
from interlock.core.notes.budget import estimate_tokens
from interlock.hooks.context_messages import begin_session
from tests.hooks.clients import attend
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.vault import Vault, vault

__all__ = ["vault"]  # fixture

ZEROS = "ses_0000000000000000"


@pytest.fixture(scope="module")
def server(vault: Vault) -> Iterator[Server]:
    opt_in(vault.shop, "light")
    vault.write("usage-mandatory.md", "- Run `make check` <b>before</b> you stop\n")
    for number in range(20):
        vault.write(f"d/{number}.md", f"---\ntype: decision\n---\n- [constraint] never {number}\n")
    with SiteServer(vault.home) as running:
        yield running


def address(vault: Vault, project: Path | None = None, **more: str) -> str:
    return vault.at(project=project, **more).replace("/notes?", "/notes/briefing?")


def told(page: str) -> str:
    return html.unescape(
        page.partition('<pre class="whole" tabindex="0">')[2].partition("</pre>")[0]
    )


def records(vault: Vault) -> dict[str, object]:
    """All that a look could change: the log, the gate, what was told, the clients, the project."""
    app = open_app(vault.home)
    position = app.reader.position()
    app.close()
    gate = vault.home / "gate.db"
    with closing(sqlite3.connect(gate)) as database:
        rows = list(database.iterdump()) if gate.exists() else []
    names = [path for name in ("told", "clients") for path in (vault.home / name).glob("**/*")]
    files = {path: path.read_bytes() for path in vault.shop.rglob("*") if path.is_file()}
    return {"position": position, "gate": rows, "names": names, "files": files}


def test_it_is_what_the_hook_tells_and_looking_changes_nothing(
    server: Server, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.get(vault.at())  # the index of the notes is not a record
    before = records(vault)
    pages = {
        host: server.get(address(vault, client=host.name)).text
        for host in (claude_code.HOST, codex.HOST)
    }

    assert records(vault) == before
    for variable in ("CLAUDE_CODE_SHELL", "AI_AGENT"):
        monkeypatch.delenv(variable, raising=False)
    for host, page in pages.items():
        attend(monkeypatch, host)
        payload = HookPayload(session_id=f"new-{host.name}", cwd=str(vault.shop), source="startup")
        text, _ = begin_session(vault.home, vault.shop, host, payload)
        own = re.findall("ses_[0-9a-f]{16}", text)[0]
        assert told(page) == text.replace(own, ZEROS)
    assert told(pages[claude_code.HOST]) != told(pages[codex.HOST]), "what becomes of commands"


def test_the_budget_is_shown_with_what_was_left_out_and_why(server: Server, vault: Vault) -> None:
    page = server.get(address(vault)).text
    text = told(page)
    config = vault.shop / ".interlock" / "config.toml"
    written = config.read_text()
    config.write_text(f"{written}\n[notes]\nbudget = 400\n")
    try:
        tight = server.get(address(vault)).text
    finally:
        config.write_text(written)

    assert f'max="1500" value="{estimate_tokens(text)}"' in page
    assert "Run `make check` <b>before</b> you stop" in text
    assert "<b>before" not in page
    assert 'Recent decisions</td><td class="right num">13</td><td>13 items are older' in page
    assert 'max="400"' in tight
    assert estimate_tokens(told(tight)) <= 400
    assert re.search(r"Constraints</td>.*?had no room", tight)


def test_where_no_hook_speaks_or_nobody_worked_that_is_said(server: Server, vault: Vault) -> None:
    site = server.get(address(vault, project=vault.site))
    unknown = server.get(address(vault, project=vault.unknown))

    assert (site.status, "has not opted in" in site.text) == (200, True)
    assert (unknown.status, "There is no known project at" in unknown.text) == (404, True)
    assert "Nobody worked here" not in unknown.text


def test_a_person_comes_from_the_notes_and_sees_a_new_decision_come_in(
    visitor: Visitor, vault: Vault
) -> None:
    page = visitor.go(vault.at())
    page.get_by_role("link", name="What a new session would be told").click()
    expect(page.locator("pre.whole")).to_contain_text("## Interlock session")
    page.get_by_role("link", name="Codex").click()
    expect(page.locator("pre.whole")).to_contain_text("Interlock denies every command")
    note = vault.write("fresh.md", "---\ntitle: Just decided\ntype: decision\n---\ntext\n")
    expect(page.locator("pre.whole")).to_contain_text("Just decided")
    note.unlink()
    assert visitor.faults_here() == []
