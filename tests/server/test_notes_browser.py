"""The pages about notes in a real browser."""

import pytest
from playwright.sync_api import Browser, expect

from interlock.app.context import open_app
from interlock.core.ids import SessionId
from tests.server.browser_visitor import Visitor
from tests.server.server_process import Server
from tests.server.stage import Stage
from tests.server.vault import Vault, server, vault

__all__ = ["server", "vault"]  # fixtures

SQLITE = "decisions/ADR-001-use-sqlite.md"
NARROW = 390


def test_from_all_projects_by_a_search_to_a_note_and_along_its_links(visitor: Visitor) -> None:
    page = visitor.go("/notes")
    expect(page.get_by_role("region")).to_have_count(2)
    page.get_by_label("Search all notes").fill("one machine writes")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("region")).to_have_count(1)
    projects = page.get_by_role("navigation", name="Projects")
    projects.get_by_role("link", name="site").click()
    expect(page.get_by_role("heading", name="No note fits")).to_be_visible()
    projects.get_by_role("link", name="shop").click()
    expect(projects.locator("[aria-current]")).to_have_text("shop")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "q=one+machine+writes" in page.url, "the words go along"
    page.get_by_role("link", name="Say why").click()
    expect(page.locator("tbody")).to_contain_text("matches all")
    page.get_by_role("link", name="Use SQLite").click()

    expect(page.locator("h1")).to_have_text("Use SQLite")
    graph = page.get_by_role("group", name="Notes around this one")
    expect(graph.locator("a.n[aria-current]")).to_contain_text("Use SQLite")
    assert graph.locator("svg path.edge").count() == 6 + 1  # one between two neighbours
    page.locator("article").get_by_role("link", name="The event log").first.click()
    expect(page.locator("h1")).to_have_text("The event log")
    page.locator(".graph").get_by_role("link", name="Use SQLite").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Use SQLite")
    page.get_by_role("link", name="Text", exact=True).click()
    expect(page.locator("pre.whole")).to_contain_text("contradicts [[Use PostgreSQL]]")
    assert visitor.complaints == []


def test_nothing_in_the_drawing_lies_on_anything_else(visitor: Visitor, vault: Vault) -> None:
    page = visitor.go(vault.at("design/event-log.md", depth="2"))
    places = page.locator(".graph .n").evaluate_all(
        "all => all.map(a => `${a.offsetLeft}/${a.offsetTop}`)"
    )

    assert len(places) == len(set(places)) > 4


def test_hostile_notes_do_nothing_and_everybody_can_read_every_page(
    visitor: Visitor, vault: Vault
) -> None:
    boxes = "- [x] Read it\n- [ ] Write it\n\n<!-- not seen -->\n"
    vault.write("boxes.md", boxes, project=vault.site)
    paths = [
        "/notes",
        "/notes?q=pwned",
        vault.at("boxes.md", project=vault.site),
        vault.at(),
        vault.at(q="event", explain="yes"),
        vault.at(project=vault.empty),
        vault.at(project=vault.unknown),
        *(vault.at(path) for path in (SQLITE, "hostile.md", "broken-front.md")),
        vault.at("hostile.md", view="text"),
        vault.at("no such note"),
    ]

    assert visitor.faults(*paths) == {}
    page = visitor.go(vault.at("boxes.md", project=vault.site))
    done = page.get_by_role("checkbox", name="done", exact=True)
    expect(done).to_be_checked()
    expect(done).to_be_disabled()
    expect(page.get_by_role("checkbox", name="not done")).not_to_be_checked()
    expect(page.locator("article")).not_to_contain_text("not seen")


def test_a_note_that_is_written_in_any_project_is_seen_on_the_page_of_all(
    visitor: Visitor, vault: Vault
) -> None:
    page = visitor.go("/notes")
    file = vault.write(
        "seen-at-once.md", "---\ntitle: Seen at once\n---\ntext\n", project=vault.site
    )
    expect(page.get_by_role("link", name="Seen at once")).to_be_visible(timeout=4_000)
    file.unlink()
    expect(page.get_by_role("link", name="Seen at once")).to_have_count(0, timeout=4_000)


