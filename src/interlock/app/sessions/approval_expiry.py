"""How long an approval waits that has no deadline of its own, as the user's config says."""

from interlock.app.context import App
from interlock.workspace.projects import settings

DAY_MS = 24 * 3_600_000


def default_expiry_ms(app: App) -> int | None:
    """Return the time after which an approval counts as denied; None if it waits for ever.

    Raises:
        SettingsBroken: the user's config cannot be read.
    """
    return settings.approval_expiry_days_in(app.home / "config.toml") * DAY_MS or None
