"""Several processes that do the same to one store at once."""

import multiprocessing.util
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext
from typing import Any

HANG_SECONDS = 120
CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["psycopg", "pytest", "hypothesis", "tests.scenes", "tests.stores"])
"""What each of them would import for itself."""


def run_together(target: Callable[..., None], arguments: Sequence[tuple[Any, ...]]) -> None:
    """Run `target` once with each of `arguments`, and require that all come to a good end."""
    processes = [CONTEXT.Process(target=target, args=each) for each in arguments]
    with ExitStack() as ending:
        for process in processes:
            process.start()
            ending.callback(process.kill)
        for process in processes:
            process.join(HANG_SECONDS)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def end_origin() -> None:
    """End the process that all of them came from, which would otherwise end a little after us."""
    forkserver._forkserver._stop()  # pyright: ignore
    multiprocessing.util._exit_function()  # pyright: ignore
    resource_tracker._resource_tracker._stop()  # pyright: ignore
