"""The pages about notes, as a program sees them."""

import html
import re
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest

from interlock.server.markdown import note_markdown
from interlock.server.pages.notes import PER_PROJECT
from tests.server.forms import assert_harmless
from tests.server.server_process import Server
from tests.server.vault import Vault, server, vault

__all__ = ["server", "vault"]  # fixtures

SQLITE = "decisions/ADR-001-use-sqlite.md"
TITLES = re.compile(r'class="main-link" href="[^"]*">([^<]*)</a>')


def titles(page: str) -> list[str]:
    return [html.unescape(title) for title in TITLES.findall(page)]


def test_a_project_is_shown_the_newest_note_first(server: Server, vault: Vault) -> None:
    page = server.get(vault.at())

    assert page.status == 200
    shown = titles(page.text)
    assert len(shown) == len(list(vault.notes.rglob("*.md")))
    assert shown[:3] == ["binary", "broken-front", "Use SQLite"], "by age"
    assert f'title="{vault.shop}" aria-current="true">shop</a>' in page.text
    assert "4 notes" in page.text, "link to Use SQLite"
    assert "cannot be read whole" in page.text


def groups(page: str) -> dict[str, list[str]]:
    """The titles of the notes on the page of all projects, by project."""
    sections = page.split("<section aria-labelledby=")[1:]
    return {re.findall(r'title="[^"]*">([^<]*)</a>', one)[0]: titles(one) for one in sections}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"site": ["The price list"], "shop": ["binary", "broken-front", "Use SQLite"]}),
        ("q=sqlite", {"shop": ["Use SQLite"], "site": ["The price list"]}),
        ("q=price+list", {"site": ["The price list"]}),
        ("q=secret+digest", {"shop": ["The event log"], "site": ["The price list"]}),
        ("type=design", {"shop": ["The event log"]}),
        ("q=no-such-word-anywhere", {}),
    ],
    ids=["newest", "words", "all words beat some", "some words", "filter", "nothing"],
)
def test_all_projects_are_searched_at_once_and_each_has_its_own_list(
    server: Server, query: str, found: dict[str, list[str]]
) -> None:
    page = server.get(f"/notes?{query}")

    assert page.status == 200
    shown = groups(page.text)
    assert list(shown) == list(found), "the one with the best note first, without words the newest"
    assert {name: notes[: len(found[name])] for name, notes in shown.items()} == found
    assert all(len(notes) <= PER_PROJECT for notes in shown.values())
    assert found or "No note fits" in page.text
    assert "Nobody worked here" not in page.text, "only where somebody worked"


def test_the_page_of_all_projects_leads_to_each_with_the_same_words(
    server: Server, vault: Vault
) -> None:
    page = html.unescape(server.get("/notes?q=sqlite&type=decision").text)
    site = urlencode({"q": "sqlite", "type": "decision", "in": str(vault.site)})

    assert f'href="/notes?{site}" data-stay' in page
    assert f'title="{vault.empty}">empty</a>' in page.partition("without notes</summary>")[2]
    assert f'href="/notes/briefing?{urlencode({"in": str(vault.shop)})}"' in page


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"type": "decision"}, {"Use SQLite"}),
        ({"tag": "storage"}, {"Use SQLite", "The event log"}),
        ({"folder": "design"}, {"Benchmarks", "The event log"}),
        ({"q": "журнал событий"}, {"журнал"}),
        ({"q": "append-only", "type": "design"}, {"The event log"}),
        ({"q": '") OR *'}, set[str]()),
        ({"page": "2"}, set[str]()),
    ],
)
def test_a_list_is_filtered_in_its_address(
    server: Server, vault: Vault, filters: dict[str, str], found: set[str]
) -> None:
    page = server.get(vault.at(**filters))

    assert page.status == 200
    assert set(titles(page.text)) == found
    assert found or "No note fits" in page.text


def test_a_search_says_where_and_if_asked_why(server: Server, vault: Vault) -> None:
    page = server.get(vault.at(q="digest")).text
    explained = server.get(vault.at(q="digest", explain="yes")).text

    assert titles(page) == ["The event log"]
    assert "Each event has a <mark>digest</mark> over" in page
    assert "matches" not in page
    assert "matches" in explained


def test_the_words_that_were_found_are_marked_and_nothing_else_becomes_markup(
    server: Server, vault: Vault
) -> None:
    page = server.get(vault.at(q="script pwned onclick"))

    assert_harmless(page)
    assert "&lt;div <mark>onclick</mark>=&#34;window.<mark>pwned</mark>=1&#34;&gt;" in page.text
    signs = server.get(vault.at(q="writes why")).text
    assert "<mark>Why</mark>" in signs
    assert "## " not in signs


