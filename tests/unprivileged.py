"""Being somebody whom permissions bind, also where the tests are run by root."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


@contextmanager
def nobody() -> Generator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def place_of_nobody() -> Generator[Path]:
    """A directory that belongs to whom permissions bind, and is in nobody's way."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory).resolve()
        place.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
        yield place
