"""The user's sections `[forges.NAME]`: where a forge is, and the files with its secrets.

Only the user's own config has them. A project names a forge, and never learns its secrets, which
are read when they are needed and kept nowhere.
"""

from pathlib import Path
from typing import Literal

import msgspec

from interlock.app.failures import SettingsBroken
from interlock.core.unattended.order import UnattendedOrder
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.outside.forges.forge import Forge
from interlock.workspace.outside.forges.registry import FORGE_SECONDS, forge_of
from interlock.workspace.outside.forges.rest_calls import ForgeFailed
from interlock.workspace.projects.settings import section_in

SECRET_BYTES_MAX = 8 * 1024
SecretSetting = Literal["token_file", "webhook_secret_file"]


class ForgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A project cannot set any of it: it acts in the user's name."""

    kind: Literal["github", "gitlab", "webhook"]
    """`webhook`: any program that signs what it sends (Standard Webhooks)."""
    url: str = ""
    """As in `https://gitlab.example.org`; empty: the public one."""
    token_file: str = ""
    """A file with nothing but the token by which we speak to it."""
    webhook_secret_file: str = ""
    """A file with nothing but the secret by which it speaks to us."""
    draft_requests: bool = True
    """Whether opened requests are drafts: some plans of GitHub refuse drafts (422)."""


def forge_settings(home: Path) -> dict[str, ForgeSettings]:
    """Return the forges by their names.

    Raises:
        SettingsBroken: the file is there but is not what it should be.
    """
    return section_in(home / "config.toml", "forges", dict[str, ForgeSettings])


def find_forge(home: Path, name: str) -> ForgeSettings:
    """Raises `SettingsBroken` if there is no such section, or it cannot be used."""
    found = forge_settings(home).get(name)
    if found is None:
        raise SettingsBroken(
            f"`{home / 'config.toml'}` knows no forge `{name}`. Write `[forges.{name}]` with"
            " `kind` and the files of its secrets there"
        )
    return found


def open_forge(home: Path, name: str, *, seconds: float = FORGE_SECONDS) -> Forge:
    """Return a forge, with the token as it is now; each answer may take so long.

    Raises:
        SettingsBroken: there is no such forge, or its token cannot be read.
        ForgeFailed: the token could be read by others on its way there.
    """
    settings = find_forge(home, name)
    if settings.kind == "webhook":
        raise SettingsBroken(f"`[forges.{name}]` is no forge: it only sends webhooks")
    token = read_secret(home, name, "token_file").decode("ascii", "replace")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsBroken(
            f"{_setting_words(home, name, 'token_file')} must hold one token alone"
        )
    return forge_of(settings.kind, settings.url, token, seconds=seconds)


def read_secret(home: Path, name: str, setting: SecretSetting) -> bytes:
    """Return the secret in the file that a setting of a forge names.

    Raises:
        SettingsBroken: it names none, or there is no secret in it. The message has no part of it.
    """
    path, words = getattr(find_forge(home, name), setting), _setting_words(home, name, setting)
    if not path:
        raise SettingsBroken(f"{words} is not set. Name a file there")
    try:
        secret = read_regular_file(Path(path).expanduser(), SECRET_BYTES_MAX).strip()
    except OSError as error:
        raise SettingsBroken(f"{words} cannot be read: {error.strerror or error}") from error
    if not secret:
        raise SettingsBroken(f"{words} is empty")
    return secret


def _setting_words(home: Path, name: str, setting: SecretSetting) -> str:
    return f"`{setting}` of `[forges.{name}]` in `{home / 'config.toml'}`"


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