def test_a_note_is_laid_out_with_what_it_says_and_what_lies_around_it(
    server: Server, vault: Vault
) -> None:
    page = server.get(vault.at(SQLITE)).text
    log = html.escape(vault.at("design/event-log.md"))

    assert page.count("<h1>") == 1
    assert page.count(">Use SQLite</h") == 1, "its first heading is the page's"
    assert f'<a href="{log}">The event log</a>' in page
    assert '<span class="unwritten" title="Not written yet">how it is kept</span>' in page
    assert f'<a href="{html.escape(vault.at("design/benchmarks.md"))}">the figures</a>' in page
    assert "<code>[[not a link]]</code>" in page
    assert "<h2>Why</h2>" in page
    for told in ("contradicts", "depends on", "One file for each data home", "measured"):
        assert told in page
    assert "{&#34;by&#34;: &#34;Ada&#34;" in page, "nested frontmatter"
    step = f"/sessions/{vault.session}?run={vault.run}&amp;node={vault.node}"
    assert f'by <a href="{step}">step 1, ' in page
    assert f'of <a href="/sessions/{vault.session}">Goal in shop</a>' in page
    assert page.count('class="n ') == 1 + 2 + 4, "the note, what links to it, what it names"


def test_where_a_note_comes_from_and_what_came_of_a_session_lead_to_each_other(
    server: Server, vault: Vault
) -> None:
    session = server.get(f"/sessions/{vault.session}?node={vault.node}")

    assert session.status == 200
    assert "1 note of this session" in session.text
    assert html.escape(vault.at(SQLITE)) in session.text


def test_a_step_of_another_session_is_not_linked(server: Server, vault: Vault) -> None:
    front = f"session: {vault.session}\nnode: node_0123456789abcdef\n"
    vault.write("odd-origin.md", f"---\n{front}---\nFrom nowhere.\n")
    try:
        page = server.get(vault.at("odd-origin.md")).text
    finally:
        (vault.notes / "odd-origin.md").unlink()

    assert f'href="/sessions/{vault.session}"' in page
    assert "?node=node_0123" not in page


def test_a_note_is_found_by_another_name_and_a_wrong_one_leads_on(
    server: Server, vault: Vault
) -> None:
    by_title = server.get(vault.at("Use SQLite"))
    wrong = server.get(vault.at("use sql"))

    assert by_title.status == 200
    assert SQLITE in by_title.text
    assert wrong.status == 404
    assert html.escape(vault.at(SQLITE)) in wrong.text


@pytest.mark.parametrize("path", ["hostile.md", "latin.md", "binary.md", "broken-front.md"])
@pytest.mark.parametrize("view", ["", "text"])
def test_no_note_becomes_markup(server: Server, vault: Vault, path: str, view: str) -> None:
    page = server.get(vault.at(path, **({"view": view} if view else {})))

    assert_harmless(page)
    assert [one for one in ("<b>", "<i>type", "/sessions/..") if one in page.text] == []


def test_what_cannot_be_read_of_a_note_is_said(server: Server, vault: Vault) -> None:
    assert "did not find expected" in server.get(vault.at("broken-front.md")).text
    assert "The body of a broken one" in server.get(vault.at("broken-front.md")).text
    assert "It is not text" in server.get(vault.at("binary.md")).text
    assert r"caf\udce9" in server.get(vault.at("latin.md")).text


def test_a_long_note_comes_in_pages(server: Server, vault: Vault) -> None:
    page = server.get(vault.at("long.md"))
    text = server.get(vault.at("long.md", view="text", page="3"))

    assert len(page.body) < 300_000
    assert "too long to be laid out" in page.text
    assert "Paragraph 5999 " not in page.text
    assert "page 3 of 5" in text.text
    assert "Paragraph 5999 " in server.get(vault.at("long.md", view="text", page="99")).text


def test_the_text_is_the_file(server: Server, vault: Vault) -> None:
    page = server.get(vault.at(SQLITE, view="text")).text
    shown = page.partition('<pre class="whole" tabindex="0">')[2].partition("</pre>")[0]

    assert html.unescape(shown) == (vault.notes / SQLITE).read_text()


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "/etc/passwd",
        "decisions/../../config.toml",
        "link.md",
        "folder/prices.md",
        "",
    ],
)
def test_no_path_leads_out_of_the_folder(server: Server, vault: Vault, path: str) -> None:
    targets = {"link.md": vault.home / "secret", "folder": vault.site}
    for name, target in targets.items():
        (vault.notes / name).symlink_to(target)
    try:
        page = server.get(f"{vault.at('x')}".replace("path=x", f"path={path}"))
    finally:
        for name in targets:
            (vault.notes / name).unlink()

    assert page.status in (400, 404)
    assert (vault.home / "secret").read_text() not in page.text
    assert "root:" not in page.text


def test_two_projects_never_see_each_other(server: Server, vault: Vault) -> None:
    shop, site = server.get(vault.at()), server.get(vault.at(project=vault.site))

    assert titles(site.text) == ["The price list"]
    assert "The price list" not in titles(shop.text)
    assert server.get(vault.at("prices.md")).status == 404
    assert server.get(vault.at(SQLITE, project=vault.site)).status == 404
    page = server.get(vault.at("prices.md", project=vault.site)).text
    assert '<span class="unwritten" title="Not written yet">Use SQLite</span>' in page
    assert not titles(server.get(vault.at(q="secret")).text)


