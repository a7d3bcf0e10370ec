"""A process that delivers is killed at every point at which it can be: everything is there once."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from interlock.app.context import open_app
from interlock.core.session.events import decode_envelope
from interlock.durable.delivery import DELIVER
from tests.crash.killed_executor import KillPoint, kill_points
from tests.crash.test_kill_jobs import CHANGING, run_executor
from tests.delivery_scene import DeliveryScene
from tests.effort import EFFORT
from tests.forge_stub import StubForge
from tests.workspace.git.test_state import run

CHANGING_HERE = (*CHANGING, r"-[0-9a-f]{8}(?=/work)", r"127\.0\.0\.1:\d+")
POINTS = (
    [point for point in kill_points() if point.job == DELIVER.name]
    if EFFORT == "long"
    else [KillPoint(DELIVER.name, step, "unrecorded") for step in ("push", "request", "comment")]
)


class Delivered(msgspec.Struct, frozen=True):
    """What a delivery has left behind, without what differs each time."""

    events: list[str]
    branches: list[str]
    commits: int
    requests: list[tuple[str, str]]
    comments: list[str]
    posts: int


def play(directory: Path, home: Path, point: KillPoint | None, stub: StubForge) -> Delivered:
    home.mkdir(parents=True)
    (home / "machine").write_text("this-machine\n")
    app = open_app(home)
    scene = DeliveryScene(app, directory, stub)
    session = scene.do_work(scene.wish())
    before = len(list(app.reader.links(session)))
    if point:
        assert run_executor(home, point) == -signal.SIGKILL
    assert run_executor(home, None) == 0
    assert app.reader.outbox(limit=10) == []
    links = list(app.reader.links(session))[before:]
    events = [msgspec.json.encode(decode_envelope(link.body).event).decode() for link in links]
    clean = re.compile("|".join(CHANGING_HERE))
    state = scene.state(session)
    delivered = Delivered(
        [clean.sub("*", event) for event in events],
        [clean.sub("*", line) for line in scene.pushed()],
        int(run(scene.remote, "rev-list", "--count", f"{state.order.base}..{state.branch}")),
        [(one.title, clean.sub("*", one.body)) for one in stub.requests.values()],
        [clean.sub("*", one.body) for one in stub.comments],
        sum(method == "POST" for method, _ in stub.log),
    )
    app.close()
    return delivered


@pytest.fixture(params=["github", "gitlab"] if EFFORT == "long" else ["gitlab"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def stub(kind: str) -> Iterator[StubForge]:
    with StubForge("github" if kind == "github" else "gitlab") as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Delivered:
    folder = tmp_path_factory.mktemp("undisturbed")
    with StubForge("github" if kind == "github" else "gitlab") as stub:
        return play(folder, folder / "home", None, stub)


@pytest.mark.slow
def test_an_undisturbed_delivery_leaves_everything_once(undisturbed: Delivered) -> None:
    kinds = [msgspec.json.decode(event)["kind"] for event in undisturbed.events]

    assert kinds == ["delivery_recorded"] * 4 + ["delivery_ended"]
    counts = (len(undisturbed.branches), undisturbed.commits, len(undisturbed.requests))
    assert (*counts, len(undisturbed.comments), undisturbed.posts) == (1, 1, 1, 1, 2)


@pytest.mark.invariant("delivered-once")
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_delivery_that_is_killed_ends_as_if_nothing_had_happened(
    point: KillPoint, undisturbed: Delivered, tmp_path: Path, stub: StubForge
) -> None:
    assert play(tmp_path, tmp_path / "home", point, stub) == undisturbed