def test_the_columns_of_a_table_are_aligned_within_the_content_policy(
    visitor: Visitor, vault: Vault
) -> None:
    table = "| what | ms |\n|:-----|---:|\n| advance | 3 |\n"
    file = vault.write("table.md", table)
    app = open_app(vault.home)
    agent = Stage(app, vault.shop)
    begun = agent.start("hello", "Measure it")
    session = SessionId(begun["introduction"]["session"])
    step = app.reader.runs(session)[-1].tip
    agent.go_on(begun, f"## What I did\n\nMeasured.\n\n{table}")
    app.close()
    visitor.complaints.clear()

    for path in (vault.at("table.md"), f"/sessions/{session}?node={step}"):
        cell = visitor.go(path).get_by_role("cell", name="3", exact=True)
        assert cell.evaluate("it => getComputedStyle(it).textAlign") == "right", path
    assert visitor.complaints == []
    file.unlink()


def test_a_file_that_is_changed_by_hand_is_seen_without_a_reload(
    visitor: Visitor, vault: Vault
) -> None:
    file = vault.write("watched.md", "# Watched\n\nBefore.\n")
    page = visitor.go(vault.at("watched.md"))
    expect(page.locator("article")).to_contain_text("Before.")

    file.write_text("# Watched\n\nAfterwards, with [[Use SQLite]].\n")
    expect(page.locator("article")).to_contain_text("Afterwards", timeout=4_000)
    expect(page.locator(".graph")).to_contain_text("Use SQLite")
    file.unlink()
    expect(page.locator("h1")).to_contain_text("There is no note", timeout=4_000)
    file.write_text("# Watched\n\nIt is back.\n")
    expect(page.locator("article")).to_contain_text("It is back.", timeout=4_000)


def test_a_note_reads_the_same_without_scripts(
    chromium: Browser, server: Server, vault: Vault
) -> None:
    with Visitor(chromium, server, java_script_enabled=False) as visitor:
        page = visitor.go(vault.at())
        page.get_by_role("link", name="Use SQLite").click()
        page.wait_for_load_state()  # with the stylesheet, which lays out the columns
        shown = page.locator("main").inner_text()
        boxes = page.locator(".graph a.n").evaluate_all("all => all.map(a => a.offsetLeft)")

    assert "One file on a local disk" in shown
    assert len(set(boxes)) == 3, "three columns"


@pytest.mark.parametrize("path", ["/notes", "/notes?q=event&explain=yes", "/sessions"])
def test_on_a_narrow_screen_nothing_of_a_list_is_cut_off(visitor: Visitor, path: str) -> None:
    visitor.page.set_viewport_size({"width": NARROW, "height": 860})
    page = visitor.go(path)

    expect(page.locator("tbody tr").first.locator("time")).to_be_visible()
    right = page.locator("tbody td").evaluate_all(
        "all => Math.max(...all.map(cell => cell.getBoundingClientRect().right))"
    )
    assert right <= NARROW


@pytest.mark.parametrize("depth", ["1", "2"])
def test_on_a_narrow_screen_the_drawing_begins_with_the_note_and_shows_that_it_scrolls(
    visitor: Visitor, vault: Vault, depth: str
) -> None:
    visitor.page.set_viewport_size({"width": NARROW, "height": 860})
    page = visitor.go(vault.at(SQLITE, depth=depth))
    graph = page.locator(".graph.around")
    seen = graph.bounding_box()
    middle = graph.locator("[aria-current]").bounding_box()

    assert seen is not None
    assert middle is not None
    off = middle["x"] + middle["width"] / 2 - (seen["x"] + seen["width"] / 2)
    assert abs(off) < 5
    assert graph.evaluate("it => it.scrollWidth > it.clientWidth && it.scrollLeft > 0")
