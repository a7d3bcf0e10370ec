"""A result on the command line: shown before it is delivered, delivered, refused with advice."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.sessions import bundle
from tests.cli.conftest import Terminal
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.delivery_scene import DeliveryScene
from tests.forge_stub import StubForge
from tests.unattended_scene import make_repository, order

TOKEN_LIKE = GITHUB_TOKEN


@pytest.fixture
def stub() -> Iterator[StubForge]:
    with StubForge("gitlab") as made:
        yield made


@pytest.fixture
def scene(app: App, tmp_path: Path, stub: StubForge) -> DeliveryScene:
    return DeliveryScene(app, tmp_path, stub)


def test_a_dry_run_shows_every_word_and_then_it_is_done_so(
    scene: DeliveryScene, typed: Terminal
) -> None:
    session = scene.do_work(scene.wish())
    shown = typed("driver", "deliver", session, "--dry-run")
    facts = json.loads(typed("driver", "deliver", session[:12], "--dry-run", "--json").out)
    scene.run_job(session)

    delivered = typed("driver", "deliver", session)

    (request,) = scene.stub.requests.values()
    (comment,) = scene.stub.comments
    assert shown.code == delivered.code == 0, delivered
    for line in (*request.body.strip().splitlines(), *comment.body.strip().splitlines()):
        assert f"    {line}".rstrip() in shown.out
    assert "push: planned, origin: interlock/" in shown.out
    assert "of export.py:\n    Fix the export\n" in shown.out
    assert facts[0]["checked"]["plan"]["comment"] == comment.body
    assert [one["outcome"] for one in facts[0]["parts"]] == ["done", *["planned"] * 3]
    assert delivered.out.startswith("delivered: push origin: interlock/")
    assert "merge_requests/1" in delivered.out
    assert scene.stub.token not in shown.out + json.dumps(facts) + delivered.out
    assert (len(scene.stub.requests), len(scene.stub.comments)) == (1, 1)


@pytest.mark.slow
def test_a_refusal_says_what_to_do_and_is_shown_until_that_is_done(
    scene: DeliveryScene, typed: Terminal
) -> None:
    session = scene.do_work(scene.wish(), files={"export.py": f"key = '{TOKEN_LIKE}'\n"})
    scene.run_job(session)

    refused = typed("driver", "deliver", session)
    status, view = typed("driver", "status"), typed("session", "show", session)
    facts = json.loads(typed("driver", "status", "--json").out)
    accepted = typed("driver", "deliver", session, "--despite-secrets", "--json")

    assert refused.code == 1
    assert "not delivered (refused): check: there may be secrets in it: export.py:1" in refused.err
    assert f"interlock driver deliver {session} --despite-secrets" in refused.err
    assert f"{session}  done, not delivered (refused)" in status.out
    assert f"to try it again: interlock driver deliver {session}" in status.out
    assert "not delivered (refused)" in view.out
    assert [one["session"] for one in facts["undelivered"]] == [session]
    assert (accepted.code, json.loads(accepted.out)["outcome"]) == (0, "delivered")
    assert "not delivered" not in typed("driver", "status").out


def test_what_has_no_result_or_goes_nowhere_is_refused(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    session = order(app, make_repository(tmp_path / "shed"))

    for words in (("driver", "deliver", session), ("driver", "deliver", session, "--dry-run")):
        said = typed(*words)
        assert (said.code, "Its order does not say where" in said.err) == (1, True), said


def test_what_is_archived_is_not_waited_for(scene: DeliveryScene, typed: Terminal) -> None:
    session = scene.do_work(scene.wish(), files={"export.py": f"key = '{TOKEN_LIKE}'\n"})
    scene.run_job(session)

    assert typed("session", "archive", session).code == 0

    assert "not delivered" not in typed("driver", "status").out


def test_what_was_done_elsewhere_is_delivered_there(scene: DeliveryScene, typed: Terminal) -> None:
    session = scene.do_work(scene.wish())
    exported = bundle.export(scene.app, session)
    assert isinstance(exported, bundle.SessionExport)
    copy = bundle.import_as_new(scene.app, exported.document)
    assert isinstance(copy, str)
    of_copy = typed("driver", "deliver", copy)
    (scene.app.home / "machine").write_text("another-machine\n")

    of_other = typed("driver", "deliver", session)

    assert (of_copy.code, of_other.code) == (1, 1)
    assert f"Deliver `{session}`, where it was done" in of_copy.err
    assert "done on another machine" in of_other.err
    assert scene.pushed() == []
