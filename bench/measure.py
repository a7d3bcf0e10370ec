"""Samples, and the table they become."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what, how long (ms), and against what."""

    what: str
    samples: list[float] = field(default_factory=list[float])
    against: "Row | None" = None

    def time(self, act: Callable[[], object]) -> None:
        begun = time.perf_counter()
        act()
        self.samples.append((time.perf_counter() - begun) * 1000)

    @property
    def p50(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        return sorted(self.samples)[int(len(self.samples) * 0.95)]

    def line(self) -> str:
        ratio = f"{self.p50 / self.against.p50:.1f} x {self.against.what}" if self.against else ""
        return f"| {self.what} | {self.p50:.2f} | {self.p95:.2f} | {len(self.samples)} | {ratio} |"


HEADER = "| what | p50 ms | p95 ms | n | ratio of p50 |\n|---|---|---|---|---|"


class RawAppend:
    """The least that durability can cost here: 3 KB appended to a file, then fdatasync."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self) -> None:
        os.write(self._file, bytes(3 * 1024))
        os.fdatasync(self._file)
