"""How long somebody waits for a page, in a real browser."""

import shutil
from pathlib import Path

import msgspec
from playwright.sync_api import sync_playwright

from bench.measure import Row
from bench.runs import advance_in, begin, prepared
from bench.serving import serving
from interlock.app.admin.access import load_secret
from interlock.app.context import open_app

STEPS, FORKS = 200, 4
NODES = (10, 10_000)
LOOKS = 10
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def looking(base: Path) -> list[Row]:
    """Nothing where there is no Chromium."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        return []
    home, workspace = base / "looked-home", base / "looked"
    session = _thousand_nodes(home, workspace)
    short, long = (_loop(home, base / f"looped-{nodes}", nodes=nodes) for nodes in NODES)
    first, graph = Row("sessions page in Chromium, visible"), Row("graph of 1,000 nodes, visible")
    few = Row(f"run of {NODES[0]} nodes, visible")
    many = Row(f"run of {NODES[1]:,} nodes, visible", against=few)
    with serving(home, workspace) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        bearer = {"authorization": f"Bearer {load_secret(home).bearer}"}
        page = browser.new_page(extra_http_headers=bearer)
        for _ in range(LOOKS):
            for row, path, shown in (
                (first, "/sessions", "tbody tr"),
                (graph, f"/sessions/{session}/graph", ".graph .n.tip"),
                (few, f"/sessions/{short}", "#outline .here"),
                (many, f"/sessions/{long}", "#outline .here"),
            ):
                row.time(
                    lambda path=path, shown=shown: (
                        page.goto(f"http://127.0.0.1:{port}{path}", wait_until="commit"),
                        page.wait_for_selector(shown, state="visible"),
                    )
                )
        browser.close()
    return [first, graph, few, many]


def _thousand_nodes(home: Path, workspace: Path) -> str:
    """A session with two hundred steps on its path and four other attempts at each."""
    prepared(workspace, steps=STEPS)
    app = open_app(home)
    answered = begin(app, workspace)
    for number in range(STEPS - 1):
        before = answered
        for fork in range(FORKS):
            advance_in(app, before, number * FORKS + fork + STEPS)
        answered = advance_in(app, before, number)
    app.close()
    return answered.session


def _loop(home: Path, workspace: Path, *, nodes: int) -> str:
    """A session with so many nodes, in a loop of ten steps."""
    directory = workspace / ".interlock" / "workflows"
    directory.mkdir(parents=True)
    passes = max(1, nodes // 10)
    body = [{"id": f"part-{n}", "title": f"Part {n}", "prompt": "Do it."} for n in range(10)]
    loop = {"type": "for", "count": passes, "maxIterations": passes}
    steps = [{"id": "each", "type": "loop", "title": "Each", "loop": loop, "body": body}]
    facts = {"id": "line", "name": "A loop", "description": "For measuring", "version": "1.0.0"}
    (directory / "line.json").write_bytes(msgspec.json.encode({**facts, "steps": steps}))
    app = open_app(home)
    answered = begin(app, workspace)
    for number in range(nodes - 1):
        answered = advance_in(app, answered, number)
    app.close()
    return answered.session
