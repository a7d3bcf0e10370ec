"""A result is delivered once, as it was agreed, or not at all and with the reason."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App
from interlock.app.unattended.delivery import DeliveryPreview, deliver_work, preview_delivery
from interlock.app.unattended.forge_settings import open_forge
from interlock.app.unattended.orders import list_active, list_undelivered
from interlock.core.ids import SessionId
from interlock.core.session.delivery_texts import marker_of
from interlock.core.unattended.delivery import DeliveryState
from interlock.core.unattended.order import DeliveryWish, UnattendedState
from interlock.durable import delivery
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.delivery_scene import VERDICT, DeliveryScene, handoff
from tests.forge_stub import Fault, StubForge
from tests.workspace.git.test_state import run

pytestmark = pytest.mark.slow

KINDS = ("github", "gitlab")
TOKEN_LIKE = GITHUB_TOKEN


@pytest.fixture
def stub(request: pytest.FixtureRequest) -> Iterator[StubForge]:
    with StubForge(getattr(request, "param", "gitlab")) as made:
        yield made


at_each_forge = pytest.mark.parametrize("stub", KINDS, indirect=True)


@pytest.fixture
def scene(app: App, tmp_path: Path, stub: StubForge) -> DeliveryScene:
    return DeliveryScene(app, tmp_path, stub)


def outcomes(state: DeliveryState) -> dict[str, str]:
    return {one.part: one.outcome for one in state.records}


@pytest.mark.both_stores
@at_each_forge
def test_a_result_becomes_a_branch_a_draft_request_and_a_comment(scene: DeliveryScene) -> None:
    session = scene.do_work(scene.wish())
    assert [one for one, _ in list_undelivered(scene.app)] == [session]

    delivered = scene.run_job(session)

    state = scene.state(session)
    assert delivered.outcome == "delivered"
    assert outcomes(delivered) == dict.fromkeys(("check", "push", "request", "comment"), "done")
    assert scene.pushed() == [f"{state.branch} {state.commit}"]
    (request,) = scene.stub.requests.values()
    assert request.title.removeprefix("Draft: ") == "Fix the export"
    assert (request.is_draft, request.source_branch) == (True, state.branch)
    assert request.target_branch == "main"
    assert "- Count rows first" in request.body
    assert marker_of(session) in request.body
    (comment,) = scene.stub.comments_on(request.number)
    assert comment.startswith("**Review: minor**")
    assert "`export.py:1`: A name" in comment
    urls = {one.part: one.url for one in delivered.records}
    assert (bool(urls["request"]), bool(urls["comment"])) == (True, True)
    assert list_undelivered(scene.app) == list_active(scene.app) == []


FAULTS: tuple[Fault, ...] = ("500", "before", "after")
CALLS = (
    ("GET", r"(pulls|merge_requests)\?"),
    ("POST", r"(pulls|merge_requests)$"),
    ("GET", r"/user$"),
    ("GET", r"(comments|notes)\?"),
    ("POST", r"(comments|notes)$"),
)


# Both forges take the same path here; tests/workspace/outside/forges has the faults of each.
FAILED_CALLS = [
    (KINDS[number % 2], call, how) for number, (call, how) in enumerate(product(CALLS, FAULTS))
]


@pytest.mark.invariant("delivered-once")
@pytest.mark.parametrize(("stub", "call", "how"), FAILED_CALLS, indirect=["stub"])
def test_whatever_fails_once_everything_is_there_once(
    scene: DeliveryScene,
    call: tuple[str, str],
    how: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "WAIT_SECONDS_MAX", 0)
    session = scene.do_work(scene.wish())
    scene.stub.fail_once(*call, how)

    delivered = scene.run_job(session)

    assert delivered.outcome == "delivered", delivered
    assert len(scene.pushed()) == 1
    assert len(scene.stub.requests) == 1
    assert len(scene.stub.comments) == 1
    assert len([one for one in scene.stub.log if one[0] == "POST"]) <= 3, "and one was not counted"


@pytest.mark.invariant("delivered-once")
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("program", ["upload-pack", "receive-pack"])
def test_a_remote_that_is_away_once_has_the_branch_once(
    scene: DeliveryScene, tmp_path: Path, program: str, *, is_done: bool
) -> None:
    flaky, fell = tmp_path / "flaky", tmp_path / "fell"
    work = f'git-{program} "$@";' if is_done else ""
    flaky.write_text(
        f'#!/bin/sh\n[ -e {fell} ] || {{ touch {fell}; {work} exit 1; }}\nexec git-{program} "$@"\n'
    )
    flaky.chmod(0o755)
    session = scene.do_work(scene.wish())
    run(scene.repository, "config", f"remote.origin.{program.replace('-', '')}", str(flaky))

    delivered = scene.run_job(session)

    assert fell.exists()
    assert delivered.outcome == "delivered", delivered
    assert len(scene.pushed()) == len(scene.stub.requests) == len(scene.stub.comments) == 1


@pytest.mark.both_stores
@at_each_forge
@pytest.mark.invariant("delivered-once")
def test_delivered_again_everything_is_found_and_nothing_made(scene: DeliveryScene) -> None:
    session = scene.do_work(scene.wish())
    first = scene.run_job(session)
    wanted = deliver(scene, session)

    again = scene.run_job(session)

    assert wanted.job != first.job
    assert (again.outcome, again.records) == (first.outcome, first.records)
    assert (len(scene.stub.requests), len(scene.stub.comments)) == (1, 1)


def deliver(scene: DeliveryScene, session: SessionId, **options: Any) -> DeliveryState:
    """Want it again. Nobody runs jobs here."""
    app = msgspec.structs.replace(scene.app, waits_for_jobs=False)
    state = deliver_work(app, session, place="in a test", **options)
    assert isinstance(state, UnattendedState), state
    return scene.delivery(session)


def test_a_secret_in_the_diff_is_blocked_with_its_place_until_the_user_accepts_it(
    scene: DeliveryScene,
) -> None:
    session = scene.do_work(scene.wish(), files={"export.py": f"one\ntoken = '{TOKEN_LIKE}'\n"})

    refused = scene.run_job(session)

    assert (refused.outcome, outcomes(refused)) == ("refused", {"check": "refused"})
    assert "export.py:2 (github-pat)" in refused.detail
    assert f"interlock driver deliver {session} --despite-secrets" in refused.detail
    assert TOKEN_LIKE not in refused.detail
    assert (scene.pushed(), scene.stub.requests, scene.stub.comments) == ([], {}, [])
    deliver(scene, session)
    assert scene.run_job(session).outcome == "refused", "it has to be said"
    deliver(scene, session, accepts_secrets=True)
    assert scene.run_job(session).outcome == "delivered"
    assert len(scene.pushed()) == 1


def move_branch(scene: DeliveryScene, session: SessionId) -> None:
    run(Path(scene.state(session).worktree), "commit", "-q", "--allow-empty", "-m", "late")


def forge_link(scene: DeliveryScene, session: SessionId) -> None:
    Path(scene.state(session).worktree, ".git").write_text("gitdir: /nowhere\n")


def take_remote_branch(scene: DeliveryScene, session: SessionId) -> None:
    run(scene.repository, "push", "-q", "origin", f"main:{scene.state(session).branch}")


def refuse_at_remote(scene: DeliveryScene, _: SessionId) -> None:
    hook = scene.remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)


def lose_remote(scene: DeliveryScene, _: SessionId) -> None:
    run(scene.repository, "remote", "rename", "origin", "upstream")


def forget_forge(scene: DeliveryScene, _: SessionId) -> None:
    (scene.app.home / "config.toml").write_text("")


def revoke_token(scene: DeliveryScene, _: SessionId) -> None:
    scene.stub.token = "another"


@pytest.mark.parametrize("stub", ["github"], indirect=True)
@pytest.mark.parametrize(
    ("happens", "part", "why"),
    [
        (move_branch, "check", "HEAD is not"),
        (forge_link, "check", "leads to another repository"),
        (lose_remote, "check", "has no remote `origin`"),
        (forget_forge, "check", "knows no forge `ours`. Write `[forges.ours]`"),
        (take_remote_branch, "push", "stands at"),
        (refuse_at_remote, "push", "origin does not take it: [remote rejected]"),
        (revoke_token, "request", "401"),
    ],
)
def test_what_is_not_as_it_was_agreed_is_refused_and_ends_it(
    scene: DeliveryScene,
    happens: Callable[[DeliveryScene, SessionId], None],
    part: str,
    why: str,
) -> None:
    session = scene.do_work(scene.wish())
    happens(scene, session)

    refused = scene.run_job(session)

    assert refused.outcome == "refused"
    assert refused.detail.startswith(f"{part}: ")
    assert why in refused.detail
    assert outcomes(refused)[part] == "refused"
    assert (scene.stub.requests, scene.stub.comments) == ({}, [])
    assert [one for one, _ in list_undelivered(scene.app)] == [session]


def test_a_worktree_that_was_cleaned_up_is_not_needed(scene: DeliveryScene) -> None:
    session = scene.do_work(scene.wish())
    run(scene.repository, "worktree", "remove", scene.state(session).worktree)

    assert scene.run_job(session).outcome == "delivered"


def test_a_file_that_nobody_has_named_is_not_pushed(scene: DeliveryScene) -> None:
    files = {"export.py": "1\n", "left-over.txt": "x\n"}
    session = scene.do_work(scene.wish(), files=files, artifacts=(handoff("export.py"),))

    refused = scene.run_job(session)

    assert "files that the hand-off does not name: left-over.txt" in refused.detail
    assert scene.pushed() == []


@at_each_forge
def test_a_request_that_was_closed_meanwhile_is_not_commented_on(scene: DeliveryScene) -> None:
    number = scene.stub.open_merge_request().number
    session = scene.do_work(scene.wish("comment", number=number))
    scene.stub.close(number)

    skipped = scene.run_job(session)

    assert (skipped.outcome, skipped.detail) == ("skipped", "comment: it was closed meanwhile")
    assert outcomes(skipped) == {"check": "done", "comment": "skipped"}
    assert scene.stub.comments == []
    assert list_undelivered(scene.app) == []


@at_each_forge
def test_a_review_is_a_comment_and_nothing_else(scene: DeliveryScene) -> None:
    number = scene.stub.open_merge_request().number
    scene.stub.add_comment(number, "Please look", author="ana")
    session = scene.do_work(
        scene.wish("comment", number=number), artifacts=(VERDICT,), is_read_only=True
    )

    assert scene.run_job(session).outcome == "delivered"

    assert scene.pushed() == []
    assert [text[:11] for text in scene.stub.comments_on(number)] == ["Please look", "**Review: m"]


def test_git_alone_is_enough_for_a_push(scene: DeliveryScene) -> None:
    (scene.app.home / "config.toml").write_text("")
    session = scene.do_work(DeliveryWish(("push",)))

    assert scene.run_job(session).outcome == "delivered"
    assert (len(scene.pushed()), scene.stub.log) == (1, [])


def test_a_forge_that_stays_away_fails_the_delivery_and_it_can_be_tried_again(
    scene: DeliveryScene,
) -> None:
    session = scene.do_work(scene.wish())
    for _ in range(8):
        scene.stub.fail_once("POST", r"(pulls|merge_requests)$", "500")

    failed = scene.run_job(session)

    assert (failed.outcome, outcomes(failed)) == ("failed", {"check": "done", "push": "done"})
    assert f"`interlock driver deliver {session}` tries it again" in failed.detail
    deliver(scene, session)
    assert scene.run_job(session).outcome == "delivered"
    assert (len(scene.pushed()), len(scene.stub.requests)) == (1, 1)


def test_what_is_shown_beforehand_is_what_is_then_done_and_showing_it_changes_nothing(
    scene: DeliveryScene,
) -> None:
    session = scene.do_work(scene.wish())
    position = scene.app.reader.position()

    preview = preview_of(scene, session)

    assert scene.app.reader.position() == position
    assert (scene.pushed(), scene.stub.requests, scene.stub.comments) == ([], {}, [])
    assert {method for method, _ in scene.stub.log} <= {"GET"}
    planned = dict.fromkeys(("push", "request", "comment"), "planned")
    assert {one.part: one.outcome for one in preview.parts} == {"check": "done", **planned}
    delivered = scene.run_job(session)
    plan, checked = preview.checked.plan, preview.checked
    (request,) = scene.stub.requests.values()
    assert (checked.files, checked.secrets, checked.objection) == (("export.py",), (), "")
    assert checked.message.strip() == "Fix the export"
    assert (plan.title, plan.description) == (request.title.removeprefix("Draft: "), request.body)
    assert [plan.comment] == scene.stub.comments_on(request.number)
    after = preview_of(scene, session)
    shown = [(one.part, one.outcome, one.detail, one.url) for one in after.parts]
    recorded = [(one.part, one.outcome, one.detail, one.url) for one in delivered.records]
    assert shown == recorded, "what is there is shown as it was recorded"


REFUSED_FILES = {
    "secrets in it: export.py:1 (github-pat)": {"export.py": f"token = '{TOKEN_LIKE}'\n"},
    "need one: a.bin": {"a.bin": "x", ".gitattributes": "*.bin filter=large\n"},
}


@pytest.mark.parametrize("objection", REFUSED_FILES)
def test_what_would_be_refused_is_shown_beforehand(scene: DeliveryScene, objection: str) -> None:
    run(scene.repository, "config", "filter.large.clean", "sha256sum")
    session = scene.do_work(scene.wish(), files=REFUSED_FILES[objection])
    preview, refused = preview_of(scene, session), scene.run_job(session)

    assert [(one.part, one.outcome) for one in preview.parts] == [("check", "refused")]
    assert preview.checked.objection in refused.detail
    assert objection in preview.checked.objection


def preview_of(scene: DeliveryScene, session: SessionId) -> DeliveryPreview:
    previews = preview_delivery(scene.app, session)
    assert isinstance(previews, tuple), previews
    (preview,) = previews
    return preview


def test_the_token_is_on_no_command_line_and_in_no_environment(
    scene: DeliveryScene, tmp_path: Path
) -> None:
    session, seen = scene.do_work(scene.wish()), tmp_path / "seen"
    hook = scene.repository / ".git" / "hooks" / "pre-push"
    hook.write_text(f"#!/bin/sh\nenv > {seen}; cat /proc/[0-9]*/cmdline >> {seen}\nexit 0\n")
    hook.chmod(0o755)

    assert scene.run_job(session).outcome == "delivered"

    shown = seen.read_bytes()
    assert b"GIT_TERMINAL_PROMPT=0" in shown
    assert b"refs/heads/interlock/" in shown, "the command line of git was looked at"
    assert scene.stub.token.encode() not in shown


def test_the_token_is_in_no_event_and_in_no_failure(scene: DeliveryScene) -> None:
    session = scene.do_work(scene.wish())
    scene.stub.fail_once("POST", r"(comments|notes)$", "500")
    token, scene.stub.token = scene.stub.token, "another"
    scene.run_job(session)
    scene.stub.token = token
    deliver(scene, session)
    scene.run_job(session)

    events = b"".join(link.body for link in scene.app.reader.links(session))
    assert b"401" in events
    assert token.encode() not in events
    assert token not in repr(open_forge(scene.app.home, "ours"))
