"""Opening a model by its name, and what is said where that cannot be."""

from pathlib import Path

import pytest

from interlock.agents.models.credentials import ApiKey, Credentials
from interlock.agents.models.model_port import ModelUnavailable
from interlock.agents.models.providers import open_model

KEY = "sk-test-0123456789abcdef"


def test_a_model_that_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    torn, unknown = tmp_path / "torn.json", tmp_path / "unknown.json"
    torn.write_text('{"steps": [')
    unknown.write_text('{"steps": [{"turns": [{"txt": "?"}]}]}')
    line = Credentials({"openai": ApiKey(f"{KEY}\n{KEY}")})
    cases = [
        ("claude", Credentials(), "'claude' is not the name of a model", "anthropic:MODEL"),
        ("nobody:pro", Credentials(), "`nobody:pro` cannot be opened: Unknown provider", "NOBODY"),
        ("openrouter:pro", Credentials(), "OPENROUTER_API_KEY", "OPENROUTER_API_KEY"),
        ("anthropic:", Credentials(), "'anthropic:' is not the name of", "anthropic:MODEL"),
        ("anthropic:claude", Credentials(), "no key for anthropic", "ANTHROPIC_API_KEY"),
        ("openai:gpt", Credentials(), "no key for openai", "OPENAI_API_KEY"),
        ("openai:gpt", line, "characters that no key has", "OPENAI_API_KEY"),
        ("groq:llama", Credentials(), "need more packages", "pydantic-ai-slim[groq]"),
        (f"scripted:{tmp_path}/none.json", Credentials(), "No such file", "scripted"),
        (f"scripted:{torn}", Credentials(), "truncated", "scripted"),
        (f"scripted:{unknown}", Credentials(), "`txt`", "scripted"),
    ]
    for name, credentials, message, hint in cases:
        with pytest.raises(ModelUnavailable) as raised:
            open_model(name, credentials=credentials)
        assert message in str(raised.value)
        assert hint in raised.value.hint
        assert KEY not in f"{raised.value} {raised.value.hint} {raised.value!r}"


def test_a_key_is_shown_nowhere() -> None:
    environment = {"ANTHROPIC_API_KEY": f"{KEY}\n", "OPENAI_API_KEY": " ", "HOME": "/"}
    credentials = Credentials.from_environment(environment, "anthropic")

    assert credentials.keys == {"anthropic": ApiKey(KEY)}
    assert Credentials.from_environment(environment, "openai").keys == {}
    assert KEY not in f"{credentials} {credentials!r} {credentials.keys['anthropic']}"
