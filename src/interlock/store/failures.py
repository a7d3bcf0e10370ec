"""The exceptions of a store. Imports nothing, so that importing it costs nothing."""


class StoreFailure(Exception):
    """The store cannot do what was asked. `hint` says what a person can do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class StoreUnusable(StoreFailure):
    """The file is damaged, foreign, read-only or out of reach."""


class StoreUnreachable(StoreUnusable):
    """The store cannot be reached now. The request is sound and works when it is back."""


class ContentMissing(StoreUnusable):
    """Content that an event names is not there, or is not what its name says."""


class StoreDamaged(StoreUnusable):
    """The file does not hold a database, or not a complete one."""


class StoreFull(StoreFailure):
    """There is no room to write."""


class StoreBusy(StoreFailure):
    """Somebody else held the store for too long. Nothing was written."""


def unfinished_copy(label: str) -> StoreUnusable:
    """Return the failure for a store that is still being copied to."""
    return StoreUnusable(
        f"`{label}` is a copy that is not finished",
        "Run the same `interlock store copy --to …` again: it continues where it stopped.",
    )


class StreamMoved(Exception):
    """Somebody appended since you read; read again and decide again. Nothing was written."""


class RowsMoved(Exception):
    """A row that a plan rests on was changed since you read; read and decide again."""


class LeaseLost(Exception):
    """Somebody else has acquired the lease that a plan rests on. Nothing was written."""


class PlanPartlyRecorded(Exception):
    """Some events of a plan exist and some do not: a bug of ours. Nothing was written."""
