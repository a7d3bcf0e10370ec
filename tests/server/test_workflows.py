"""The pages about workflows: what is listed, shown, refused, and that what is shown is true."""

import hashlib
import html
import json
import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from interlock.app.catalogue.workflow_files import list_workflows, workflow_handle
from interlock.app.context import App
from interlock.core.ids import BlobRef, SessionId
from interlock.core.workflow import operators, packs
from interlock.core.workflow.builtins import FEATURES, PASSAGES
from interlock.core.workflow.file_schema import published_schema
from tests.server.flows import HOSTILE_NAME, LINE, Flows, at, flows, server, started, store, write
from tests.server.forms import assert_harmless
from tests.server.server_process import Answer, Server
from tests.server.site_server import SiteServer

__all__ = ["flows", "server", "store"]  # fixtures

ROW = re.compile(r'<a class="main-link" href="(/workflows/[^"]+)"')


def listed(page: Answer) -> list[str]:
    assert page.status == 200, page.text
    return [address.partition("?")[0].rpartition("/")[2] for address in ROW.findall(page.text)]


def shown_lines(page: Answer) -> list[str]:
    """The text of the lines of a file, as a browser has it."""
    found = re.findall(r'<span class="line[^"]*" id="L\d+">(.*?)\n</span>', page.text, re.DOTALL)
    return [html.unescape(line) for line in found]


def pinned_in(store: App, session: str) -> str:
    return store.reader.runs(SessionId(session))[-1].workflow_hash


def test_the_catalogue_says_where_a_workflow_is_from_and_how_much_it_was_used(
    server: Server, flows: Flows
) -> None:
    page = server.get(at("/workflows", project="none"))
    [row] = re.findall(r"<tr>(?:(?!</tr>).)*?/workflows/hello.*?</tr>", page.text, re.DOTALL)

    assert {"hello", "coding-task", "line"} <= set(listed(page))
    assert "asks" not in listed(page), "no project is chosen"
    for told in ("bundled", "learning", "2 sessions", "Two minutes"):
        assert told in row
    assert flows.sessions


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"tag": "learning"}, ["hello"]),
        ({"q": "MY own"}, ["line"]),
        ({"q": "steps after"}, ["line"]),
        ({"source": "user"}, ["line"]),
        ({"q": "<script>"}, []),
    ],
)
def test_the_catalogue_is_filtered_in_its_address(
    server: Server, query: dict[str, str], names: list[str]
) -> None:
    page = server.get(at("/workflows", project="none", **query))

    assert listed(page) == names
    assert "<script>" not in page.text.partition("<main")[2]
    assert names or "No workflow fits" in page.text


def test_the_workflows_of_a_project_are_shown_with_what_they_hide(
    server: Server, flows: Flows
) -> None:
    page = server.get(at("/workflows", project=flows.shop, source="project"))

    assert set(listed(page)) >= {"line", "asks", "odd", "hostile"}
    assert "that of user" in page.text
    assert "1 warning" in page.text


@pytest.mark.parametrize("view", ["/workflows", "/workflows/secret", "/workflows/hello/start"])
@pytest.mark.parametrize("name", ["unknown", "not-there", "shop/../unknown", "shop/.interlock/.."])
def test_an_address_cannot_make_the_console_look_into_just_any_directory(
    server: Server, flows: Flows, view: str, name: str
) -> None:
    asked = flows.shop.parent / name
    page = server.get(at(view, project=os.fspath(flows.shop.parent) + "/" + name))

    assert page.status == 404
    assert f"No session has worked in `{asked}`" in html.unescape(page.text)
    assert "Steps one after the other" not in page.text


def test_a_broken_file_is_listed_and_its_page_leads_to_the_right_line(
    server: Server, flows: Flows
) -> None:
    catalogue = server.get(at("/workflows", project=flows.shop)).text
    [address] = re.findall(r'<a href="([^"]+)">deploy</a>', catalogue)
    page = server.get(html.unescape(address))
    source = server.get(html.unescape(address) + "&tab=source")

    for told in ("condition", "`equal` is not known here", "line 8, column 48", "/steps/1/id"):
        assert told in page.text
    assert 'tab=source#L8"' in page.text
    highlighted = re.findall(r'<span class="line bad" id="L(\d+)">', source.text)
    assert highlighted == ["8", "9"]
    assert '"equal": "short"' in shown_lines(source)[7]


