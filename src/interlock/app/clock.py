"""The clock: the only place that asks for the time of day. Everything else takes `at_ms`.

A process measures its own waits with `time.monotonic`, which is no time of day. The fast hook,
which stands alone, is the one exception.
"""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
