"""How a store can fail. Imports nothing, so that saying so costs nothing."""


class StoreFailure(Exception):
    """The store cannot do what was asked. `hint` says what a person can do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class StoreUnusable(StoreFailure):
    """The file is damaged, foreign, read-only or out of reach."""


class StoreUnreachable(StoreUnusable):
    """It cannot be reached now. What was asked is right when it is back."""


class StoreDamaged(StoreUnusable):
    """What the file holds is not a database, or not a whole one."""


class StoreFull(StoreFailure):
    """No room to write."""


class StoreBusy(StoreFailure):
    """Somebody else held the store for too long. Nothing was written."""


def unfinished_copy(place: str) -> StoreUnusable:
    return StoreUnusable(
        f"`{place}` is a copy that is not finished",
        "Run the same `interlock store copy` again: it goes on where it stopped.",
    )


class StreamMoved(Exception):
    """Somebody appended since you read; read again and decide again. Nothing was written."""


class PlanPartlyRecorded(Exception):
    """Some events of a plan exist and some do not: our mistake. Nothing was written."""
