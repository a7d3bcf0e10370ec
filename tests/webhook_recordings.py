"""Deliveries of webhooks, as forges send them. `payloads/webhooks/README.md` says where from."""

import json
from pathlib import Path
from typing import Any, NamedTuple

WEBHOOKS = Path(__file__).parent / "payloads" / "webhooks"


class RecordedWebhook(NamedTuple):
    """One delivery, without a signature."""

    headers: dict[str, str]
    payload: dict[str, Any]

    @property
    def body(self) -> bytes:
        return json.dumps(self.payload, separators=(",", ":")).encode()

    @property
    def event(self) -> str:
        """The forge's name of the event."""
        return self.headers.get("X-GitHub-Event") or self.headers["X-Gitlab-Event"]


def webhook_names() -> list[str]:
    return sorted(path.stem for path in WEBHOOKS.glob("*.json"))


def recorded_webhook(name: str) -> RecordedWebhook:
    delivery = json.loads((WEBHOOKS / f"{name}.json").read_text(encoding="utf-8"))
    return RecordedWebhook(delivery["headers"], delivery["body"])
