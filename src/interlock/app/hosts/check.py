"""A fact that was found about an installation, and what to do about it."""

import msgspec


class Check(msgspec.Struct, frozen=True):
    name: str
    what: str
    """The fact that was found."""
    hint: str = ""
    """The next step; empty if all is well."""
    diff: tuple[str, ...] = ()
    """The lines that tell a file from what it should be."""

    @property
    def is_ok(self) -> bool:
        return not self.hint
