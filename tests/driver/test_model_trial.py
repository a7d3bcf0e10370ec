"""`interlock driver models`: one small request shows whether a model can do steps."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from interlock.app.unattended.driver_settings import DriverSettings, ModelPrice
from interlock.core.unattended.conversation import Usage
from interlock.driver.model_trial import ModelTrial, try_model

USAGE = {"input": 1_000, "output": 100, "cacheRead": 400, "costMicros": None}


def tried(tmp_path: Path, turn: dict[str, Any], prices: dict[str, ModelPrice]) -> ModelTrial:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"turns": [turn]}]}))
    settings = DriverSettings(prices={f"scripted:{script}": one for one in prices.values()})
    return asyncio.run(try_model(settings, f"scripted:{script}"))


@pytest.mark.parametrize("calls_tools", [True, False])
def test_a_model_that_answers_is_shown_with_tools_price_and_length(
    tmp_path: Path, *, calls_tools: bool
) -> None:
    calls = [{"name": "echo", "arguments": {"word": "ready"}}] if calls_tools else []
    turn = {"text": "ready", "calls": calls, "usage": USAGE}

    trial = tried(tmp_path, turn, {"one": ModelPrice(2, 10, cache_read=0.5)})

    assert (trial.problem, trial.calls_tools, trial.context_tokens) == ("", calls_tools, 128_000)
    assert trial.usage.cost_micros == 600 * 2 + 400 * 0.5 + 100 * 10


def test_a_model_that_does_not_answer_is_explained(tmp_path: Path) -> None:
    trial = tried(tmp_path, {"faults": [{"fail": "credentials", "times": 9}]}, {})

    assert "credentials" in trial.problem
    assert asyncio.run(try_model(DriverSettings(), "nobody:x")).hint


def test_a_price_of_the_user_counts_instead_of_the_table() -> None:
    settings = DriverSettings(prices={"openai:mine": ModelPrice(1, 4)})
    usage = Usage(1_000, 100, cost_micros=77)

    assert settings.price("openai:mine", usage).cost_micros == 1_400
    assert settings.price("openai:other", usage) == usage
