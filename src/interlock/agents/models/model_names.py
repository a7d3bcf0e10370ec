"""The names of models: a provider, and the provider's own name for one."""

from interlock.agents.models.credentials import KEY_VARIABLES

SCRIPTED = "scripted"


def is_model_name(name: str) -> bool:
    provider, _, model = name.partition(":")
    return bool(model) and provider in (*KEY_VARIABLES, SCRIPTED)
