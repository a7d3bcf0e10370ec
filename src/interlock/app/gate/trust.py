"""Trust the settings of a project's config that loosen the gate, or revoke that."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from interlock.app.gate.policy import is_policy_trusted
from interlock.core.gate import trust as core
from interlock.core.gate.trust import ProjectPolicy
from interlock.core.unattended.order import Limits, limits_in_words
from interlock.core.views.trigger_words import delivery_in_words, occasion_in_words
from interlock.store.failures import StoreUnusable
from interlock.store.lock import WriteLock
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.machine import grants
from interlock.workspace.machine.grants import TrustedCheckout
from interlock.workspace.projects import project, settings
from interlock.workspace.projects.trigger_file import TriggerFile, read_trigger_file


class LooseningSetting(msgspec.Struct, frozen=True):
    """A setting of a project that lets its agents do more."""

    setting: str
    value: str
    """As a stranger may have written it."""
    meaning: str


class TrustStatus(msgspec.Struct, frozen=True, rename="camel"):
    root: str
    is_trusted: bool
    """Of the config, as it is now."""
    are_triggers_trusted: bool
    loosens: tuple[LooseningSetting, ...]


def trust_status(home: Path, root: Path) -> TrustStatus:
    """The settings of the project that let others do more, and whether they count.

    Raises:
        SettingsBroken: its files cannot be used, or our own list of trusted checkouts.
    """
    project_policy, triggers = project.policy_in(root), read_trigger_file(root)
    checkouts = grants.load_trusted_checkouts(home)
    trusted = {checkout.root: checkout.triggers for checkout in checkouts}
    return TrustStatus(
        str(root),
        is_policy_trusted(home, root, project_policy),
        trusted.get(str(root), "") == triggers.digest,
        _loosening_settings(project_policy, root, triggers),
    )


def trust_checkout(home: Path, root: Path, *, at_ms: int) -> TrustStatus:
    """Let the config and the triggers of this checkout count, as they are now.

    Raises:
        SettingsBroken: its files cannot be used, or our own list of trusted checkouts.
        StoreFailure: it cannot be stored.
    """
    project_policy, triggers = project.policy_in(root), read_trigger_file(root)
    content = (root / project.CONFIG).read_text(encoding="utf-8")
    with lock_grants(home):
        others = tuple(
            other for other in grants.load_trusted_checkouts(home) if other.root != str(root)
        )
        own = TrustedCheckout(str(root), project_policy.digest, at_ms, content, triggers.digest)
        grants.save_trusted_checkouts(home, (*others, own))
    loosens = _loosening_settings(project_policy, root, triggers)
    return TrustStatus(str(root), is_trusted=True, are_triggers_trusted=True, loosens=loosens)


def revoke(home: Path, root: Path) -> bool:
    """Stop trusting the checkout; False if it was not trusted.

    Raises:
        SettingsBroken: our own list of trusted checkouts cannot be used.
        StoreFailure: it cannot be stored.
    """
    with lock_grants(home):
        checkouts = grants.load_trusted_checkouts(home)
        others = tuple(other for other in checkouts if other.root != str(root))
        grants.save_trusted_checkouts(home, others)
    return others != checkouts


@contextmanager
def lock_grants(home: Path) -> Generator[None]:
    """Hold the lock under which trust and bypasses change: one command at a time.

    Raises:
        StoreFailure: the data home cannot be written, or another command holds it.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = WriteLock(home / "opened.lock")
        try:
            with lock.hold():
                yield
        finally:
            lock.close()
    except (OSError, FileChangedMeanwhile) as error:
        reason = error.strerror if isinstance(error, OSError) else "somebody else writes there"
        raise StoreUnusable(
            f"`{home}` cannot be written: {reason}",
            "Check the disk and that the directory belongs to you.",
        ) from error


_MEANINGS = {
    "profile": "sessions begin in coding",
    "reading_tools": "nobody is asked about these tools",
    "notes.folder": "agents write notes there, in every mode",
}


def _loosening_settings(
    project_policy: ProjectPolicy, root: Path, triggers: TriggerFile
) -> tuple[LooseningSetting, ...]:
    folder = settings.notes_in(root / project.CONFIG).folder
    values = {
        "profile": project_policy.profile,
        "reading_tools": ", ".join(project_policy.reading_tools),
        "notes.folder": folder,
    }
    loosened = tuple(
        LooseningSetting(
            setting,
            values.get(setting, "advisory"),
            _MEANINGS.get(setting, "what it would deny is told, and allowed"),
        )
        for setting in (
            *core.loosening_settings(project_policy),
            *(("notes.folder",) if folder else ()),
        )
    )
    return (*loosened, *_trigger_settings(triggers))


def _trigger_settings(triggers: TriggerFile) -> Iterator[LooseningSetting]:
    for name, trigger in triggers.triggers.items():
        limits = ", ".join(limits_in_words(trigger.limits.wish().apply(Limits())).values())
        words = f"{occasion_in_words(trigger)} → {trigger.workflow}, {delivery_in_words(trigger)}"
        yield LooseningSetting(f"triggers.{name}", words, f"starts work, each within {limits}")
    for fault in triggers.faults:
        yield LooseningSetting("triggers", fault, "until that is put right, none of them counts")
