"""The request or issue that work is about, as it stands on its forge now."""

from pathlib import Path

from interlock.app.failures import SettingsBroken
from interlock.app.unattended.forge_settings import open_forge
from interlock.core.unattended.order import UnattendedOrder
from interlock.workspace.outside.forges.forge import ForgeFailed


def is_subject_open(home: Path, order: UnattendedOrder) -> bool:
    """Whether work still makes sense: False only if the forge says that the request is closed.

    Work may have waited for its turn for hours. A forge that cannot be asked stops nothing.
    """
    subject = order.subject
    if subject is None or subject.kind != "request":
        return True
    try:
        request = open_forge(home, subject.forge).request(subject.repository, subject.number)
    except (SettingsBroken, ForgeFailed):
        return True
    return request is None or request.state == "open"
