"""How a workspace can fail. Imports nothing, so that saying so costs nothing."""


class SettingsBroken(Exception):
    """A settings file cannot be read. Says which, and what is wrong with it."""
