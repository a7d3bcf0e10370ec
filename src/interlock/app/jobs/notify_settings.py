"""The user's wish to be notified: which command, and of what."""

from pathlib import Path

import msgspec

from interlock.core.session.announcements import Topic
from interlock.workspace.projects.settings import section_in

EVENTS_DEFAULT: tuple[Topic, ...] = ("approval/requested", "session/complete")


class NotifySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `[notify]` of the user's config."""

    command: tuple[str, ...] = ()
    """The program and its arguments; empty: nobody is notified."""
    events: tuple[Topic, ...] = EVENTS_DEFAULT


def notify_settings(home: Path) -> NotifySettings:
    """Return the section, or the defaults if there is none.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(home / "config.toml", "notify", NotifySettings)