@pytest.mark.parametrize("name", ["deploy", "half"])
def test_what_is_not_valid_cannot_be_started_and_says_why(
    server: Server, flows: Flows, store: App, name: str
) -> None:
    before = store.reader.position()
    for view in (f"/workflows/{name}", f"/workflows/{name}/start"):
        page = server.get(at(view, project=flows.shop)).text
        assert re.search(r"<button[^>]* disabled aria-describedby=\"why-not\">Start</button>", page)
        assert "this file from being a workflow" in page
    fields = {"goal": "Try", "project": str(flows.shop)}

    assert server.post(f"/workflows/{name}/start", fields).status == 409
    assert store.reader.position() == before


def test_a_file_that_ends_too_soon_is_marked_at_its_end(server: Server, flows: Flows) -> None:
    page = server.get(at("/workflows/half", project=flows.shop, tab="source"))

    assert re.findall(r'<span class="line bad" id="L(\d+)">', page.text) == ["2"]


def test_a_hidden_file_can_be_looked_at_but_not_started(
    server: Server, flows: Flows, store: App
) -> None:
    [entry] = list_workflows(store, flows.shop, query="A line").entries
    name = workflow_handle(entry.shadows[0])
    page = server.get(at(f"/workflows/{name}", project=flows.shop))

    assert "My own line" in page.text
    assert "another file with the same id counts instead" in page.text
    assert str(flows.flows / "line.json") in page.text
    assert "Hides" in server.get(at("/workflows/line", project=flows.shop)).text


@pytest.mark.parametrize("name", ["line", "hello"])
def test_source_is_the_file_and_compiled_is_what_the_store_pins(
    server: Server, flows: Flows, store: App, name: str
) -> None:
    """C17: the bytes and the hash are those of the file and of the store."""
    session = flows.sessions[name]
    pinned = pinned_in(store, session)
    [entry] = [one for one in list_workflows(store, flows.shop).entries if one.workflow.id == name]
    path = f"/workflows/{name}"
    source = server.get(at(path, project=flows.shop, tab="source"))
    compiled = server.get(at(path, project=flows.shop, tab="compiled"))
    downloaded = server.get(at(path, project=flows.shop, download="compiled"))
    file = entry.place.path.read_bytes()

    assert "\n".join(shown_lines(source)) == file.decode().rstrip("\n")
    assert server.get(at(path, project=flows.shop, download="source")).body == file
    assert downloaded.body == store.reader.blob(BlobRef(pinned))
    assert f"sha256:{hashlib.sha256(downloaded.body).hexdigest()}" == pinned
    assert pinned in compiled.text
    assert "Runs are pinned to exactly these bytes" in compiled.text
    assert json.loads("\n".join(shown_lines(compiled))) == json.loads(downloaded.body)
    assert downloaded.headers["content-disposition"].startswith("attachment")


def test_a_session_keeps_what_it_was_started_with_when_the_file_changes(
    server: Server, flows: Flows, store: App
) -> None:
    write(flows.flows / "moves.json", {**LINE, "id": "moves", "name": "Before"})
    session = started(store, "moves", "Before it moves", flows.shop)
    before = pinned_in(store, session)
    write(flows.flows / "moves.json", {**LINE, "id": "moves", "name": "Afterwards"})
    used = server.get(at("/workflows/moves", project=flows.shop, tab="used")).text
    pinned = server.get(f"/workflows/moves/pinned/{quote(before)}")

    assert f'href="/sessions/{session}"' in used
    assert "not what the file compiles to now" in used
    assert "<h1>Before</h1>" in pinned.text
    assert before in pinned.text
    assert before not in server.get(at("/workflows/moves", project=flows.shop)).text
    wrong = [f"sha256:{'0' * 64}", "sha256:zz", "etc"]
    assert [server.get(f"/workflows/moves/pinned/{one}").status for one in wrong] == [404] * 3
    assert server.get(f"/workflows/hello/pinned/{quote(before)}").status == 404


