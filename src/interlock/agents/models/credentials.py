"""The providers: the names of their models, and their keys.

Keys are shown nowhere, and taken out of what providers say about them.
"""

from collections.abc import Mapping

import msgspec

KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
STARS = "***"


class ApiKey(msgspec.Struct, frozen=True):
    value: str

    def __repr__(self) -> str:
        return f"ApiKey({STARS})"

    @property
    def is_sendable(self) -> bool:
        """False for one that no HTTP header can carry; the refusal of a library would show it."""
        return self.value.isascii() and self.value.isprintable() and " " not in self.value

    def redact(self, text: str) -> str:
        """Return the text without the key."""
        return text.replace(self.value, STARS)


class Credentials(msgspec.Struct, frozen=True):
    keys: Mapping[str, ApiKey] = {}
    """By the name of their provider."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Credentials":
        values = {name: environment.get(key, "").strip() for name, key in KEY_VARIABLES.items()}
        return cls({name: ApiKey(value) for name, value in values.items() if value})


SCRIPTED = "scripted"


def is_model_name(name: str) -> bool:
    provider, _, model = name.partition(":")
    return bool(model) and provider in (*KEY_VARIABLES, SCRIPTED)
