"""The exception of a model that cannot be opened. Imports nothing: a doctor may want it."""


class ModelUnavailable(Exception):
    """There is no such model here. `hint` says what a person can do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint
