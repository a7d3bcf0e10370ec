"""Open models: what sessions share, and what they do not."""

import json
from pathlib import Path

import pytest

from interlock.app.unattended.driver_settings import DriverSettings
from interlock.driver.model_shelf import ModelShelf


@pytest.mark.anyio
async def test_one_model_that_must_wait_holds_up_itself_alone(tmp_path: Path) -> None:
    names = [f"scripted:{tmp_path / name}" for name in ("a.json", "b.json")]
    for name in names:
        Path(name.removeprefix("scripted:")).write_text(json.dumps({"steps": []}))
    shelf = ModelShelf(DriverSettings())

    first, other = [await shelf.model(name) for name in names]
    shelf.forget(names[0])
    reopened = await shelf.model(names[0])

    assert first.pause is not other.pause
    assert first.pause is reopened.pause, "opening it anew ends no wait"
