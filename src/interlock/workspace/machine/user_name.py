"""The name of the user whose processes these are."""

import os


def user_name() -> str:
    """Return the user's name by the account, which no variable of an agent changes."""
    import pwd  # noqa: PLC0415 (only an answer of the user's needs it)

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"
