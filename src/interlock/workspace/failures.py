"""The exceptions of a workspace. Imports nothing, so that importing it costs nothing."""


class SettingsBroken(Exception):
    """A settings file cannot be used. The message names it and what is wrong with it."""


class FolderFailure(Exception):
    """A notes folder cannot do what was asked. `hint` says what a person can do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class NoteTooLarge(FolderFailure):
    """The file is larger than a note may be. It is left alone."""


class FileUnreadable(Exception):
    """A file that the user has named cannot be read as text. The message is the reason."""
