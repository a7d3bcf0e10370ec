"""A reservation of somebody else, as hooks know it."""

import msgspec


class ForeignReservation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A reservation, as hooks know it."""

    session: str
    """Whose session it is."""
    holder: str
    """The name of the holder, as people are shown it."""
    pattern: str
    until_ms: int
    """By the clock of this machine."""
    excluded: tuple[str, ...] = ()
    is_exclusive: bool = True
    worktree: str = ""
    reason: str = ""
    folds_case: bool = False
    since_ms: int = 0
    """By the clock of this machine; 0 if an earlier version published it."""
