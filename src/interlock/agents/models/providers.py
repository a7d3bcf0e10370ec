"""Open a model by its name: `anthropic:NAME`, `openai:NAME` or `scripted:PATH`.

`openai` is also every endpoint that speaks Chat Completions as OpenAI does: give its `base_url`.
The libraries of providers take seconds to import and are an extra (`driver`), so they are imported
when a model of theirs is opened, or ahead of that with `import_library`.
"""

from importlib import import_module
from pathlib import Path

from interlock.agents.models.credentials import (
    KEY_VARIABLES,
    SCRIPTED,
    ApiKey,
    Credentials,
    is_model_name,
)
from interlock.agents.models.extras import current_installation, extra_hint
from interlock.agents.models.failures import ModelUnavailable
from interlock.agents.models.model_port import ModelPort
from interlock.agents.models.scripted_model import ScriptedModel

CALL_SECONDS = 120.0
NO_KEY = ApiKey("no-key-needed")


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
            "Name it anthropic:MODEL, openai:MODEL or scripted:PATH.",
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
    if provider not in KEY_VARIABLES:
        return
    try:
        import_module("interlock.agents.models.provider_model")
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
    if key is None and provider == "openai" and base_url:
        return NO_KEY  # many endpoints on one's own machine want none
    if key is None or not key.value:
        problem = f"There is no key for {provider}."
    elif not key.is_sendable:
        problem = f"The key for {provider} has characters that no key has."
    else:
        return key
    raise ModelUnavailable(problem, f"Set {KEY_VARIABLES[provider]} where the driver is started.")
