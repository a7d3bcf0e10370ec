"""The user's wish to be notified: by which command or webhook, and of what."""

from pathlib import Path

import msgspec

from interlock.core.session.announcements import Topic
from interlock.workspace.outside.private_address import is_private_address
from interlock.workspace.projects.settings import section_in

EVENTS_DEFAULT: tuple[Topic, ...] = (
    "approval/requested",
    "session/complete",
    "unattended/parked",
    "unattended/stuck",
    "unattended/done",
    "unattended/undelivered",
)


class NotifySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `[notify]` of the user's config."""

    command: tuple[str, ...] = ()
    """The program and its arguments; empty: none is run."""
    webhook: str = ""
    """The address to which the facts are posted as JSON; empty: none are. It may be a secret."""
    events: tuple[Topic, ...] = EVENTS_DEFAULT

    def __post_init__(self) -> None:
        """Raises `ValueError`, without the address, if what is sent could be read on its way."""
        if self.webhook and not is_private_address(self.webhook):
            raise ValueError("`webhook` must be an https address, or an http one of this machine")

    def wants(self, topic: Topic) -> bool:
        """Whether anything is done about this topic."""
        return bool(self.command or self.webhook) and topic in self.events


def notify_settings(home: Path) -> NotifySettings:
    """Return the section, or the defaults if there is none.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(home / "config.toml", "notify", NotifySettings)
