"""How much the tests try: `quick` while working, `test` everywhere else, `long` when there is time.

`quick` and `test` are reproducible: the same examples and seeds each time. `long` tries ten times
as many, with other seeds in each run; what it finds becomes an example in `test`.
"""

import os
import random
import time
from collections.abc import Sequence
from typing import Literal, TypeVar, cast

from hypothesis import settings

T = TypeVar("T")

Effort = Literal["quick", "test", "long"]

EFFORT = cast("Effort", os.environ.get("INTERLOCK_TEST_EFFORT", "test"))
_TIMES = {"quick": 0.1, "test": 1.0, "long": 10.0}
_SEED = 20_261_116
HYPOTHESIS_EXAMPLES = 100


def scale(count: int, *, at_least: int = 1) -> int:
    """Return how many examples or rounds to try, where `make test` tries `count`."""
    return max(at_least, round(count * _TIMES[EFFORT]))


def sample(members: Sequence[T], count: int) -> Sequence[T]:
    """Return `count` members, spread evenly, in `make test`, and all of them in `make long`.

    Use it for enumerations whose members fail for the same reasons.
    """
    if EFFORT == "long" or count >= len(members):
        return members
    return [members[index * len(members) // count] for index in range(count)]


def seeded() -> tuple[int, random.Random]:
    """Return a source of chance and its seed, to be printed: a failure can be had again with it."""
    drawn = time.time_ns() % 1_000_000 if EFFORT == "long" else _SEED
    seed = int(os.environ.get("INTERLOCK_SEED", drawn))
    return seed, random.Random(seed)


def load_hypothesis_profile() -> None:
    """Nothing timed is a test, so there is no deadline: a busy machine must not fail one."""
    settings.register_profile(
        "interlock",
        deadline=None,
        database=None,
        derandomize=EFFORT != "long",
        max_examples=scale(HYPOTHESIS_EXAMPLES),
    )
    settings.load_profile("interlock")
