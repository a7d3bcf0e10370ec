"""Bypasses: open a rule of the gate for a reason, list the open ones, close one again."""

import hashlib
from pathlib import Path

from interlock.app.gate.trust import lock_grants
from interlock.core.gate.rules import OPENABLE, Bypass, Rule
from interlock.core.refusal import PlainRefusal
from interlock.workspace.machine import grants

DAY_MS = 86_400_000


def add(
    home: Path, rule: Rule, reason: str, *, root: Path | None, days: int | None, at_ms: int
) -> Bypass | PlainRefusal:
    """Open a rule, in one project or in all, for some days or until it is removed.

    Raises:
        SettingsBroken: our own list cannot be used.
        StoreFailure: it cannot be stored.
    """
    if rule not in OPENABLE:
        error = f"The rule `{rule}` cannot be opened"
        return PlainRefusal("not_bypassed", error, f"These can: {', '.join(OPENABLE)}.")
    reason = " ".join(reason.split())
    if not reason:
        hint = "Say it with `--reason`: it is kept with each use."
        return PlainRefusal("not_bypassed", "A bypass needs a reason", hint)
    project = str(root) if root else ""
    digest = hashlib.sha256(f"{rule}\0{project}\0{at_ms}".encode()).hexdigest()[:8]
    until_ms = None if days is None else at_ms + days * DAY_MS
    bypass = Bypass(f"byp_{digest}", rule, reason, at_ms, project, until_ms)
    with lock_grants(home):
        # Nobody needs the expired ones: the gate's journal says where they were used.
        active = (old for old in grants.load_bypasses(home) if not is_expired(old, at_ms))
        grants.save_bypasses(home, (*active, bypass))
    return bypass


def all_bypasses(home: Path) -> tuple[Bypass, ...]:
    """Every bypass, oldest first, the expired ones too.

    Raises:
        SettingsBroken: our own list cannot be used.
    """
    return grants.load_bypasses(home)


def remove(home: Path, bypass_id: str) -> Bypass | PlainRefusal:
    """Close a rule again.

    Raises:
        SettingsBroken: our own list cannot be used.
        StoreFailure: it cannot be stored.
    """
    with lock_grants(home):
        bypasses = grants.load_bypasses(home)
        for bypass in bypasses:
            if bypass.id == bypass_id:
                grants.save_bypasses(home, tuple(other for other in bypasses if other != bypass))
                return bypass
    error = f"There is no bypass `{bypass_id}`"
    return PlainRefusal("not_bypassed", error, "`interlock gate bypass list` shows them all.")


def is_expired(bypass: Bypass, at_ms: int) -> bool:
    return not bypass.is_active_in(bypass.project, at_ms=at_ms)
