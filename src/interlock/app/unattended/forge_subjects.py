"""The request or issue that work is about, as it stands on its forge now."""

from pathlib import Path

from interlock.app.failures import SettingsBroken
from interlock.app.unattended.forge_settings import open_forge
from interlock.core.unattended.order import UnattendedOrder
from interlock.workspace.outside.forges.forge import ForgeFailed


def why_outdated(home: Path, order: UnattendedOrder) -> str:
    """The reason why work makes no sense any more; empty if it does.

    Work may have waited for its turn for hours: its request may be closed, or have newer code,
    which is work of its own. A forge that cannot be asked stops nothing.
    """
    subject = order.subject
    if subject is None or subject.kind != "request":
        return ""
    try:
        request = open_forge(home, subject.forge).request(subject.repository, subject.number)
    except (SettingsBroken, ForgeFailed):
        return ""
    if request is None:
        return ""
    if request.state != "open":
        return "what it is about was closed meanwhile"
    is_older = bool(order.fetch and request.head) and request.head != order.base
    return f"it has a newer commit by now, {request.head[:12]}" if is_older else ""