def test_an_unknown_id_is_a_page_that_suggests_another(server: Server, flows: Flows) -> None:
    page = server.get("/workflows/codng-task")

    assert page.status == 404
    assert '<a href="/workflows/coding-task">coding-task</a>?' in page.text
    elsewhere = server.get("/workflows/asks")
    assert elsewhere.status == 404
    assert html.escape(at("/workflows/asks", project=flows.shop)) in elsewhere.text
    assert server.get("/workflows/~0123456789abcdef").status == 404


def test_the_preview_shows_the_steps_nested_with_what_the_agent_is_told(server: Server) -> None:
    page = html.unescape(server.get(at("/workflows/coding-task", tab="preview")).text)

    for told in (
        "Loop: for each of `slices`, at most 8 passes",
        'Only when `track` is not "short"',
        "waits for an approval",
        "submits coding_handoff",
        "step brought by routine",
        "Find out what kind of work this is",
        "flowchart TD",
    ):
        assert told in page
    assert page.count('<ol class="outline">') > 3


def test_a_workflow_that_is_called_like_a_page_of_ours_has_a_page(
    server: Server, flows: Flows
) -> None:
    catalogue = server.get(at("/workflows", project=flows.shop, q="From sources")).text
    [address] = ROW.findall(catalogue)

    assert "<h1>From sources</h1>" in server.get(html.unescape(address)).text


def test_names_of_files_that_are_no_text_break_no_page(server: Server, flows: Flows) -> None:
    catalogue = server.get(at("/workflows", project=flows.shop)).text
    [address] = re.findall(r'<a href="([^"]+)">\\udcff.json</a>', catalogue)
    page = server.get(html.unescape(address) + "&tab=source")

    assert page.status == 200
    assert "not UTF-8" in page.text
    assert shown_lines(page)[1] == ' "name": "caf�"}'
    content = server.get(html.unescape(address) + "&download=source").body
    assert content == b'{"id": "latin",\n "name": "caf\xe9"}'


@pytest.mark.parametrize("tab", ["readme", "source", "compiled", "problems", "preview", "used"])
def test_hostile_text_in_every_field_is_shown_as_text(
    server: Server, flows: Flows, tab: str
) -> None:
    has_none = tab in ("problems", "used")
    page = server.get(at("/workflows/hostile", project=flows.shop, tab=tab))

    assert_harmless(page)
    below = page.text.partition('aria-label="Views"')[2]
    assert has_none or "&lt;script&gt;window.pwned=1&lt;/script&gt;" in below


@pytest.mark.parametrize(
    "path", ["/workflows", "/workflows/hostile/start", f"/workflows/{quote(HOSTILE_NAME[:-5])}"]
)
def test_hostile_text_is_harmless_in_lists_forms_and_names(
    server: Server, flows: Flows, path: str
) -> None:
    page = server.get(at(path, project=flows.shop, goal="<script>window.pwned=1</script>"))

    assert_harmless(page)
    assert "window.pwned=1" in page.text


def test_the_built_ins_are_all_there(server: Server) -> None:
    page = html.unescape(server.get("/workflows/builtins").text)

    for name in (*packs.names(), *FEATURES, *PASSAGES):
        assert f"<code>{name}</code>" in page
    for operator in operators.OPERATORS:
        assert f'"{operator}":' in page
    schema = server.get("/workflows/builtins?download=schema")
    assert schema.body == published_schema()


def test_settings_that_cannot_be_used_are_named_on_a_page(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "sources.json").write_text("{")
    with SiteServer(tmp_path / "home") as server:
        pages = [server.get(path) for path in ("/workflows", "/workflows/hello")]

    for page in pages:
        assert page.status == 409
        assert "sources.json` cannot be used" in page.text
        assert "Correct the file" in page.text


def test_the_catalogue_opens_with_the_project_in_which_work_was_done_last(
    server: Server, flows: Flows
) -> None:
    page = html.unescape(server.get("/workflows").text)
    [chosen] = re.findall(r'<option value="(/[^"]*)" selected>', page)

    assert chosen == re.findall(r'<option value="(/[^"]*)"', page)[0]
    assert f"what an agent can start in {chosen}." in page
    assert listed(server.get("/workflows")) == listed(server.get(at("/workflows", project=chosen)))
    assert "choose the project above" in server.get(at("/workflows", project="none")).text
    assert flows.sessions
