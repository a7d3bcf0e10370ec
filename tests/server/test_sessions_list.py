"""The list of sessions as a program sees it: filters with counts, search, several at once."""

import html
import re
from urllib.parse import urlencode

import pytest

from tests.server.conftest import Staged
from tests.server.server_process import Server

CHIP = re.compile(
    r'<a class="chip"[^>]*?href="([^"]*)"[^>]*>([^<]+?)(?: <span class="num">(\d+)</span>)?</a>'
)
ROW = re.compile(r'<tr id="(ses_[0-9a-f]{16})"')


def chips(page: str) -> dict[str, str]:
    return {name: count for _, name, count in CHIP.findall(page)}


def chip_address(page: str, name: str) -> str:
    return next(html.unescape(href) for href, found, _ in CHIP.findall(page) if found == name)


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        (
            "",
            {
                "all": "6",
                "unfinished": "4",
                "waiting for you": "1",
                "completed": "1",
                "abandoned": "0",
            },
        ),
        ("status=waiting", {"all": "6", "waiting for you": "1", "bundles": "1"}),
        ("project={gated}", {"all": "1", "unfinished": "1", "completed": "0", "bundles": "5"}),
        ("workflow=ship-a-change", {"all": "3", "unfinished": "2", "waiting for you": "1"}),
        ("status=archived", {"archived": "1", "all": "6", "bundles": "1"}),
        ("q=gate", {"all": "2", "unfinished": "2", "archived": "", "gated": "1", "bundles": "1"}),
    ],
)
def test_a_chip_counts_what_it_would_show_beside_the_other_filters(
    server: Server, stage: Staged, query: str, counts: dict[str, str]
) -> None:
    found = chips(
        server.get(f"/sessions?{query.format(gated=stage.project.parent / 'gated')}").text
    )

    assert {name: found[name] for name in counts} == counts


@pytest.mark.parametrize("path", ["/sessions", "/sessions?q=i", "/sessions?workflow=ship-a-change"])
def test_a_chip_leads_to_as_many_rows_as_it_says(server: Server, path: str) -> None:
    page = server.get(path).text

    for name, count in chips(page).items():
        if count and not name.startswith("workflow: "):
            shown = ROW.findall(server.get(chip_address(page, name)).text)
            # The one that is in use leads to the list without it.
            assert len(shown) == int(count) or name == "all", name


def test_a_hit_in_notes_is_shown_and_leads_to_its_step(server: Server, stage: Staged) -> None:
    page = server.get("/sessions?q=PEAK+memory").text
    (session,) = ROW.findall(page)
    (excerpt,) = re.findall(r'<a class="excerpt" href="([^"]+)">(.*?)</a>', page)

    assert session == stage.sessions["waits"]
    assert "<mark>peak</mark> memory 31 MB" in excerpt[1]
    step = server.get(html.unescape(excerpt[0]).partition("#")[0])
    assert step.status == 200
    assert "peak memory 31 MB" in step.text


def test_rows_are_grouped_by_project(server: Server, stage: Staged) -> None:
    page = server.get("/sessions?group=project").text
    groups = re.findall(r'<tr class="group">.*?title="([^"]+)".*?</tr>', page, re.DOTALL)

    assert groups == [str(stage.project.parent / "gated"), str(stage.project)]
    assert len(ROW.findall(page)) == 6
    assert 'class="group"' not in server.get("/sessions").text


def test_several_are_archived_and_brought_back(server: Server, stage: Staged) -> None:
    picked = {f"pick-{stage.sessions[name]}": "on" for name in ("done", "open")}
    gone = {"pick-ses_0000000000000000": "on", "other": "x"}
    done = server.post("/sessions/archive?status=unfinished&after=1-1", {**picked, **gone})

    assert (done.status, done.headers["location"]) == (303, "/sessions?status=unfinished")
    names = ("archived", "done", "open")
    shown = ROW.findall(server.get("/sessions?status=archived").text)
    assert set(shown) == {stage.sessions[name] for name in names}
    server.post("/sessions/archive", {**picked, "to": "list"})
    assert ROW.findall(server.get("/sessions?status=archived").text) == [stage.sessions["archived"]]


def test_the_search_is_there_for_programs(server: Server, stage: Staged) -> None:
    answer = server.get("/api/v2/search?q=PEAK+memory&limit=1").json

    (hit,) = answer["hits"]
    assert answer == {"hits": [hit], "hasMore": False, "notesSinceMs": None}
    assert (hit["kind"], hit["session"]) == ("notes", stage.sessions["waits"])
    assert hit["excerpt"]["match"] == "peak"
    assert server.get("/api/v2/search?q=long+over").json["hits"] == []
    archived = server.get("/api/v2/search?q=long+over&archived=true").json["hits"]
    assert [hit["session"] for hit in archived] == [stage.sessions["archived"]]
    assert server.get("/api/v2/search").status == 400


@pytest.mark.parametrize(
    ("query", "groups", "address"),
    [
        ("", ["Sessions", "Pages", "Actions"], "/sessions/ses_"),
        ("inb", ["Pages"], "/inbox"),
        ("peak memory", ["Sessions"], "/sessions/{waits}?run="),
        ("{open}", ["Sessions"], "/sessions/{open}"),
        ("coding-t", ["Sessions", "Workflows"], "/sessions/{open}?run="),
        ("gated", ["Sessions", "Notes", "Projects"], "/sessions/{attended}"),
        ("nothing like it", [], "/sessions?q=nothing"),
        ("<b>\"'&", [], "/sessions?q="),
    ],
)
def test_the_palette_offers_what_was_meant_first(
    server: Server, stage: Staged, query: str, groups: list[str], address: str
) -> None:
    typed = query.format(**stage.sessions)
    page = server.get(f"/palette?{urlencode({'q': typed})}")
    options = re.findall(r'<a role="option".*?href="([^"]*)"', page.text)

    assert page.status == 200
    assert re.findall(r'role="group" aria-label="(\w+)"', page.text) == groups
    assert html.unescape(options[0]).startswith(address.format(**stage.sessions))
    ids = re.findall(r'id="(option-\d+)"', page.text)
    assert len(ids) == len(set(ids)) == len(options)
    assert "<b>" not in page.text
