"""Webhooks: from the call to work that is queued, and many of them with repetitions."""

import tempfile
import threading
import time
from pathlib import Path

from bench.measure import HEADER, RawAppend, Row
from tests.server.server_process import Server
from tests.trigger_scene import TriggerScene, encode, from_gitlab, merge_request, review_table

CALLS = 40
CROWD = 500
SENDERS = 4
TOLD = 5
"""How often each request of the crowd is told."""


def triggering(base: Path) -> list[Row]:
    """A call that starts work, one that is repeated, one that is refused; then a crowd."""
    base.mkdir()
    raw, fsync = RawAppend(base / "raw"), Row("raw fdatasync of 3 KB")
    first = Row("webhook, to work that is queued", against=fsync)
    again = Row("webhook, told before", against=fsync)
    wrong = Row("webhook, a wrong secret", against=fsync)
    crowd = Row(f"webhook, {SENDERS} senders, each request told {TOLD} times", against=fsync)
    scene = TriggerScene(base)
    scene.write(review=review_table())
    with Server(scene.home) as server:
        send = _Sender(scene, server)
        for number in range(1, CALLS + 1):
            fsync.time(raw)
            first.time(lambda number=number: send(number, {202}))
            again.time(lambda number=number: send(number, {200}))
            wrong.time(lambda number=number: send(number, {401}, secret="guessed"))
        crowd.samples.extend(_crowd(send))
    return [fsync, first, again, wrong, crowd]


class _Sender:
    def __init__(self, scene: TriggerScene, server: Server) -> None:
        self._path, self._server = scene.path("review"), server

    def __call__(self, number: int, statuses: set[int], **secret: str) -> None:
        body = encode(merge_request(number))
        answer = self._server.ask(
            "POST", self._path, body=body, headers=from_gitlab(body, **secret), is_signed=False
        )
        assert answer.status in statuses, answer.text


def _crowd(send: _Sender) -> list[float]:
    """The times of all calls; and how many there were in a second is printed."""
    samples: list[float] = []
    numbers = [1_000 + number // TOLD for number in range(CROWD)]

    def tell(own: list[int]) -> None:
        for number in own:
            started = time.perf_counter()
            send(number, {200, 202})
            samples.append((time.perf_counter() - started) * 1_000)

    threads = [threading.Thread(target=tell, args=[numbers[n::SENDERS]]) for n in range(SENDERS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{CROWD / (time.perf_counter() - started):.0f} webhooks a second")
    return samples


def main() -> None:
    """Print the table of this module alone."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as directory:
        rows = triggering(Path(directory) / "triggering")
    print(HEADER)
    for row in rows:
        print(row.line())


if __name__ == "__main__":
    main()
