"""Now: what runs and what waits are answered on the first screen, by facts, as they happen."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Locator, Page, expect

from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.workspace.machine import clients
from interlock.workspace.machine.processes import Process
from tests.server.browser_visitor import Visitor
from tests.server.forms import SignedIn
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE, Stage, project_at
from tests.server.test_approvals import Earlier, asking
from tests.sessions import begin_recorded

MINUTE_MS = 60_000
PROJECTS = ("billing", "shop", "ingest", "mobile", "infra")
MODULES: dict[str, Any] = {
    "id": "modules",
    "type": "loop",
    "title": "Modules",
    "loop": {"type": "forEach", "items": "modules", "maxIterations": 500},
    "body": [{"id": "port", "title": "Port it", "prompt": "Port {{currentItem}}."}],
}


def write_workflow(project: Path, name: str, *steps: dict[str, Any]) -> None:
    document = {"id": name, "name": name, "description": "For Now", "version": "1.0.0"}
    path = project / ".interlock" / "workflows" / f"{name}.json"
    path.write_bytes(msgspec.json.encode(document | {"steps": steps}))


def stage_of(app: App, project: Path, behind_min: int) -> Stage:
    earlier = Earlier(app, behind_min * MINUTE_MS)
    return Stage(msgspec.structs.replace(app, clock=earlier), project)


def fill(home: Path, root: Path) -> dict[str, str]:
    """Fifty sessions in five projects. The ones that a test asks for, by what is to be seen."""
    projects = [project_at(root / name) for name in PROJECTS]
    app = open_app(home)
    seen: dict[str, Any] = {}
    for number in range(44):
        behind = (1, 3, 40, 90)[number % 4]
        stage = stage_of(app, projects[number % 5], behind)
        seen[f"other-{number}"] = stage.start("ship-a-change", f"Ordinary work {number}")
    seen["stuck"] = answer = stage_of(app, projects[0], 9).start("hello", "Fix the flaky test")
    for _ in range(3):
        answer = stage_of(app, projects[0], 1).go_on(answer, "")
    write_workflow(projects[1], "port", MODULES)
    ported = stage_of(app, projects[1], 2)
    seen["loop"] = answer = ported.start("port", "Port it all", context={"modules": ["a", "b"]})
    words = f"## Done\n\nRead it. Ported {HOSTILE[:31]} and **all** of its tests"
    ported.go_on(
        answer, words, artifacts=[{"kind": "gap", "severity": "warning", "summary": "No docs"}]
    )
    write_workflow(projects[2], "short", MODULES["body"][0])
    ended = stage_of(app, projects[2], 30)
    seen["finished"] = answer = ended.start("short", "Look around", context={"currentItem": "it"})
    ended.go_on(answer, "Improved it.")
    gated = root / "gated"
    gated.mkdir()
    opt_in(gated, "standard")
    seen["attended"] = {
        "introduction": {
            "session": begin_recorded(app, gated, Conversation("claude-code", "talk")).session
        }
    }
    app.close()
    for goal, minutes in (("Merge the ledger", 45), ("Drop the old table", 600)):
        seen[goal], _ = asking(home, projects[3], goal, timeoutMinutes=minutes)
    return {name: answer["introduction"]["session"] for name, answer in seen.items()}


class Office:
    def __init__(self, server: Server, sessions: dict[str, str], root: Path) -> None:
        self.server, self.sessions, self.root = server, sessions, root


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    root = tmp_path_factory.mktemp("office")
    sessions = fill(root / "home", root)
    with SiteServer(root / "home") as server:
        yield Office(server, sessions, root)


@pytest.fixture(scope="module")
def server(office: Office) -> Server:
    return office.server


def line(page: Page, office: Office, name: str) -> Locator:
    return page.locator(f"#agent-{office.sessions[name]}")


def band(page: Page, name: str) -> Locator:
    return page.locator(f'section[aria-labelledby="{name}"]')


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_what_runs_and_what_waits_is_on_the_first_screen(
    visitor: Visitor, office: Office, width: int, height: int
) -> None:
    visitor.page.set_viewport_size({"width": width, "height": height})
    page = visitor.go("/now")

    tally = page.locator(".tally")
    expect(tally).to_contain_text("2 need you")
    expect(tally).to_contain_text("25 running")
    expect(tally).to_contain_text("22 idle")
    expect(tally).to_contain_text("1 finished")
    for link in tally.locator("a").all():
        expect(link).to_be_in_viewport()
    needs = band(page, "needs").locator(".line")
    expect(needs).to_have_count(2)
    expect(needs.nth(0)).to_contain_text("Merge the ledger")
    expect(needs.nth(0)).to_contain_text("mobile @ main")
    expect(needs.nth(0)).to_contain_text(re.compile(r"4[45]:\d\d left"))
    stuck = band(page, "running").locator(".line").nth(0)
    expect(stuck).to_have_id(f"agent-{office.sessions['stuck']}")
    for shown in (needs.nth(0), needs.nth(1), stuck):
        expect(shown).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.pwned") is None
    assert visitor.complaints == []


def test_a_line_says_facts_with_their_thresholds(visitor: Visitor, office: Office) -> None:
    page = visitor.go("/now")

    for name, texts in {
        "stuck": [
            "Fix the flaky test",
            "billing @ main",
            "blocked",
            "The last 3 attempts were not accepted",
            "on this step for 9 min",
        ],
        "loop": ["1 of 1 · pass 2 of 2", "all of its tests", "1 open gap", "no hooks"],
        "attended": ["Session without a run", "claude-code", "gate heard from"],
        "finished": ["completed", "ingest @ main"],
        "other-42": ["running", "idle", "last activity 40 min ago"],
    }.items():
        for text in texts:
            expect(line(page, office, name)).to_contain_text(text)
    expect(band(page, "idle").locator(".line")).to_have_count(10)
    expect(band(page, "idle").get_by_role("link", name="12 more")).to_be_visible()


def test_no_text_lies_over_another(visitor: Visitor) -> None:
    page = visitor.go("/now")
    page.locator(".line .step > .num").evaluate_all(
        "all => all.forEach(one => one.textContent = '125 of 126 · pass 161 of at most 200')"
    )
    for width in (1024, 1199, 1280):
        page.set_viewport_size({"width": width, "height": 768})
        spilled = page.locator(".line > div > span").evaluate_all(
            "all => all.filter(one => one.getBoundingClientRect().right"
            " > one.parentElement.getBoundingClientRect().right + 1"
            " || (one.scrollWidth > one.clientWidth && getComputedStyle(one).overflow != 'hidden'))"
            ".map(one => one.outerHTML)"
        )
        assert spilled == [], width


def test_without_scripts_a_line_says_since_when(office: Office) -> None:
    text = re.sub(r"<[^>]*>", "", SignedIn(office.server).get("/now").text)

    for words in ("on this step", "waiting"):
        assert re.search(rf"{words} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC", text)


def test_a_page_that_nothing_changed_is_the_same_again(office: Office) -> None:
    signed_in = SignedIn(office.server)

    first, second = (
        re.sub(r'(data-clock="|since=)\d+', "", signed_in.get("/now").text) for _ in range(2)
    )

    assert first == second


def test_who_begins_and_who_goes_on_is_seen_at_once(visitor: Visitor, office: Office) -> None:
    page = visitor.go("/now")
    app = open_app(office.server.home)
    agent = Stage(app, office.root / "infra")
    answer = agent.start("ship-a-change", "Something new")
    name = answer["introduction"]["session"]

    expect(page.locator(f"#agent-{name}")).to_contain_text("1 of 6", timeout=2_000)
    agent.go_on(answer, "Read it all. It is easy.")
    expect(page.locator(f"#agent-{name}")).to_contain_text("It is easy.", timeout=2_000)
    app.log.delete(SessionId(name))
    app.close()
    assert visitor.complaints == []


def test_what_no_event_tells_of_is_looked_up_now_and_then(visitor: Visitor, office: Office) -> None:
    app = open_app(office.server.home)
    conversation = Conversation("claude-code", "soon over")
    session = begin_recorded(app, office.root / "gated", conversation).session
    visitor.page.clock.install()
    agent = visitor.go("/now").locator(f"#agent-{session}")
    expect(agent).to_contain_text("active")
    process = Process(2**22 + 1, "then", "claude")
    clients.remember(office.server.home, process, "claude-code", conversation.id, now_ms=0)

    visitor.page.clock.run_for(16_000)

    expect(agent).to_contain_text("disconnected")
    app.log.delete(session)
    app.close()
