"""How much work something is, in function calls: a busy machine does not change it."""

import sys
from collections.abc import Callable


def count_calls(action: Callable[[], object]) -> int:
    """Return how many functions an action calls, those of C too."""
    count = 0

    def count_call(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count
