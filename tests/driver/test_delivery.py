"""From the order to the comment: a driver does the work, and the server's jobs deliver it."""

from pathlib import Path

import pytest

from interlock.core.unattended.order import DeliveryWish
from tests.delivery_scene import FORGE, SHOP, VERDICT, handoff
from tests.driver.stage import Stage, call, git, hand_in
from tests.forge_stub import StubForge

SCRIPT = {
    "steps": [
        {
            "when": "# Step 1",
            "turns": [
                call("Write", file_path="export.py", content="rows = 1\n"),
                call("Write", file_path="scratch.txt", content="mine\n"),
                call("Bash", command="env; cat /proc/*/environ; git push origin HEAD:taken"),
                hand_in("It is exported.", artifacts=[handoff("export.py")]),
            ],
        },
        {"when": "# Step 2", "turns": [hand_in("It is good.", artifacts=[VERDICT])]},
    ]
}


@pytest.mark.slow
def test_what_is_ordered_is_done_pushed_requested_and_commented_on(tmp_path: Path) -> None:
    """At GitLab; tests/app/unattended/test_delivery.py delivers to each kind of forge."""
    with StubForge("gitlab") as stub, Stage(tmp_path) as stage:
        remote, token = tmp_path / "remote.git", tmp_path / "token"
        git(tmp_path, "init", "-q", "--bare", str(remote))
        git(stage.repository, "remote", "add", "origin", str(remote))
        token.write_text(stub.token)
        with (stage.home / "config.toml").open("a") as config:
            config.write(f'[forges.{FORGE}]\nkind = "{stub.kind}"\nurl = "{stub.url}"\n')
            config.write(f'token_file = "{token}"\n')
        stage.play(SCRIPT)
        parts = ("push", "request", "comment")
        session = stage.order_line(2, delivery=DeliveryWish(parts, FORGE, SHOP))
        stage.start_driver()

        def is_settled() -> bool:
            delivery = stage.state(session).delivery
            return delivery is not None and delivery.outcome is not None

        stage.wait_until(is_settled, "delivered", session)

        state = stage.state(session)
        assert state.delivery is not None
        assert state.delivery.outcome == "delivered", state
        listed = git(remote, "for-each-ref", "--format=%(refname:short) %(objectname)")
        assert listed == f"{state.branch} {state.commit}", "and nothing that the model pushed"
        assert git(remote, "show", "--format=", "--name-only", state.commit) == "export.py"
        (request,) = stub.requests.values()
        assert (request.is_draft, len(stub.comments_on(request.number))) == (True, 1)
        recorded = b"".join(path.read_bytes() for path in stage.home.rglob("*") if path.is_file())
        assert stub.token.encode() not in recorded, "in no log, journal, store or worktree"
