"""The core reads no environment and no files, so its tests share one home that is not there."""

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="package", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    missing = tmp_path_factory.getbasetemp() / "no-home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(missing))
        patch.setenv("INTERLOCK_HOME", str(missing))
        yield missing


@pytest.fixture(scope="package", autouse=True)
def kept_in() -> str:
    return "file"
