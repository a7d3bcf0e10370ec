"""Find the command that adds an extra to this installation of Interlock.

On the public index the name `interlock` belongs to another project. So a command names the source
that this copy came from, which installers record (`direct_url.json`, PEP 610), and never an index.
"""

import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec


class Installation(msgspec.Struct, frozen=True):
    """An environment with Interlock in it, and the record of where that came from."""

    prefix: Path
    executable: str
    has_pip: bool
    direct_url: str


class _DirectUrl(msgspec.Struct, frozen=True):
    url: str
    dir_info: dict[str, Any] = {}
    vcs_info: dict[str, str] = {}
    subdirectory: str = ""


def current_installation() -> Installation:
    try:
        record = distribution("interlock").read_text("direct_url.json") or ""
    except PackageNotFoundError:  # run from its files, without an installation
        record = ""
    return Installation(Path(sys.prefix), sys.executable, find_spec("pip") is not None, record)


def extra_hint(extra: str, installation: Installation) -> str:
    """Return the sentence with the command that adds `extra` to the installation."""
    if source := _source_arguments(extra, installation.direct_url):
        return f"Install it with: {shlex.join([*_installer(installation), *source])}"
    where = f"for {installation.executable}"
    return f"Reinstall Interlock from where you got it, with the extra `{extra}`, {where}"


def _installer(installation: Installation) -> tuple[str, ...]:
    """Return the tool that made the environment: another one would miss it."""
    if (installation.prefix / "uv-receipt.toml").exists():
        return ("uv", "tool", "install", "--force")
    if (installation.prefix / "pipx_metadata.json").exists():
        return ("pipx", "install", "--force")
    if installation.has_pip:
        return (installation.executable, "-m", "pip", "install")
    return ("uv", "pip", "install", "--python", installation.executable)


def _source_arguments(extra: str, record: str) -> tuple[str, ...]:
    """Return the source as every installer reads it; nothing if it is unknown or gone."""
    try:
        source = msgspec.json.decode(record, type=_DirectUrl)
    except msgspec.DecodeError:
        return ()
    url, path = source.url, Path(unquote(urlsplit(source.url).path))
    if url.startswith("file:") and not path.exists():
        return ()
    if source.dir_info.get("editable"):
        return ("--editable", f"{path}[{extra}]")
    if commit := source.vcs_info.get("commit_id"):
        # The installed commit, since an extra is no reason to get another version. The pip that
        # comes with Python 3.11 wants a host in such a URL.
        url = url.replace("file:///", "file://localhost/")
        url = f"{source.vcs_info.get('vcs')}+{url}@{commit}"
    subdirectory = f"#subdirectory={source.subdirectory}" if source.subdirectory else ""
    return (f"interlock[{extra}] @ {url}{subdirectory}",)
