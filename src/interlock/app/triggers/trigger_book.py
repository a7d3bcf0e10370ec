"""All triggers that count: those of the checkouts that the user trusts, as they were trusted.

The files are looked at each time, and read when one has changed. A file that cannot be used, or was
changed since it was trusted, changes nothing: the triggers of before go on, and what is wrong is
said (`TriggerSet.faults`).
"""

import hashlib
import threading
from pathlib import Path

import msgspec

from interlock.app.failures import SettingsBroken
from interlock.core.triggers.trigger import Trigger
from interlock.workspace.machine import grants
from interlock.workspace.projects.trigger_file import TRIGGERS, read_trigger_file

_PROJECT_CHARS = 8
NO_NAMES: frozenset[str] = frozenset()


class ProjectTrigger(msgspec.Struct, frozen=True):
    name: str
    root: str
    """The checkout that has it."""
    trigger: Trigger

    @property
    def place(self) -> str:
        """Its name among the triggers of all projects, as in the address of its webhook."""
        return f"{project_word(self.root)}/{self.name}"


class TriggerFault(msgspec.Struct, frozen=True):
    root: str
    text: str


class TriggerSet(msgspec.Struct, frozen=True):
    triggers: tuple[ProjectTrigger, ...] = ()
    faults: tuple[TriggerFault, ...] = ()
    ended: frozenset[str] = frozenset()
    """Names that the file of one checkout has no more, or switches off: that needs no trust."""

    def find(self, place: str) -> ProjectTrigger | None:
        return next((one for one in self.triggers if one.place == place), None)


def project_word(root: str) -> str:
    """A short word for a checkout, the same each time."""
    return hashlib.sha256(root.encode()).hexdigest()[:_PROJECT_CHARS]


class TriggerBook:
    """May be asked by several threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._stamp: object = None
        self._known = TriggerSet()

    def read(self) -> TriggerSet:
        """The triggers that count now, and what is wrong with the files."""
        with self._lock:
            try:
                checkouts = grants.load_trusted_checkouts(self._home)
            except SettingsBroken as broken:
                fault = TriggerFault(str(self._home), str(broken))
                return msgspec.structs.replace(self._known, faults=(fault,))
            stamp = [(one.root, one.triggers, _file_stamp(Path(one.root))) for one in checkouts]
            if stamp != self._stamp:
                self._stamp = stamp
                self._known = self._read_all(checkouts)
            return self._known

    def _read_all(self, checkouts: tuple[grants.TrustedCheckout, ...]) -> TriggerSet:
        triggers: list[ProjectTrigger] = []
        faults: list[TriggerFault] = []
        for checkout in checkouts:
            before = [one for one in self._known.triggers if one.root == checkout.root]
            names = frozenset(one.name for one in before)
            read = read_checkout(checkout.root, checkout.triggers, names)
            kept = [one for one in before if one.name not in read.ended]
            triggers += kept if read.faults else read.triggers
            faults += read.faults
        return TriggerSet(tuple(triggers), tuple(faults))


def read_checkout(root: str, trusted_digest: str, known: frozenset[str] = NO_NAMES) -> TriggerSet:
    """The triggers of one checkout, or all that keeps them from counting.

    `known`: the names of those that count until now.
    """
    try:
        file = read_trigger_file(Path(root))
    except SettingsBroken as broken:
        return TriggerSet(faults=(TriggerFault(root, str(broken)),))
    faults = [f"{TRIGGERS}: {fault}" for fault in file.faults]
    if file.digest and file.digest != trusted_digest:
        faults.append(
            f"{TRIGGERS} is not trusted as it is now: `interlock trust` there. A server that runs"
            " goes on with what was trusted before, less what was removed or switched off since"
        )
    switched_off = {name for name, one in file.triggers.items() if not one.enabled}
    return TriggerSet(
        tuple(ProjectTrigger(name, root, trigger) for name, trigger in file.triggers.items()),
        tuple(TriggerFault(root, fault) for fault in faults),
        (known - frozenset(file.names)) | switched_off,
    )


def _file_stamp(root: Path) -> tuple[int, int, int]:
    try:
        stat = (root / TRIGGERS).stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
