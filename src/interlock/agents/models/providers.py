"""Open a model by its name: `anthropic:NAME`, `openai:NAME`, `scripted:PATH` and others.

`openai` is also every endpoint that speaks Chat Completions as OpenAI does: give its `base_url`.
Any other provider that pydantic-ai supports is opened by its name there, such as `openrouter:NAME`.
The libraries of providers take seconds to import and are an extra (`driver`), so they are imported
when a model of theirs is opened, or ahead of that with `import_library`.
"""

import shlex
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from interlock.agents.models.credentials import (
    NO_KEY_VALUE,
    SCRIPTED,
    ApiKey,
    Credentials,
    is_model_name,
    key_variable,
)
from interlock.agents.models.model_port import ModelPort, ModelUnavailable
from interlock.agents.models.scripted_model import ScriptedModel

CALL_SECONDS = 120.0
NO_KEY = ApiKey(NO_KEY_VALUE)
LIBRARY_EXTRAS = ("anthropic", "openai")
"""The providers whose packages the extra `driver` brings."""


def open_model(
    name: str, *, credentials: Credentials, base_url: str = "", call_seconds: float = CALL_SECONDS
) -> ModelPort:
    """Return the model of that name. A call fails when nothing came from it for `call_seconds`.

    The first of a provider takes seconds (`import_library`): call it in a thread.

    Raises:
        ModelUnavailable: unknown provider, no usable key, missing packages, or unreadable script.
    """
    provider, _, model = name.partition(":")
    if not is_model_name(name):
        raise ModelUnavailable(
            f"{name!r} is not the name of a model.",
            "Name it PROVIDER:MODEL, as in anthropic:MODEL or openai:MODEL.",
        )
    if provider == SCRIPTED:
        return ScriptedModel(Path(model), call_seconds=call_seconds)
    key = _usable_key(provider, credentials, base_url)
    import_library(name)
    from interlock.agents.models.provider_model import ProviderModel  # noqa: PLC0415 (an extra)

    return ProviderModel(provider, model, key=key, base_url=base_url, call_seconds=call_seconds)


def import_library(name: str) -> None:
    """Import the library that a model needs, if any. Takes two or three seconds of CPU time.

    Raises:
        ModelUnavailable: its packages are not installed.
    """
    provider = name.partition(":")[0]
    if provider == SCRIPTED or not provider:
        return
    try:
        import_module("interlock.agents.models.provider_model")
        if provider in LIBRARY_EXTRAS:
            import_module(f"pydantic_ai.models.{provider}")
    except ImportError as error:
        # The library names no module when only its own part for a provider is missing.
        module = error.name or provider
        raise ModelUnavailable(
            f"Models of {provider} need the extra `driver`, which is not installed (no module"
            f" `{module}`).",
            extra_hint("driver", current_installation()),
        ) from error


def _usable_key(provider: str, credentials: Credentials, base_url: str) -> ApiKey:
    key = credentials.keys.get(provider)
    if key is None and provider not in LIBRARY_EXTRAS:
        return NO_KEY  # its library says what it needs: some have other variables, or none
    if key is None and provider == "openai" and base_url:
        return NO_KEY  # many endpoints on one's own machine want none
    if key is None or not key.value:
        problem = f"There is no key for {provider}."
    elif not key.is_sendable:
        problem = f"The key for {provider} has characters that no key has."
    else:
        return key
    raise ModelUnavailable(problem, f"Set {key_variable(provider)} where the driver is started.")


class Installation(msgspec.Struct, frozen=True):
    """An environment with Interlock, and the record of its origin."""

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
    """Return the sentence with the command that adds `extra` to the installation.

    On the public index the name `interlock` belongs to another project. So the command names the
    source that this copy came from, which installers record (`direct_url.json`, PEP 610).
    """
    if source := _source_arguments(extra, installation.direct_url):
        return f"Install it with: {shlex.join([*_installer(installation), *source])}"
    where = f"for {installation.executable}"
    return f"Reinstall Interlock from where you got it, with the extra `{extra}`, {where}"


def _installer(installation: Installation) -> tuple[str, ...]:
    """Return the tool that created the environment: another tool would not find it."""
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
