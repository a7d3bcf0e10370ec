"""Being somebody whom permissions bind, also where the tests are run by root."""

import os
from collections.abc import Generator
from contextlib import contextmanager

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
