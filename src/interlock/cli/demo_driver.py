"""`interlock demo --driver`: an unattended run on a throw-away repository, offline, killed once."""

import signal
from pathlib import Path

from interlock.app.context import App, open_app
from interlock.app.unattended import orders, status
from interlock.app.unattended.orders import OrderedWork, OrderRequest
from interlock.cli.demo_stage import (
    MATERIAL,
    TEST,
    follow_work,
    greeting,
    make_repository,
    run_git,
    running_driver,
    running_server,
    wait_until_over,
)
from interlock.cli.terminal import print_lines
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.unattended.journal import Entry, ModelAnswered, ToolStarted
from interlock.core.unattended.order import UnattendedState, dollars

WORKFLOW = "fix-greeting"
KILL_DURING = "sleep 3"
"""The command during which the driver is killed."""


def play_unattended(directory: Path) -> None:
    """Play it, and print what happens. Everything is in `directory`, which is removed later."""
    home, repository = directory / "home", directory / "greeting"
    script = MATERIAL / "script.json"
    workflow = (MATERIAL / f"{WORKFLOW}.json").read_text()
    files = {
        "greet.sh": greeting("${2}"),
        "test.sh": TEST,
        f".interlock/workflows/{WORKFLOW}.json": workflow,
    }
    make_repository(repository, files, "A greeting that greets nobody")
    home.mkdir(mode=0o700)
    own_script = directory / "script.json"
    own_script.write_bytes(script.read_bytes())
    settings = f'[driver]\nmodel = "scripted:{own_script}"\nautostart = false\n'
    (home / "config.toml").write_text(settings)
    app = open_app(home)
    try:
        with running_server(home) as server:
            print_lines(f"A server: {server.url}. A repository: {repository}")
            _watch(app, home, repository)
    finally:
        app.close()


def _watch(app: App, home: Path, repository: Path) -> None:
    request = OrderRequest(WorkflowId(WORKFLOW), "Make the test pass", repository)
    ordered = orders.order_work(app, request, place="in the demo")
    assert isinstance(ordered, OrderedWork), ordered
    print_lines(f"Ordered: “{request.goal}”, session {ordered.session}", "")
    with running_driver(home) as driver:
        follow_work(app, ordered.session, lambda entry: _is_kill_point(app, ordered.session, entry))
        print_lines("", f"kill -9 {driver.pid}: the driver dies while a command runs", "")
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    with running_driver(home):
        follow_work(app, ordered.session, lambda _: False)
        state = wait_until_over(app, ordered.session)
    _print_end(state, repository)


def _print_end(state: UnattendedState, repository: Path) -> None:
    assert state.outcome == "success", state.detail
    spent, cost = state.spent, dollars(state.spent.usage.cost_micros or 0)
    shown = run_git(repository, "show", "--stat", "--format=%h %s", state.branch)
    print_lines(
        "",
        f"Done: {state.summary}",
        f"{spent.turns} turns, {spent.usage.tokens:,} tokens, {cost} (of a model that plays a"
        f" script); tools ran at the level `{state.level}` of the sandbox.",
        "",
        f"On the branch {state.branch}, and nowhere else:",
        *shown.splitlines(),
    )


def _is_kill_point(app: App, session: SessionId, entry: Entry) -> bool:
    if not (isinstance(entry, ToolStarted) and entry.name == "Bash"):
        return False
    answers = [
        row.entry.message
        for row in status.turns_of(app, session)
        if isinstance(row.entry, ModelAnswered)
    ]
    return any(KILL_DURING in call.arguments for call in answers[-1].calls)
