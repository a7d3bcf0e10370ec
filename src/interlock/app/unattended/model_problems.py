"""Find out without a request why a model cannot be used: its name, its packages, its key."""

import os
from importlib.util import find_spec
from pathlib import Path

from interlock.agents.models.credentials import SCRIPTED, is_model_name, key_variable
from interlock.agents.models.providers import LIBRARY_EXTRAS, current_installation, extra_hint
from interlock.app.unattended.driver_settings import DriverSettings
from interlock.core.unattended.order import Runner

_PLACEHOLDERS = ("MODEL", "NAME")
"""What the guides write where a name belongs."""
_OF_OTHERS = 0o077


def model_problems(settings: DriverSettings, runner: Runner, model: str) -> list[str]:
    """Return the reasons why work with a model would be parked, as things are in this process."""
    if runner != "model":
        return []
    if not model:
        return ["no model is chosen: `model` under `[driver]` of config.toml, or here"]
    provider, _, name = model.partition(":")
    if not is_model_name(model) or name in _PLACEHOLDERS:
        return [f"`{model}` is not a model: name one as in `anthropic:claude-sonnet-4-5`"]
    if provider == SCRIPTED:
        return []
    problems: list[str] = []
    if find_spec("pydantic_ai") is None:
        hint = extra_hint("driver", current_installation())
        problems.append(f"models of {provider} need the extra `driver`, which is missing: {hint}")
    if settings.key_file:
        problems += key_file_problems("key_file", settings.key_file)
    elif (
        provider in LIBRARY_EXTRAS
        and not settings.base_url
        and not os.environ.get(key_variable(provider))
    ):
        problems.append(
            f"there is no key for {provider}: `key_file` under `[driver]` names no file, and"
            f" {key_variable(provider)} is not set here"
        )
    return problems


def key_file_problems(setting: str, path: str) -> list[str]:
    """Return why a file with a secret cannot be used, or may be read by other users."""
    try:
        with Path(path).expanduser().open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        return [f"`{setting}` (`{path}`) cannot be read: {error.strerror or error}"]
    if mode & _OF_OTHERS:
        return [f"`{setting}` (`{path}`) can be read by other users: `chmod 600 {path}`"]
    return []
