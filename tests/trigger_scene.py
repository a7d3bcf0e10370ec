"""A project with triggers that the user trusts, and senders of webhooks that know its secrets."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import tomlkit

from interlock.app.clock import SystemClock
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.app.triggers.trigger_book import project_word
from interlock.core.triggers.signatures import sign_standard
from tests.unattended_scene import make_repository

SECRET = "It's a Secret to Everybody"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "glpat-notarealtokenatall"
HEAD = "da1560886d4f094c3e6c9ef40349f7d38b5d27d7"


def review_table(source: str = "gitlab-webhook", **changed: Any) -> dict[str, Any]:
    """A trigger that reviews requests of Ana's."""
    table = {
        "source": source,
        "forge": source.partition("-")[0],
        "repository": "group/name",
        "authors": ["ana"],
        "workflow": "hello",
        "goal": "Review !{{ event.number }}: {{ event.title | oneline }}",
        "read_only": True,
        "limits": {"turns": 20},
        **changed,
    }
    return {name: value for name, value in table.items() if value is not None}


class TriggerScene:
    def __init__(
        self, directory: Path, *, settings: str = "", forges: str = "", home: Path | None = None
    ) -> None:
        self.home = home or directory / "home"
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.repository = make_repository(directory / "repository")
        secrets = {"secret": SECRET, "standard": STANDARD_SECRET, "token": TOKEN}
        for name, text in secrets.items():
            (directory / name).write_text(f"{text}\n")
            (directory / name).chmod(0o600)
        hook, standard = directory / "secret", directory / "standard"
        sections = [
            f'[driver]\nmodel = "scripted:/nowhere"\nautostart = false\n{settings}',
            f'[forges.webhook]\nkind = "webhook"\nwebhook_secret_file = "{standard}"',
            forges
            or "\n".join(
                f'[forges.{kind}]\nkind = "{kind}"\nurl = "https://{kind}.example.org"\n'
                f'webhook_secret_file = "{hook}"'
                for kind in ("github", "gitlab")
            ),
        ]
        (self.home / "config.toml").write_text("\n".join(sections))
        opt_in(self.repository, "standard")

    @property
    def file(self) -> Path:
        return self.repository / ".interlock" / "triggers.toml"

    def write(self, **triggers: dict[str, Any]) -> None:
        """Write the triggers, and trust them."""
        self.file.write_bytes(tomlkit.dumps(triggers).encode())
        trust_checkout(self.home, self.repository.resolve(), at_ms=1)

    def path(self, name: str) -> str:
        return f"/hooks/{project_word(str(self.repository.resolve()))}/{name}"


def merge_request(number: int = 7, *, head: str = HEAD, **changed: Any) -> dict[str, Any]:
    """What GitLab sends when a merge request is opened."""
    attributes = {
        "iid": number,
        "title": "Add a cache",
        "state": "opened",
        "action": "open",
        "draft": False,
        "url": f"https://gitlab.example.org/group/name/-/merge_requests/{number}",
        "last_commit": {"id": head},
        "source_branch": "cache",
        "source_project_id": 1,
        "target_project_id": 1,
        "author_id": 51,
        **changed,
    }
    return {
        "object_kind": "merge_request",
        "user": {"username": "ana", "id": 51},
        "project": {"path_with_namespace": "group/name"},
        "object_attributes": attributes,
        "labels": [],
        "assignees": [],
    }


def from_gitlab(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """The headers with which GitLab sends a body."""
    uuid = hashlib.sha256(body).hexdigest()[:32]
    return {
        "x-gitlab-event": "Merge Request Hook",
        "x-gitlab-token": secret,
        "x-gitlab-event-uuid": uuid,
    }


def from_github(body: bytes, event: str, secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "x-github-event": event,
        "x-github-delivery": hashlib.sha256(body).hexdigest()[:32],
        "x-hub-signature-256": f"sha256={digest}",
    }


def from_program(
    body: bytes, name: str, *, secret: str = STANDARD_SECRET, at_s: int | None = None
) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    timestamp = SystemClock().now_ms() // 1_000 if at_s is None else at_s
    signature = sign_standard(secret.encode(), body, message_id=name, timestamp=timestamp)
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }


def encode(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload).encode()
