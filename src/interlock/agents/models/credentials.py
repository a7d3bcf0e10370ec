"""The providers: the names of their models, and their keys.

Keys are shown nowhere, and taken out of what providers say about them.
"""

import re
from collections.abc import Mapping

import msgspec

STARS = "***"
NO_KEY_VALUE = "no-key-needed"
"""Instead of a key, where an endpoint of one's own wants none."""


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
    def from_environment(cls, environment: Mapping[str, str], provider: str) -> "Credentials":
        value = environment.get(key_variable(provider), "").strip()
        return cls({provider: ApiKey(value)} if value else {})


SCRIPTED = "scripted"
_MODEL_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}:.{1,200}")


def is_model_name(name: str) -> bool:
    """Whether a name has the form of one. Only opening it shows whether there is such a model."""
    return bool(_MODEL_NAME.fullmatch(name))


def key_variable(provider: str) -> str:
    """Return the variable with the key of a provider, as its own tools call it."""
    return f"{provider.upper().replace('-', '_')}_API_KEY"
