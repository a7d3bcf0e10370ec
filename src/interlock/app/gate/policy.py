"""What holds in a project now, and what its users should know about that."""

from pathlib import Path

import msgspec

from interlock.core.gate import trust
from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import Bypass
from interlock.core.gate.state import Policy
from interlock.core.gate.trust import ProjectPolicy, UserPolicy
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine import grants, spool
from interlock.workspace.projects import project, settings

NOTICE_AGE_MAX_MS = 86_400_000  # notices are told for a day
NOTICES_MAX = 3


class EffectivePolicy(msgspec.Struct, frozen=True):
    policy: Policy
    notice_limit: NoticeLimit = NoticeLimit()
    ignored_settings: tuple[str, ...] = ()
    """The settings of the project that do not count, because nobody has trusted them."""
    policy_if_trusted: Policy | None = None
    """What would hold if they did; None where none is ignored."""
    faults: tuple[str, ...] = ()
    """What is wrong with the user's own files. Nothing that they open counts then."""
    stamp: str = ""
    """What the project's config was known by."""


def load_effective_policy(home: Path, root: Path, *, at_ms: int) -> EffectivePolicy:
    """What holds in the project at `root`.

    Raises:
        SettingsBroken: the project's config cannot be used.
    """
    asked = project.policy_in(root)
    faults: list[str] = []
    try:
        chosen = settings.user_policy_in(home / "config.toml")
        bypasses = _active_bypasses(home, root, at_ms)
    except SettingsBroken as broken:
        chosen, bypasses = UserPolicy(), ()
        faults.append(str(broken))
    is_trusted = True
    if trust.loosening_settings(asked):
        try:
            is_trusted = is_policy_trusted(home, root, asked)
        except SettingsBroken as broken:
            is_trusted = False
            faults.append(str(broken))
    found = trust.effective_policy(asked, chosen, bypasses, is_trusted=is_trusted)
    other = trust.effective_policy(asked, chosen, bypasses, is_trusted=True).policy
    return EffectivePolicy(
        found.policy,
        chosen.notice_limit,
        found.ignored_settings,
        policy_if_trusted=other if found.ignored_settings else None,
        faults=tuple(faults),
        stamp=asked.stamp,
    )


def is_policy_trusted(home: Path, root: Path, project_policy: ProjectPolicy) -> bool:
    """Whether the user has trusted this very content in this very place.

    Raises:
        SettingsBroken: what the user has trusted cannot be read.
    """
    wanted = (str(root), project_policy.digest)
    return any(
        (known.root, known.digest) == wanted for known in grants.load_trusted_checkouts(home)
    )


def policy_remarks(home: Path, root: Path, *, at_ms: int) -> tuple[str, ...]:
    """Sentences for the users of the project, and for its agents to pass on."""
    try:
        found = load_effective_policy(home, root, at_ms=at_ms)
    except SettingsBroken as broken:
        return (f"{broken}. Only reading is allowed until the user has corrected it.",)
    closed = "Until the user has corrected it, nothing counts that the user has opened."
    said = [f"{fault}. {closed}" for fault in found.faults]
    if found.ignored_settings:
        count = len(found.ignored_settings)
        what = "1 setting" if count == 1 else f"{count} settings"
        said.append(
            f"{what} of .interlock/config.toml {'is' if count == 1 else 'are'} not trusted and"
            f" {'does' if count == 1 else 'do'} not count ({', '.join(found.ignored_settings)}):"
            " `interlock trust` is for the user to run."
        )
    return (*said, *_recent_notices(home, root, at_ms))


def _active_bypasses(home: Path, root: Path, at_ms: int) -> tuple[Bypass, ...]:
    every = grants.load_bypasses(home)
    return tuple(bypass for bypass in every if bypass.is_active_in(str(root), at_ms=at_ms))


def _recent_notices(home: Path, root: Path, at_ms: int) -> list[str]:
    try:
        newest = spool.tail(home)
    except OSError:
        return []
    lines = [
        line
        for line in newest
        if line.notice and line.root == str(root) and line.at_ms > at_ms - NOTICE_AGE_MAX_MS
    ]
    return [
        f"An agent was denied the same again and again ({line.tool}, {line.rule}):"
        f" `interlock gate explain {line.id}`."
        for line in lines[-NOTICES_MAX:]
    ]
