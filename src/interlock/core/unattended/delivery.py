"""How the delivery of a result stands: what was done with it part by part, and how that ended."""

from typing import Literal

import msgspec

RecordedPart = Literal["check", "push", "request", "comment"]
PartOutcome = Literal["done", "skipped", "refused"]
DeliveryOutcome = Literal["delivered", "skipped", "refused", "failed"]
DESPITE_SECRETS = "--despite-secrets"
"""The option by which a person accepts what looks like secrets: an objection that names it."""


class DeliveryRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The end of one part of a delivery."""

    part: RecordedPart
    outcome: PartOutcome
    detail: str = ""
    url: str = ""
    commit: str = ""
    repository: str = ""
    """The name of the repository in the order; empty for the one that the order is about."""


class DeliveryState(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    job: str
    """The job that does it."""
    since_ms: int
    """The time of its request, or of what was last heard of it."""
    outcome: DeliveryOutcome | None = None
    """None: it goes on."""
    detail: str = ""
    records: tuple[DeliveryRecord, ...] = ()

    @property
    def needs_user(self) -> bool:
        return self.outcome in ("refused", "failed")

    @property
    def is_about_secrets(self) -> bool:
        """Whether a person may overrule all that it was refused for."""
        refused = [one.detail for one in self.records if one.outcome == "refused"]
        return bool(refused) and all(DESPITE_SECRETS in detail for detail in refused)

    @property
    def is_settled(self) -> bool:
        """Whether nothing more is to happen: neither by a job, nor by the user."""
        return self.outcome in ("delivered", "skipped")
