"""Open models: what sessions share, and what they do not."""

import json
from pathlib import Path

import pytest

from interlock.app.unattended.driver_settings import DriverSettings
from interlock.driver.model_shelf import ModelShelf


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("a.json", "b.json")]
    for path in paths:
        path.write_text(json.dumps({"steps": []}))
    return [f"scripted:{path}" for path in paths]


@pytest.mark.anyio
async def test_one_model_that_must_wait_holds_up_itself_alone(names: list[str]) -> None:
    shelf = ModelShelf(DriverSettings())

    first, other = [await shelf.model(name) for name in names]
    shelf.forget(names[0])
    reopened = await shelf.model(names[0])

    assert first.pause is not other.pause
    assert first.pause is reopened.pause, "opening it anew ends no wait"