def test_a_directory_that_no_session_worked_in_is_not_looked_into(
    server: Server, vault: Vault
) -> None:
    page, gone = (
        server.get(vault.at(project=vault.unknown)),
        server.get(vault.at(project=Path("/"))),
    )
    note = server.get(vault.at("hidden.md", project=vault.unknown))

    assert {page.status, gone.status, note.status} == {404}
    assert "There is no known project at" in page.text
    assert "Nobody worked here" not in page.text + note.text
    assert str(vault.shop) in page.text, "another one can be chosen"
    known = {path.name for path in (vault.home / "notes").iterdir()}
    server.get(vault.at(project=vault.unknown))
    assert {path.name for path in (vault.home / "notes").iterdir()} == known


def test_an_empty_project_says_what_to_do(server: Server, vault: Vault) -> None:
    page = server.get(vault.at(project=vault.empty)).text

    assert "No notes yet" in page
    assert "interlock note write" in page
    assert "write_note" in page


def test_without_any_session_there_is_no_project_yet(
    empty_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = empty_server.get("/notes")

    assert page.status == 200
    assert "No project yet" in page.text


def test_a_folder_that_cannot_be_read_is_said(server: Server, vault: Vault) -> None:
    folder = vault.empty / ".interlock" / "notes"
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    try:
        page = server.get(vault.at(project=vault.empty))
    finally:
        folder.unlink()

    assert page.status == 200
    assert "cannot be read" in page.text
    assert "No notes yet" not in page.text


def test_broken_settings_and_a_folder_outside_are_said_with_a_way_on(
    server: Server, vault: Vault
) -> None:
    config = vault.empty / ".interlock" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    try:
        config.write_text("[notes\n")
        broken = server.get(vault.at(project=vault.empty))
        session = server.get("/sessions?q=empty")
        config.write_text('[notes]\nfolder = "../site/.interlock/notes"\n')
        outside = server.get(vault.at(project=vault.empty))
    finally:
        config.unlink()

    assert {broken.status, outside.status} == {409}
    assert session.status == 200
    assert "config.toml" in broken.text
    assert "is not in the project" in outside.text
    assert "The price list" not in outside.text
    assert str(vault.shop) in broken.text


def test_a_project_that_is_gone_is_said(server: Server, vault: Vault, tmp_path: Path) -> None:
    shutil.move(vault.empty, tmp_path / "kept")
    try:
        page = server.get(vault.at(project=vault.empty))
    finally:
        shutil.move(tmp_path / "kept", vault.empty)

    assert page.status == 404
    assert "There is no known project at" in page.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[A]]", '<a href="/a?x=1&amp;y">A</a>'),
        ("[[A|words]] and [[A#part]]", '<a href="/a?x=1&amp;y">words</a>'),
        ("![[A]]", '<a href="/a?x=1&amp;y">A</a>'),
        ("[[B]]", '<span class="unwritten" title="Not written yet">B</span>'),
        ("[[C]]", "[[C]]"),
        ("`[[A]]`", "<code>[[A]]</code>"),
        ("\\[[A]]", "[[A]]"),
        ("[[A", "[[A"),
        ("[[1, 2], [3, 4]]", "[[1, 2], [3, 4]]"),
        ("# [[A]]", '<h2><a href="/a?x=1&amp;y">A</a></h2>'),
        ("[[A|<img src=x>]]", "&lt;img src=x&gt;</a>"),
    ],
)
def test_names_in_brackets_are_links_where_they_mean_something(text: str, expected: str) -> None:
    made = note_markdown(text, title="T", links={"A": "/a?x=1&y", "B": ""})

    assert expected in made


def test_a_name_that_goes_on_and_on_is_no_link() -> None:
    """Otherwise brackets that never end would be looked through to the end, each of them."""
    made = note_markdown(f"[[A|{'x' * 1_000}]]", title="", links={"A": "/a"})

    assert "<a" not in made


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["[" * 9_000] * 11),
        "\n".join(["![" * 4_500] * 11),
        "|".join("a" * 1_000) + "\n" + "|".join("-" * 1_000) + "\n" + "|\n" * 45_000,
        "|".join("a" * 20) + "\n" + "|".join("-" * 20) + "\n" + "x\r\n" * 30_000,
    ],
    ids=["brackets", "pictures", "columns", "rows"],
)
def test_what_would_take_long_to_lay_out_is_shown_as_it_was_typed(text: str) -> None:
    made = note_markdown(text, title="", links={})

    assert made.startswith("<pre class=plain>")


def test_a_large_table_and_many_links_are_laid_out() -> None:
    table = "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n" + "|1|2|3|4|5|6|\n" * 1_000
    made = note_markdown(table + "\n" + "see [[A]]\n\n" * 1_000, title="", links={"A": "/a"})

    assert made.count("<tr>") == 1_001
    assert made.count('<a href="/a">') == 1_000
