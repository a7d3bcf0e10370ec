"""Copying what belongs to no session: projects, leases, messages."""

from contextlib import closing

import pytest

from interlock.app.admin.store_copy import copy
from interlock.app.context import App
from interlock.core.ids import ProjectId
from interlock.core.project_stream import OutboxMessage, ProjectPlan, RowChange
from interlock.core.refusal import PlainRefusal
from tests.app.admin.store_contents import contents, contents_at, copied, opened, quiet, to
from tests.scenes import refusal_code
from tests.stores import Place

pytestmark = pytest.mark.slow


def test_what_belongs_to_no_session_comes_along(
    app: App, target: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, message = ProjectId("shop"), OutboxMessage("m", "notes/publish", b"x")
    claim = (RowChange("claim", "a", b"ana"),)
    app.log.append_to_project(ProjectPlan(shop, "one", b"{}", 1, claim, outbox=(message,)))
    app.log.acquire_lease("driver", "ana", ttl_ms=60_000)
    copied(app, to(target))
    app.log.append_to_project(ProjectPlan(shop, "two", b"{}", 2, (RowChange("claim", "b", b"bo"),)))

    copied(app, to(target))

    assert contents_at(monkeypatch, target.home, target.url) == contents(app)
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        assert [row.key for row in there.reader.project_rows(shop, ["claim"]).rows] == ["a", "b"]
        assert there.log.acquire_lease("driver", "bo", ttl_ms=60_000).epoch == 2
        there.log.append_to_project(ProjectPlan(ProjectId("another"), "one", b"{}", 1))
    assert refusal_code(copy(app, to(target), quiet)) == "target_not_empty"


def test_a_project_that_went_on_in_the_target_is_not_overwritten(
    app: App, target: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = ProjectId("shop")
    app.log.append_to_project(ProjectPlan(shop, "one", b"{}", 1))
    copied(app, to(target))
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        there.log.append_to_project(ProjectPlan(shop, "two", b"{}", 2))

    refusal = copy(app, to(target), quiet)

    assert isinstance(refusal, PlainRefusal)
    assert refusal.code == "target_not_empty"
    assert f"`{shop}` went on differently there" in refusal.error
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        assert there.log.project_end(shop)[0] == 2
